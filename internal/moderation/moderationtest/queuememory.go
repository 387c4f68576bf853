package moderationtest

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"curt/internal/link"
	"curt/internal/moderation"
)

// MemoryCases is the moderation.Cases and moderation.Appeals by which others are judged.
type MemoryCases struct {
	mu       sync.Mutex
	position uint64 // guarded by mu, as all below
	cases    []moderation.Case
	notes    map[link.ID][]moderation.Note // by case, the newest first
	networks map[link.ID]dayNetworks
	appeals  []moderation.Appeal
	reported map[link.ID]link.ID // the link of a case

	destinations []*moderation.Destination
}

// dayNetworks are the digests of one day.
type dayNetworks struct {
	day  int64
	tags map[uint64]bool
}

var (
	_ moderation.Cases   = (*MemoryCases)(nil)
	_ moderation.Appeals = (*MemoryCases)(nil)

	_ moderation.Destinations = (*MemoryCases)(nil)
)

// NewMemoryCases returns an empty queue.
func NewMemoryCases() *MemoryCases {
	return &MemoryCases{
		notes: map[link.ID][]moderation.Note{}, networks: map[link.ID]dayNetworks{}, reported: map[link.ID]link.ID{},
	}
}

// lock waits for its turn; the error is that of a caller who is gone.
func (m *MemoryCases) lock(ctx context.Context) (unlock func(), err error) {
	if ctx.Err() != nil {
		return nil, fmt.Errorf("cases in memory: %w", context.Cause(ctx))
	}
	m.mu.Lock()
	return m.mu.Unlock, nil
}

// open returns the open case of a link; nil = none.
func (m *MemoryCases) open(l link.ID) *moderation.Case {
	for i := range m.cases {
		if c := &m.cases[i]; c.Link.ID == l && c.IsOpen() {
			return c
		}
	}
	return nil
}

// decidedLater returns the case of a link that the first entry behind another closed; nil =
// none.
func (m *MemoryCases) decidedLater(l link.ID, sequence uint64) (found *moderation.Case) {
	for i := range m.cases {
		c := &m.cases[i]
		if sequence > 0 && c.Link.ID == l && c.Sequence > sequence && (found == nil || c.Sequence < found.Sequence) {
			found = c
		}
	}
	return found
}

// join opens a case or joins the one that it belongs to.
func (m *MemoryCases) join(o moderation.Opening) *moderation.Case {
	c := m.decidedLater(o.Link.ID, o.Sequence)
	if c == nil {
		c = m.open(o.Link.ID)
	}
	if c == nil {
		m.cases = append(m.cases, moderation.Case{ID: o.ID, Link: o.Link, Opened: o.At, Due: o.Due})
		c = &m.cases[len(m.cases)-1]
		m.reported[c.ID] = c.Link.ID
	}
	if c.Facts == (moderation.Facts{}) {
		c.Facts = o.Facts
	}
	c.Sources |= o.Source
	c.Score = max(c.Score, o.Score)
	return c
}

// closeAll is a Closing, and those of the same destination in other workspaces.
func (m *MemoryCases) closeAll(c moderation.Closing) (closed []moderation.Case) {
	all := []moderation.Closing{c}
	for _, d := range m.destinations {
		if other := c; c.Everyone && d.Digest == c.Digest && d.ID != c.Link.ID && d.Sequence < c.Sequence {
			other.Link, other.Answer = moderation.Ref{ID: d.ID}, ""
			all = append(all, other)
		}
	}
	for _, c := range all {
		if one := m.close(c); one != nil {
			closed = append(closed, *one)
		}
	}
	return closed
}

// close is a Closing; nil = it closed no case.
func (m *MemoryCases) close(c moderation.Closing) *moderation.Case {
	if d := m.destination(c.Link.ID); d != nil && d.Sequence < c.Sequence {
		d.Decided, d.Everyone, d.At, d.Sequence = c.Safety, c.Everyone, c.At, c.Sequence
	}
	open := m.open(c.Link.ID)
	taken := slices.ContainsFunc(m.cases, func(o moderation.Case) bool {
		return o.Link.ID == c.Link.ID && o.Sequence == c.Sequence
	})
	if open == nil || taken || open.Opened.After(c.At) {
		return nil
	}
	if a := m.appeal(c.Link.ID); a != nil && a.IsOpen() {
		if a.At.After(c.At) {
			return nil
		}
		a.Answered, a.AnsweredBy, a.Safety, a.Answer, a.Sequence = c.At, c.By, c.Safety, c.Answer, c.Sequence
	}
	open.Closed, open.DecidedBy, open.Decided, open.Sequence = c.At, c.By, c.Safety, c.Sequence
	delete(m.networks, open.ID)
	return open
}

