package analyticstest

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"curt/internal/analytics"
	"curt/internal/clicks"
	"curt/internal/link"
)

// Recount is the naive Reader: it keeps every click and counts anew for each
// question. It knows the user agents of scripts only.
type Recount struct{ all []clicks.Raw }

var _ analytics.Reader = (*Recount)(nil)

// Load takes clicks.
func (m *Recount) Load(raws []clicks.Raw) { m.all = append(m.all, raws...) }

func human(c *clicks.Raw) bool { return strings.Contains(string(c.UserAgent), "Gecko") }

func preview(c *clicks.Raw) bool { return c.Flags&(clicks.Head|clicks.Prefetch) != 0 }

func counted(c *clicks.Raw) bool {
	return !preview(c) && (c.Outcome == clicks.Redirected || c.Outcome == clicks.Orphan)
}

func visitor(c *clicks.Raw) string {
	return fmt.Sprint(c.Addr, string(c.UserAgent), c.Time/86_400_000)
}

// of returns the link's clicks from a time on and before another.
func (m *Recount) of(k link.Key, from, to time.Time) (found []*clicks.Raw) {
	for i := range m.all {
		c := &m.all[i]
		orphan := c.Outcome == clicks.Orphan
		if orphan != (k == link.Key{}) || !orphan && string(c.Code) != string(k.Code) {
			continue
		}
		if !from.IsZero() && c.Time < from.UnixMilli() || !to.IsZero() && c.Time >= to.UnixMilli() {
			continue
		}
		found = append(found, c)
	}
	return found
}

// widen returns a scope's range in whole units.
func widen(s analytics.Scope, unit time.Duration, first, now time.Time) (from, to time.Time, err error) {
	from, to = s.From, s.To
	if to.IsZero() {
		to = now
	}
	if from.IsZero() {
		from = first
	}
	if !from.Before(to) {
		return from, to, fmt.Errorf("%w: it ends before it begins", analytics.ErrRange)
	}
	from = from.UTC().Truncate(unit)
	if cut := to.UTC().Truncate(unit); cut.Before(to) {
		return from, cut.Add(unit), nil
	}
	return from, to.UTC(), nil
}

func (m *Recount) first(k link.Key) time.Time {
	first := int64(0)
	for _, c := range m.of(k, time.Time{}, time.Time{}) {
		if first == 0 || c.Time < first {
			first = c.Time
		}
	}
	return time.UnixMilli(first)
}

// Totals implements analytics.Reader.
func (m *Recount) Totals(_ context.Context, s analytics.Scope, now time.Time) (sums analytics.Totals, err error) {
	life := m.of(s.Key, time.Time{}, time.Time{})
	if len(life) == 0 {
		return sums, nil
	}
	for _, c := range life {
		if counted(c) && c.Time > sums.LastClicked.UnixMilli() {
			sums.LastClicked = time.UnixMilli(c.Time).UTC()
		}
		if counted(c) && c.Time >= now.UTC().Add(-24*time.Hour).Truncate(time.Minute).UnixMilli() {
			sums.Clicks24h++
		}
	}
	from, to, err := widen(s, 15*time.Minute, m.first(s.Key), now)
	if err != nil {
		return analytics.Totals{}, err
	}
	visitors := map[string]bool{}
	for _, c := range m.of(s.Key, from, to) {
		switch {
		case counted(c):
			sums.Clicks++
			if human(c) {
				sums.Humans++
			}
			if human(c) && c.Outcome == clicks.Redirected {
				visitors[visitor(c)] = true
			}
		case preview(c) && (c.Outcome == clicks.Redirected || c.Outcome == clicks.Orphan):
			sums.Previews++
		case !preview(c) && c.Outcome == clicks.FellBack:
			sums.Fallbacks++
		case !preview(c) && c.Outcome == clicks.Refused:
			sums.Refused++
		}
	}
	sums.VisitorDays = uint64(len(visitors))
	return sums, nil
}

