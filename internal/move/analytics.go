package move

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"time"

	"curt/internal/backend/clickhouse"
	"curt/internal/backend/clickhouse/reconcile"
	"curt/internal/backend/coldsql/coldcopy"
	"curt/internal/backend/kafka"
	"curt/internal/backend/sqlite/moveout"
	"curt/internal/background"
	"curt/internal/clicks"
	"curt/internal/clicks/clicklog"
	"curt/internal/clicks/rollup"
	"curt/internal/clicks/ship"
	"curt/internal/link"
)

// Analytics is where clicks go that do not go to the database: what was counted of days before
// yesterday to ClickHouse as sums, the other clicks one by one to Kafka. So each is in one of both,
// and the days that workers compare with Kafka have all of their clicks there.
type Analytics struct {
	Stores []clickhouse.Config
	Events kafka.Config // not for Back

	// Senders are the servers that may hold clicks, for Back.
	Senders func(context.Context) ([]ship.Sender, error)
}

// shippedFile is the position of a server that sends its click log to Kafka.
const shippedFile = "clicks.shipped"

var (
	errElsewhere = errors.New("this move was begun with statistics elsewhere: give --analytics and --events as before")
	errLogShort  = errors.New("the click log does not have all clicks of yesterday and today; see CURT_CLICK_LOG_MAX and CURT_RAW_RETENTION, or move the statistics to the database")
)

// exporter is what a move does there.
type exporter struct{ *move }

// day is a UTC day.
const day = 24 * time.Hour

// since is the day from which on clicks go to Kafka one by one.
func (m *exporter) since() time.Time { return time.Unix(m.state.Since, 0).UTC() }

// openStores connects to all servers of ClickHouse, and makes their tables.
func (m *exporter) openStores(ctx context.Context) (all []*clickhouse.Store, err error) {
	for _, c := range m.Analytics.Stores {
		store, err := clickhouse.Open(ctx, c)
		if err != nil {
			return all, err
		}
		all = append(all, store)
	}
	return all, nil
}

func closeStores(all []*clickhouse.Store) error {
	var errs []error
	for _, s := range all {
		errs = append(errs, s.Close())
	}
	return errors.Join(errs...)
}

// exportCounts brings the sums of days before yesterday to each server of ClickHouse, day by day.
func (m *exporter) exportCounts(ctx context.Context) (err error) {
	if _, err := kafka.Probe(ctx, m.Analytics.Events); err != nil {
		return err
	}
	stores, err := m.openStores(ctx)
	defer func() { err = errors.Join(err, closeStores(stores)) }()
	if err != nil {
		return err
	}
	if err := m.keepCopy(ctx); err != nil {
		return err
	}
	c, err := moveout.OpenCounts(ctx, m.countsCopy())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	if err := m.logIsWhole(c); err != nil {
		return err
	}
	for _, store := range stores {
		if err := m.exportTo(ctx, c, store); err != nil {
			return fmt.Errorf("%s: %w", store.Address(), err)
		}
	}
	m.state.Counted = true
	return m.target.Save(ctx, &m.state)
}

// keepCopy copies clicks.db, once for all runs of a move: what is behind its position in the click log is
// sent from there.
func (m *exporter) keepCopy(ctx context.Context) error {
	if _, err := os.Stat(m.countsCopy()); err == nil && m.state.Since > 0 {
		return nil
	}
	m.state.Since = time.Now().UTC().Truncate(day).Add(-day).Unix()
	if err := m.target.Save(ctx, &m.state); err != nil {
		return err
	}
	return copyDatabase(ctx, m.move)
}

// sums is a reading of the copy, which knows the links of the rows that it read last.
type sums struct {
	*moveout.Counts
	known map[int64]moveout.Total
}

// link returns a row of totals.
func (s *sums) link(n int64) (moveout.Total, error) {
	if t, ok := s.known[n]; ok {
		return t, nil
	}
	rows, err := s.Totals(n-1, 1)
	if err != nil {
		return moveout.Total{}, err
	}
	if len(rows) != 1 || rows[0].N != n {
		return moveout.Total{}, fmt.Errorf("roll-up of link %d, which has no totals: %w", n, coldcopy.ErrDiffers)
	}
	s.known[n] = rows[0]
	return rows[0], nil
}

// each calls f with pages of the rows of a day.
func (s *sums) each(at time.Time, f func([]counted) error) error {
	ordinal := at.Unix() / int64(day/time.Second)
	for after := ordinal<<rollup.RowDayShift - 1; ; {
		rows, err := s.Rollups(after, pageRows)
		if err != nil {
			return err
		}
		clear(s.known)
		page := make([]counted, 0, len(rows))
		for _, r := range rows {
			if after = r.ID; r.ID>>rollup.RowDayShift != ordinal {
				break
			}
			one, err := s.unpack(r)
			if err != nil {
				return err
			}
			page = append(page, one)
		}
		if len(page) > 0 {
			if err := f(page); err != nil {
				return err
			}
		}
		if len(rows) == 0 || len(page) < len(rows) {
			return nil
		}
	}
}