// appeal returns the newest appeal of a link; nil = none.
func (m *MemoryCases) appeal(l link.ID) *moderation.Appeal {
	for i := range slices.Backward(m.appeals) {
		if m.appeals[i].Link.ID == l {
			return &m.appeals[i]
		}
	}
	return nil
}

// Position implements moderation.Cases.
func (m *MemoryCases) Position(ctx context.Context) (uint64, error) {
	unlock, err := m.lock(ctx)
	if err != nil {
		return 0, err
	}
	defer unlock()
	return m.position, nil
}

// Follow implements moderation.Cases.
func (m *MemoryCases) Follow(ctx context.Context, after, to uint64, steps []moderation.Step) (closed []moderation.Case, err error) {
	unlock, err := m.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if m.position != after {
		return nil, fmt.Errorf("follow from %d at %d: %w", after, m.position, link.ErrConflict)
	}
	m.position = to
	for _, s := range steps {
		if s.Open != nil {
			m.join(*s.Open)
		} else {
			closed = append(closed, m.closeAll(*s.Close)...)
		}
	}
	return closed, nil
}

// Close implements moderation.Cases.
func (m *MemoryCases) Close(ctx context.Context, c moderation.Closing) (moderation.Case, error) {
	unlock, err := m.lock(ctx)
	if err != nil {
		return moderation.Case{}, err
	}
	defer unlock()
	closed := m.closeAll(c)
	if len(closed) == 0 || closed[0].Link.ID != c.Link.ID {
		return moderation.Case{}, moderation.ErrNoCase
	}
	return closed[0], nil
}

// Report implements moderation.Cases.
func (m *MemoryCases) Report(ctx context.Context, r moderation.Report) (moderation.Case, int, error) {
	unlock, err := m.lock(ctx)
	if err != nil {
		return moderation.Case{}, 0, err
	}
	defer unlock()
	c := m.join(r.Opening)
	t := &c.Reports
	t.Count++
	t.By[r.Category]++
	if t.First.IsZero() {
		t.First = r.At
	}
	t.Last = r.At
	notes := slices.Insert(m.notes[c.ID], 0, moderation.Note{At: r.At, Category: r.Category, Text: r.Text, Contact: r.Contact})
	m.notes[c.ID] = notes[:min(len(notes), moderation.MaxNotes)]
	return *c, m.count(c.ID, r), nil
}

// count counts the networks of a report's day.
func (m *MemoryCases) count(id link.ID, r moderation.Report) int {
	day := r.At.Unix() / 86400
	n := m.networks[id]
	if n.tags == nil || n.day < day {
		n = dayNetworks{day, map[uint64]bool{}}
	}
	if r.Network != 0 && n.day == day && len(n.tags) < moderation.MaxNetworks {
		n.tags[r.Network] = true
	}
	m.networks[id] = n
	return len(n.tags)
}

// Pending implements moderation.Cases.
func (m *MemoryCases) Pending(ctx context.Context, after link.ID, n int) (pending []moderation.Case, err error) {
	unlock, err := m.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	for _, c := range m.cases {
		if c.Facts == (moderation.Facts{}) && bytes.Compare(c.ID[:], after[:]) > 0 {
			pending = append(pending, c)
		}
	}
	slices.SortFunc(pending, func(a, b moderation.Case) int { return bytes.Compare(a.ID[:], b.ID[:]) })
	return pending[:min(n, len(pending))], nil
}

// Describe implements moderation.Cases.
func (m *MemoryCases) Describe(ctx context.Context, id link.ID, f moderation.Facts) error {
	unlock, err := m.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	i := slices.IndexFunc(m.cases, func(c moderation.Case) bool { return c.ID == id && c.Facts == moderation.Facts{} })
	switch {
	case i < 0:
	case f == moderation.Facts{}:
		m.cases = slices.Delete(m.cases, i, i+1)
	default:
		m.cases[i].Facts = f
	}
	return nil
}

// Move implements moderation.Cases.
func (m *MemoryCases) Move(ctx context.Context, l link.ID, w link.WorkspaceID) error {
	unlock, err := m.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	for i := range m.cases {
		if c := &m.cases[i]; c.Link.ID == l && c.Closed.IsZero() && c.Workspace != "" {
			c.Workspace = w
		}
	}
	return nil
}

// Case implements moderation.Cases.
func (m *MemoryCases) Case(ctx context.Context, l link.ID) (moderation.Case, error) {
	unlock, err := m.lock(ctx)
	if err != nil {
		return moderation.Case{}, err
	}
	defer unlock()
	for _, c := range slices.Backward(m.cases) {
		if c.Link.ID == l && c.Facts != (moderation.Facts{}) {
			return c, nil
		}
	}
	return moderation.Case{}, moderation.ErrNoCase
}

// Notes implements moderation.Cases.
func (m *MemoryCases) Notes(ctx context.Context, id link.ID) ([]moderation.Note, error) {
	unlock, err := m.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	return slices.Clone(m.notes[id]), nil
}

