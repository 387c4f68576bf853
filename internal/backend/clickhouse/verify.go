package clickhouse

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// ErrGone says that clicks of the hour may no longer be kept one by one, so that nothing
// can be verified or rebuilt from them.
var ErrGone = errors.New("the clicks of the hour are not all kept")

// Drift is by how much a table differs from the clicks themselves.
type Drift struct {
	Table  string
	Clicks uint64 // that should be added up there, links and workspaces together
	Rows   uint64 // that are missing, wrong, or should not be there
	Off    uint64 // how many events the rows are off by
	// More is how many clicks are added up there that are not among the clicks one by one: the
	// table has them twice, or what is kept one by one was lost. A correction takes them away.
	More uint64
}

// added are the columns that a table adds up.
func added() []string { return []string{"clicks", "humans", "previews", "fallbacks", "refused"} }

// buckets returns those of a table that an hour lies in.
func (a aggregate) buckets(hour time.Time) (from, to time.Time) {
	if a.Daily {
		from = hour.UTC().Truncate(day)
		return from, from.Add(day)
	}
	from = hour.UTC().Truncate(time.Hour)
	return from, from.Add(time.Hour)
}

// difference selects what has to be added to the table's rows of a span so that they are
// what the clicks add up to, one row for each that is off.
func (a aggregate) difference() string {
	raw := a.query("(SELECT * FROM clicks WHERE " + inSpan + ")")
	const rest = ", first_seen, last_clicked, visitors"
	return `SELECT domain, code, at, ` + each(added(), "sum(%s) AS off_%[1]s", ", ") + `,
    min(first_seen), max(last_clicked), uniqCombined64IfMergeState(14)(visitors) FROM (
SELECT domain, code, at, ` + strings.Join(added(), ", ") + rest + ` FROM (` + raw + `)
UNION ALL
SELECT domain, code, at, ` + each(added(), "-%s", ", ") + rest + ` FROM ` + a.Table + ` WHERE at >= {from:DateTime('UTC')} AND at < {to:DateTime('UTC')}
) GROUP BY domain, code, at HAVING ` + each(added(), "off_%s != 0", " OR ")
}

// each spells every name by a format and joins them.
func each(names []string, format, between string) string {
	spelt := make([]string, len(names))
	for i, n := range names {
		spelt[i] = fmt.Sprintf(format, n)
	}
	return strings.Join(spelt, between)
}

// Verify compares what is added up of an hour with the clicks themselves; tables of days,
// of the UTC day that the hour lies in, the values of dimensions once that day is settled. now is the caller's present.
//
// While blocks of the hour are being inserted the answer may show what is on its way.
func (s *Store) Verify(ctx context.Context, hour, now time.Time) ([]Drift, error) {
	return s.verify(ctx, []time.Time{hour}, now)
}

// VerifyDay is Verify for all hours of a UTC day together.
func (s *Store) VerifyDay(ctx context.Context, at, now time.Time) ([]Drift, error) {
	return s.verify(ctx, hoursOf(at), now)
}

// hoursOf are the hours of a UTC day.
func hoursOf(at time.Time) []time.Time {
	hours := make([]time.Time, 24)
	for h := range hours {
		hours[h] = at.UTC().Truncate(day).Add(time.Duration(h) * time.Hour)
	}
	return hours
}

// verify compares hours of one day.
func (s *Store) verify(ctx context.Context, hours []time.Time, now time.Time) ([]Drift, error) {
	small, err := s.small(ctx, hours)
	if err != nil {
		return nil, fmt.Errorf("verify %s: %w", seconds(hours[0]), unavailable(ctx, err))
	}
	all := make([]Drift, 0, len(aggregates()))
	for _, a := range aggregates() {
		if a.tooOld(hours[0], now, s.config.KeepLeast) {
			return nil, fmt.Errorf("verify %s: %w", seconds(hours[0]), ErrGone)
		}
		d, spans := Drift{Table: a.Table}, a.spans(hours, small, now)
		for _, one := range spans {
			if err := s.drift(ctx, a, one, &d); err != nil {
				return nil, fmt.Errorf("verify %s: %s: %w", seconds(one[0]), a.Table, unavailable(ctx, err))
			}
		}
		if len(spans) > 0 {
			all = append(all, d)
		}
	}
	at := hours[0].UTC().Truncate(day)
	known, err := s.settled(ctx, at, at.Add(day))
	if was, done := known[at]; err == nil && done {
		var d Drift
		d, err = s.settledDrift(ctx, at, was)
		all = append(all, d)
	}
	if err != nil {
		return nil, fmt.Errorf("verify %s: day_values: %w", seconds(at), unavailable(ctx, err))
	}
	return all, nil
}