// next returns the first day after another that has rows; false = none.
func (s *sums) next(after time.Time) (time.Time, bool, error) {
	ordinal := after.Unix()/int64(day/time.Second) + 1
	rows, err := s.Rollups(ordinal<<rollup.RowDayShift-1, 1)
	if err != nil || len(rows) == 0 {
		return time.Time{}, false, err
	}
	return time.Unix(rows[0].ID>>rollup.RowDayShift*int64(day/time.Second), 0).UTC(), true, nil
}

// counted is a row with its link.
type counted struct {
	of moveout.Total
	rollup.BucketDelta
}

func (s *sums) unpack(r moveout.Rollup) (one counted, err error) {
	if one.of, err = s.link(r.ID >> rollup.RowLinkShift & rollup.RowLinkMask); err != nil {
		return one, err
	}
	c := rollup.Counts{Clicks: uint64(r.Counts[0]), Humans: uint64(r.Counts[1]), Previews: uint64(r.Counts[2]), Fallbacks: uint64(r.Counts[3]), Refused: uint64(r.Counts[4])}
	one.BucketDelta, err = rollup.PackedRow{Counts: c, Minutes: r.Minutes, Dimensions: r.Dimensions, Visitors: r.Visitors}.Unpack(r.ID)
	return one, err
}

func (c *counted) key() link.Key {
	return link.Key{Domain: link.Domain(c.of.Domain), Code: link.Code(c.of.Code)}
}

// imported is the row as ClickHouse takes it. The first and the last click are known of all days
// together: a bucket has them within its bounds.
func (c *counted) imported() reconcile.Imported {
	const first, last = 5, 6 // of the counts of totals
	row := reconcile.Imported{Key: c.key(), Bucket: c.Bucket, Counts: c.Rollup.Counts, First: c.Bucket.Start(), Visitors: c.Rollup.Visitors.Tags()}
	if at := time.UnixMilli(c.of.Counts[first]); at.After(row.First) && at.Before(c.Bucket.End()) {
		row.First = at
	}
	if c.Rollup.Clicks > 0 {
		row.Last = c.Bucket.End().Add(-time.Millisecond)
		if at := time.UnixMilli(c.of.Counts[last]); at.Before(row.Last) {
			row.Last = at
		}
	}
	return row
}

// exportTo brings the days to one server that it does not have yet, and compares all of them.
func (m *exporter) exportTo(ctx context.Context, c *moveout.Counts, store *clickhouse.Store) error {
	s := &sums{c, map[int64]moveout.Total{}}
	imports := reconcile.ImportsOf(store.Tables)
	done, err := imports.Days(ctx)
	if err != nil {
		return err
	}
	want := map[time.Time]reconcile.DaySum{}
	for at, more, err := s.next(time.Unix(0, 0).Add(-day)); ; at, more, err = s.next(at) {
		if err != nil {
			return err
		}
		if !more || !at.Before(m.since()) {
			break
		}
		if !done[at] {
			if err := m.exportDay(ctx, s, imports, at); err != nil {
				return err
			}
		}
		err := s.each(at, func(page []counted) error {
			sum := want[at]
			for i := range page {
				addDay(&sum, &page[i])
			}
			want[at] = sum
			return nil
		})
		if err != nil {
			return err
		}
		m.Progress("days of statistics", int64(len(want)), 0)
	}
	there, err := imports.SumsBefore(ctx, m.since())
	for at, sum := range want {
		if err == nil && there[at] != sum {
			err = fmt.Errorf("statistics of %s: %+v in the folder and %+v in ClickHouse: %w", at.Format(time.DateOnly), sum, there[at], coldcopy.ErrDiffers)
		}
	}
	return err
}

func (m *exporter) exportDay(ctx context.Context, s *sums, imports reconcile.Imports, at time.Time) error {
	batch := rand.Text() // of its own: what a killed run has staged counts for nothing
	err := s.each(at, func(page []counted) error {
		rows := make([]reconcile.Imported, len(page))
		for i := range page {
			rows[i] = page[i].imported()
		}
		return imports.Stage(ctx, batch, rows)
	})
	if err != nil {
		return err
	}
	return imports.Adopt(ctx, batch, at, time.Now(), func(put func([]reconcile.ImportedValue) error) error {
		return s.each(at, func(page []counted) error {
			var values []reconcile.ImportedValue
			for i := range page {
				if page[i].Bucket.Granularity == rollup.Day {
					values = append(values, reconcile.ValuesOf(page[i].key(), page[i].Rollup)...)
				}
			}
			if len(values) == 0 {
				return nil
			}
			return put(values)
		})
	})
}

// addDay adds a row of a day as [reconcile.Imports.SumsBefore] does.
func addDay(sum *reconcile.DaySum, c *counted) {
	if c.Bucket.Granularity != rollup.Day {
		return
	}
	sum.Add(c.Rollup.Counts)
	who := uint64(crc32.ChecksumIEEE([]byte(c.of.Domain + "/" + c.of.Code)))
	sum.Weighted += who * (c.Rollup.Clicks + 3*c.Rollup.Humans)
}