// Series implements analytics.Reader. It walks minute by minute and begins a new
// point where the zone's clocks say so.
func (m *Recount) Series(_ context.Context, s analytics.Scope, step analytics.Step, now time.Time) (points []analytics.Point, err error) {
	unit := 15 * time.Minute
	if step == analytics.Minute {
		unit = time.Minute
	}
	from, to, err := widen(s, unit, m.first(s.Key), now)
	if err != nil {
		return nil, err
	}
	zone := s.Zone
	if zone == nil {
		zone = time.UTC
	}
	label := func(t time.Time) string {
		t = t.In(zone)
		switch step {
		case analytics.Day:
			return t.Format("2006-01-02")
		case analytics.Hour:
			return t.Format("2006-01-02 15 -0700")
		case analytics.Quarter:
			return fmt.Sprint(t.Unix() / 900)
		default:
			return fmt.Sprint(t.Unix() / 60)
		}
	}
	all := m.of(s.Key, from, to)
	begin := from
	for label(begin.Add(-time.Minute)) == label(from) {
		begin = begin.Add(-time.Minute)
	}
	for at := begin; at.Before(to); {
		next := at.Add(time.Minute)
		for label(next) == label(at) {
			next = next.Add(time.Minute)
		}
		p, visitors := analytics.Point{Start: at.In(zone)}, map[string]bool{}
		for _, c := range all {
			if !counted(c) || c.Time < at.UnixMilli() || c.Time >= next.UnixMilli() {
				continue
			}
			p.Clicks++
			if human(c) {
				p.Humans++
				visitors[visitor(c)] = true
			}
		}
		if step != analytics.Minute {
			p.Visitors = uint64(len(visitors))
		}
		points = append(points, p)
		at = next
	}
	return points, nil
}

// Top implements analytics.Reader.
func (m *Recount) Top(_ context.Context, s analytics.Scope, n int, now time.Time, dimensions ...clicks.Dimension) (top [][]analytics.Row, err error) {
	from, to, err := widen(s, 15*time.Minute, m.first(s.Key), now)
	if err != nil {
		return nil, err
	}
	for _, d := range dimensions {
		var rows []analytics.Row
		for _, c := range m.of(s.Key, from, to) {
			value := valueOf(c, d)
			if !counted(c) || value == "" {
				continue
			}
			i := slices.IndexFunc(rows, func(r analytics.Row) bool { return r.Value == value })
			if i < 0 {
				i, rows = len(rows), append(rows, analytics.Row{Value: value})
			}
			rows[i].Clicks++
			if human(c) {
				rows[i].Humans++
			}
		}
		slices.SortFunc(rows, func(a, b analytics.Row) int {
			if a.Clicks != b.Clicks {
				return int(b.Clicks) - int(a.Clicks)
			}
			return strings.Compare(a.Value, b.Value)
		})
		top = append(top, rows[:min(n, len(rows))])
	}
	return top, nil
}

func valueOf(c *clicks.Raw, d clicks.Dimension) string {
	ua := string(c.UserAgent)
	has := func(word, yes, no string) string {
		if strings.Contains(ua, word) {
			return yes
		}
		return no
	}
	switch d {
	case clicks.ReferrerHost:
		u, err := url.Parse(string(c.Referrer))
		if err != nil || u.Host == "" {
			return clicks.Direct
		}
		return strings.TrimPrefix(strings.ToLower(u.Hostname()), "www.")
	case clicks.Device:
		if !human(c) {
			return "bot"
		}
		return has("iPhone", "mobile", "desktop")
	case clicks.Browser:
		if !human(c) {
			return clicks.Other
		}
		return has("Chrome", "Chrome", has("Firefox", "Firefox", "Safari"))
	case clicks.OS:
		return has("Windows", "Windows", has("Linux", "Linux", has("iPhone", "iOS", clicks.Other)))
	case clicks.Language:
		first, _, _ := strings.Cut(string(c.Language), ",")
		first, _, _ = strings.Cut(first, "-")
		return strings.ToLower(first)
	case clicks.Trigger:
		if c.Flags&clicks.Warned != 0 {
			return clicks.TriggerWarning
		}
		if c.Flags&clicks.ViaQR != 0 {
			return clicks.TriggerQR
		}
		return clicks.TriggerLink
	case clicks.Country:
		if place := (Places{}).Locate(c.Addr); place.Country != [2]byte{} {
			return string(place.Country[:])
		}
		return ""
	case clicks.City:
		return Places{}.Locate(c.Addr).City
	case clicks.Network:
		return Places{}.Locate(c.Addr).Network
	default:
		q, err := url.ParseQuery(string(c.Query))
		if err != nil {
			return ""
		}
		return q.Get(d.String())
	}
}

// Clicks implements analytics.Reader.
func (m *Recount) Clicks(_ context.Context, keys []link.Key) ([]uint64, error) {
	sums := make([]uint64, len(keys))
	for i, k := range keys {
		for _, c := range m.of(k, time.Time{}, time.Time{}) {
			if counted(c) {
				sums[i]++
			}
		}
	}
	return sums, nil
}