// small reports whether hours of a day may be added up at once: there are few clicks.
func (s *Store) small(ctx context.Context, hours []time.Time) (bool, error) {
	if len(hours) == 1 {
		return false, nil // nothing would be gained
	}
	there, err := s.rowsOfDays(ctx)
	return there[hours[0].UTC().Truncate(day)] < manyClicks, err
}

// spans are what is added up of a table in one statement each, for hours of a day: what is
// gone is left out.
func (a aggregate) spans(hours []time.Time, small bool, now time.Time) (all [][2]time.Time) {
	for i, hour := range hours {
		from, to := a.buckets(hour)
		switch {
		case a.gone(hour, now), a.Daily && i > 0:
		case small && len(all) > 0:
			all[len(all)-1][1] = to
		default:
			all = append(all, [2]time.Time{from, to})
		}
	}
	return all
}

// drift adds to d what is wrong with a table in a span.
func (s *Store) drift(ctx context.Context, a aggregate, one [2]time.Time, d *Drift) error {
	args := span(one[0], one[1])
	var rows, off, more, n uint64
	err := s.conn.QueryRow(ctx, "SELECT count(), toUInt64(sum("+each(added(), "abs(off_%s)", " + ")+")), toUInt64(sum(greatest(-off_clicks, 0))) FROM ("+a.difference()+")", args...).Scan(&rows, &off, &more)
	if err == nil {
		err = s.conn.QueryRow(ctx, "SELECT toUInt64(sum(clicks)) FROM ("+
			a.query("(SELECT * FROM clicks WHERE "+inSpan+")")+")", args...).Scan(&n)
	}
	d.Rows, d.Off, d.More, d.Clicks = d.Rows+rows, d.Off+off, d.More+more, d.Clicks+n
	return err
}

// Rebuild corrects what is added up of an hour by adding the difference, so that nobody
// reads zeros meanwhile. It MUST NOT run while blocks of the hour's day are being inserted:
// what is on its way would be added twice. After an error some tables may be corrected;
// calling it again corrects the others.
func (s *Store) Rebuild(ctx context.Context, hour, now time.Time) error {
	return s.rebuild(ctx, []time.Time{hour}, now)
}

// RebuildDay is Rebuild for all hours of a UTC day.
func (s *Store) RebuildDay(ctx context.Context, at, now time.Time) error {
	return s.rebuild(ctx, hoursOf(at), now)
}

// rebuild corrects hours of one day.
func (s *Store) rebuild(ctx context.Context, hours []time.Time, now time.Time) error {
	for _, a := range aggregates() {
		if a.tooOld(hours[0], now, s.config.KeepLeast) {
			return fmt.Errorf("rebuild %s: %w", seconds(hours[0]), ErrGone)
		}
	}
	small, err := s.small(ctx, hours)
	if err != nil {
		return fmt.Errorf("rebuild %s: %w", seconds(hours[0]), unavailable(ctx, err))
	}
	for _, a := range aggregates() {
		for _, one := range a.spans(hours, small, now) {
			err := s.conn.Exec(ctx, "INSERT INTO "+a.Table+" (domain, code, at, "+strings.Join(added(), ", ")+", first_seen, last_clicked, visitors) "+a.difference(),
				span(one[0], one[1])...)
			if err != nil {
				return fmt.Errorf("rebuild %s: %s: %w", seconds(one[0]), a.Table, unavailable(ctx, err))
			}
		}
	}
	at := hours[0].UTC().Truncate(day)
	known, err := s.settled(ctx, at, at.Add(day))
	if err != nil {
		return fmt.Errorf("rebuild %s: %w", seconds(at), unavailable(ctx, err))
	}
	if was, done := known[at]; done {
		return s.settleDay(ctx, at, was, now)
	}
	return nil
}

// tooOld reports whether a click of the span may be gone from where clicks are kept one by
// one: the first of them went when it was keep old.
func (a aggregate) tooOld(hour, now time.Time, keep time.Duration) bool {
	from, _ := a.buckets(hour)
	return from.Before(now.Add(-keep))
}