// List implements moderation.Cases.
func (m *MemoryCases) List(ctx context.Context, f moderation.CaseFilter, p moderation.CasePage) ([]moderation.Case, moderation.CasePosition, error) {
	unlock, err := m.lock(ctx)
	if err != nil {
		return nil, moderation.CasePosition{}, err
	}
	defer unlock()
	var found []moderation.Case
	for _, c := range m.cases {
		if f.Matches(&c) && (p.After == moderation.CasePosition{} || compare(p.After, f.Order.Position(&c)) < 0) {
			found = append(found, c)
		}
	}
	slices.SortFunc(found, func(a, b moderation.Case) int { return compare(f.Order.Position(&a), f.Order.Position(&b)) })
	if len(found) <= p.Limit {
		return found, moderation.CasePosition{}, nil
	}
	found = found[:p.Limit]
	return found, f.Order.Position(&found[p.Limit-1]), nil
}

func compare(a, b moderation.CasePosition) int {
	return cmp.Or(slices.Compare(a.Rank[:], b.Rank[:]), bytes.Compare(a.ID[:], b.ID[:]))
}

// Count implements moderation.Cases.
func (m *MemoryCases) Count(ctx context.Context, now time.Time) (open, overdue int, err error) {
	unlock, err := m.lock(ctx)
	if err != nil {
		return 0, 0, err
	}
	defer unlock()
	for _, c := range m.cases {
		if c.IsOpen() && c.Facts != (moderation.Facts{}) {
			open++
			if c.Due.Before(now) {
				overdue++
			}
		}
	}
	return open, overdue, nil
}

// Forget implements moderation.Cases.
func (m *MemoryCases) Forget(ctx context.Context, before time.Time, n int) (int, error) {
	return m.erase(ctx, n, func(a *moderation.Appeal) bool { return !a.IsOpen() && a.Answered.Before(before) }, func(c link.ID) bool {
		return slices.ContainsFunc(m.cases, func(o moderation.Case) bool { return o.ID == c && !o.IsOpen() && o.Closed.Before(before) })
	})
}

// Erase implements moderation.Cases.
func (m *MemoryCases) Erase(ctx context.Context, l link.ID) (int, error) {
	return m.erase(ctx, len(m.appeals)+len(m.cases)*moderation.MaxNotes, func(a *moderation.Appeal) bool { return a.Link.ID == l },
		func(c link.ID) bool { return m.reported[c] == l })
}

// erase erasesTexts up to n texts: of appeals, and of cases.
func (m *MemoryCases) erase(ctx context.Context, n int, appeal func(*moderation.Appeal) bool, ofCase func(link.ID) bool) (done int, err error) {
	unlock, err := m.lock(ctx)
	if err != nil {
		return 0, err
	}
	defer unlock()
	for id, notes := range m.notes {
		for i := range notes {
			if w := &notes[i]; !w.Erased && (w.Text != "" || w.Contact != "") && ofCase(id) && done < n {
				w.Text, w.Contact, w.Erased = "", "", true
				done++
			}
		}
	}
	for i := range m.appeals {
		if a := &m.appeals[i]; !a.Erased && appeal(a) && done < n {
			a.Reason, a.Answer, a.Erased = "", "", true
			done++
		}
	}
	return done, nil
}

// Open implements moderation.Appeals.
func (m *MemoryCases) Open(ctx context.Context, a moderation.Appeal, o moderation.Opening) (moderation.Case, error) {
	unlock, err := m.lock(ctx)
	if err != nil {
		return moderation.Case{}, err
	}
	defer unlock()
	if last := m.appeal(a.Link.ID); last != nil {
		if last.IsOpen() {
			return moderation.Case{}, moderation.ErrAppealed
		}
		if a.Against <= last.Sequence {
			return moderation.Case{}, moderation.ErrAnswered
		}
	}
	m.appeals = append(m.appeals, a)
	return *m.join(o), nil
}

// Of implements moderation.Appeals.
func (m *MemoryCases) Of(ctx context.Context, l link.ID) (moderation.Appeal, error) {
	unlock, err := m.lock(ctx)
	if err != nil {
		return moderation.Appeal{}, err
	}
	defer unlock()
	if a := m.appeal(l); a != nil {
		return *a, nil
	}
	return moderation.Appeal{}, moderation.ErrNoAppeal
}

// By implements moderation.Appeals.
func (m *MemoryCases) By(ctx context.Context, token moderation.Hash) (moderation.Appeal, error) {
	unlock, err := m.lock(ctx)
	if err != nil {
		return moderation.Appeal{}, err
	}
	defer unlock()
	for _, a := range m.appeals {
		if a.Token == token {
			return a, nil
		}
	}
	return moderation.Appeal{}, moderation.ErrNoAppeal
}