// logIsWhole returns an error unless the click log has every click that the copy counts from yesterday on.
func (m *exporter) logIsWhole(c *moveout.Counts) error {
	s, want := &sums{c, map[int64]moveout.Total{}}, uint64(0)
	for at, more, err := s.next(m.since().Add(-day)); ; at, more, err = s.next(at) {
		if err != nil {
			return err
		}
		if !more {
			break
		}
		err := s.each(at, func(page []counted) error {
			for i := range page {
				if n := &page[i].Rollup.Counts; page[i].Bucket.Granularity == rollup.Day && !clicks.IsGroup(page[i].key()) {
					want += n.Clicks + n.Previews + n.Fallbacks + n.Refused
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	r, err := clicklog.ReadDir(filepath.Join(m.Data, "clicks"), clicklog.Position{})
	if err != nil {
		return err
	}
	defer r.Close()
	have := uint64(0)
	for {
		b, err := r.NextGood(func(*clicklog.DamageError) {})
		if errors.Is(err, io.EOF) || err == nil && b.At.Compare(c.State.Position) >= 0 {
			break
		}
		if err != nil {
			return err
		}
		b.NotBefore = m.state.Since * 1000
		if err := b.Events(func(*clicklog.Event) error { have++; return nil }); err != nil {
			return err
		}
	}
	if have < want {
		return fmt.Errorf("%d requests were counted since %s and %d are in the click log: %w", want, m.since().Format(time.DateOnly), have, errLogShort)
	}
	return nil
}

// shipRest sends the clicks to Kafka that did not go as sums, as a server does that sends its click log: a
// killed run goes on where Kafka had acknowledged.
func (m *exporter) shipRest(ctx context.Context) (err error) {
	c, err := moveout.OpenCounts(ctx, m.countsCopy())
	if err != nil {
		return err
	}
	counted := c.State.Position
	if err := c.Close(); err != nil {
		return err
	}
	producer, err := kafka.NewProducer(m.Analytics.Events)
	if err != nil {
		return err
	}
	defer producer.Close()
	log, err := clicklog.Open(clicklog.Config{Dir: filepath.Join(m.Data, "clicks"), Logger: m.Log})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	if err := log.Sync(); err != nil {
		return err
	}
	var id [8]byte
	_, _ = rand.Read(id[:]) // never fails
	sink := &remaining{Sink: producer, counted: counted, since: m.state.Since * 1000}
	s := ship.New(ship.Config{
		Log: log, Sink: sink, State: filepath.Join(m.Data, shippedFile), Instance: binary.LittleEndian.Uint64(id[:]), Began: m.since(), Logger: m.Log,
	})
	running, end := context.WithCancel(ctx)
	defer end()
	ended := make(chan error, 1)
	go func() { ended <- s.Run(running) }()
	for range background.Every(running, 10*time.Millisecond) {
		if s.Stats().Acked.Compare(log.End()) >= 0 {
			break
		}
		m.Progress("clicks to Kafka", int64(s.Stats().Events), 0)
		select {
		case err := <-ended:
			return errors.Join(err, ctx.Err(), errNotCounted)
		default:
		}
	}
	end()
	err = <-ended
	m.result.Clicks = sink.sent
	return errors.Join(err, ctx.Err())
}

// remaining is a sink that leaves out what went as sums. It is used by one goroutine.
type remaining struct {
	ship.Sink

	counted clicklog.Position // everything before is in the copy
	since   int64             // from this time on it went not as sums
	sent    int64
}

// Send implements ship.Sink.
func (r *remaining) Send(ctx context.Context, b *clicklog.Block, done func(error)) error {
	if b.NotBefore = 0; b.Next.Compare(r.counted) <= 0 {
		b.NotBefore = r.since
	}
	err := b.Events(func(*clicklog.Event) error { r.sent++; return nil })
	if err != nil {
		return err
	}
	return r.Sink.Send(ctx, b, done)
}

// DaySums returns the sums of all days of a clicks.db.
func DaySums(ctx context.Context, path string) (all map[time.Time]reconcile.DaySum, err error) {
	c, err := moveout.OpenCounts(ctx, path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	all = map[time.Time]reconcile.DaySum{}
	s := &sums{c, map[int64]moveout.Total{}}
	return all, s.eachDay(func(at time.Time, page []counted) {
		sum := all[at]
		for i := range page {
			addDay(&sum, &page[i])
		}
		all[at] = sum
	})
}

// eachDay calls f with pages of the rows of all days.
func (s *sums) eachDay(f func(at time.Time, page []counted)) error {
	for at, more, err := s.next(time.Unix(0, 0).Add(-day)); ; at, more, err = s.next(at) {
		if err != nil || !more {
			return err
		}
		if err := s.each(at, func(page []counted) error { f(at, page); return nil }); err != nil {
			return err
		}
	}
}
