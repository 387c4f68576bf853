package statistics

import (
	"context"
	"fmt"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"curt/internal/analytics"
	"curt/internal/backend/clickhouse/clickdb"
	"curt/internal/clicks"
	"curt/internal/clicks/clicklog"
	"curt/internal/clicks/history"
)

var _ analytics.History = (*Reader)(nil)

// What one page may cost: it ends, perhaps short, when it looked at so many clicks or took
// so long. A question for a workspace has no order to follow and reads whole days.
const (
	lookMost = 20_000
	lookLong = 2 * time.Second
	lookDays = 31
)

// Page implements analytics.History. Newest is by time; clicks of one millisecond have an
// order of their own, which stays the same.
func (r *Reader) Page(ctx context.Context, q history.Query) (history.Page, error) {
	w := walk{reader: r, query: q, before: placeOf(q.Before), began: time.Now()}
	err := r.db.Query(ctx, "raw clicks", func(ctx context.Context) (err error) {
		if clicks.IsGroup(q.Key) {
			return w.days(ctx)
		}
		_, err = w.span(ctx, q.From)
		return err
	})
	if err != nil {
		return history.Page{}, err
	}
	return w.page, nil
}

// place is where a click lies: behind those that are newer, or as new with a larger mark.
// The zero place is before all of them.
type place struct {
	millis int64
	mark   uint64 // of the event's instance and sequence
}

func placeOf(b history.Cursor) place {
	return place{int64(b.Position.Segment), uint64(b.Position.Offset)}
}

// bookmark is never the zero one, which is the newest end.
func (p place) bookmark() history.Cursor {
	return history.Cursor{Position: clicklog.Position{Segment: uint64(p.millis), Offset: int64(p.mark)}, Record: 1}
}

// walk is one page being filled.
type walk struct {
	reader *Reader
	query  history.Query
	before place
	began  time.Time
	looked int
	page   history.Page
}

// days walks day by day, over those that have clicks.
func (w *walk) days(ctx context.Context) error {
	to := time.UnixMilli(millis(w.query.To)).UTC()
	if w.query.To.IsZero() {
		to = time.UnixMilli(clickdb.MostMillis).UTC()
	}
	if w.before != (place{}) && time.UnixMilli(w.before.millis).Before(to) {
		to = time.UnixMilli(w.before.millis + 1).UTC()
	}
	for range lookDays {
		newest, oldest, err := w.reader.kept(ctx, to)
		if err != nil || newest.IsZero() {
			return err
		}
		from := newest.Truncate(clickdb.Day)
		for _, bound := range []time.Time{oldest, w.query.From} {
			if bound.After(from) {
				from = bound
			}
		}
		if !from.Before(to) {
			return nil
		}
		if more, err := w.span(ctx, from); err != nil || more {
			return err
		}
		to = from
		w.before = place{millis: from.UnixMilli()} // no click is that new and has a smaller mark
		if time.Since(w.began) > lookLong {
			break
		}
	}
	w.page.Next, w.page.More = w.before.bookmark(), true
	return nil
}

// span adds the clicks from a time on that are behind the place, the newest first. It
// returns whether the page ended before they did.
func (w *walk) span(ctx context.Context, from time.Time) (more bool, err error) {
	for {
		room := w.query.Limit - len(w.page.Clicks)
		want := room
		if w.query.Filter != nil {
			want = max(room, 1000)
		}
		got, err := w.read(ctx, from, want)
		if err != nil {
			return false, err
		}
		if got < want && len(w.page.Clicks) < w.query.Limit {
			return false, nil // there are no others
		}
		w.looked += got
		if len(w.page.Clicks) == w.query.Limit || w.looked >= lookMost || time.Since(w.began) > lookLong {
			w.page.Next, w.page.More = w.before.bookmark(), true
			return true, nil
		}
	}
}

const clickColumns = `toUnixTimestamp64Milli(time), cityHash64(instance, sequence) AS mark, outcome, preview, bot, bot_reason, bot_name, visitor,
country, city, network, referrer_host, device, browser, os, language, trigger, utm_source, utm_medium, utm_campaign, utm_term, utm_content`

// read adds those of the next n clicks that are to be kept, and returns how many it looked at.
func (w *walk) read(ctx context.Context, from time.Time, n int) (looked int, err error) {
	where, args := w.where(from)
	rows, err := w.reader.db.Conn.Query(ctx, "SELECT "+clickColumns+" FROM clicks WHERE "+where+" ORDER BY time DESC, mark DESC LIMIT {n:UInt32}",
		append(args, clickhouse.Named("n", fmt.Sprint(n)))...)
	if err != nil {
		return 0, err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var c clicks.Click
		at, err := scanClick(rows, &c)
		if err != nil {
			return looked, err
		}
		looked++
		w.before = at
		if w.query.Filter != nil && !w.query.Filter(&c) {
			continue
		}
		if w.page.Clicks = append(w.page.Clicks, c); len(w.page.Clicks) == w.query.Limit {
			break
		}
	}
	return looked, rows.Err()
}

// where is which clicks are asked for, behind the place.
func (w *walk) where(from time.Time) (where string, args []any) {
	args = clickdb.Named(w.query.Key)
	where = clickdb.OfKey
	if clicks.IsGroup(w.query.Key) {
		where = "workspace = {code:String}"
	}
	where += fmt.Sprintf(" AND outcome != %d", clicks.Orphan)
	bound := func(name, condition string, millis int64) {
		where += " AND " + fmt.Sprintf(condition, "fromUnixTimestamp64Milli({"+name+":Int64}, 'UTC')")
		args = append(args, clickhouse.Named(name, fmt.Sprint(millis)))
	}
	if !from.IsZero() {
		bound("from", "time >= %s", millis(from))
	}
	if !w.query.To.IsZero() {
		bound("to", "time < %s", millis(w.query.To))
	}
	if w.before != (place{}) {
		bound("at", "time <= %s AND (time < %[1]s OR mark < {mark:UInt64})", w.before.millis)
		args = append(args, clickhouse.Named("mark", fmt.Sprint(w.before.mark)))
	}
	return where, args
}

// millis spells a time that a click can have, or one at the edge of those.
func millis(t time.Time) int64 { return min(max(t.UnixMilli(), 0), clickdb.MostMillis) }

func scanClick(rows driver.Rows, c *clicks.Click) (at place, err error) {
	var outcome uint8
	var reason string
	err = rows.Scan(&at.millis, &at.mark, &outcome, &c.Preview, &c.Bot, &reason, &c.BotName, &c.Visitor,
		&c.Country, &c.City, &c.Network, &c.ReferrerHost, &c.Device, &c.Browser, &c.OS, &c.Language, &c.Trigger,
		&c.UTM[0], &c.UTM[1], &c.UTM[2], &c.UTM[3], &c.UTM[4])
	c.Time, c.Outcome, c.BotReason = time.UnixMilli(at.millis).UTC(), clicks.Outcome(outcome), clicks.BotReason(reason)
	return at, err
}

// kept returns when the newest click was taken, of the days before to and its own, and when
// the oldest that are kept one by one; zero = there are none. What is older than the least
// that is kept may be there in part, and does not count. It is read from what the server
// knows of its files.
func (r *Reader) kept(ctx context.Context, to time.Time) (newest, oldest time.Time, err error) {
	var n uint64
	last := to.Add(-time.Millisecond).UTC().Format("20060102")
	err = r.db.Conn.QueryRow(ctx, `SELECT max(time), greatest(min(time), now64(3, 'UTC') - toIntervalSecond({keep:UInt32})), count() FROM clicks
WHERE toYYYYMMDD(time) <= {last:UInt32}`,
		clickhouse.Named("keep", fmt.Sprint(int64(r.db.Config.MinRetention/time.Second))), clickhouse.Named("last", last)).Scan(&newest, &oldest, &n)
	if err != nil || n == 0 {
		return time.Time{}, time.Time{}, err
	}
	return newest.UTC(), oldest.UTC(), nil
}

// Since implements analytics.History. While the server does not answer it returns zero, and
// the Page that is asked for next says so.
func (r *Reader) Since() (oldest time.Time) {
	_ = r.db.Query(context.Background(), "oldest click", func(ctx context.Context) (err error) {
		_, oldest, err = r.kept(ctx, time.UnixMilli(clickdb.MostMillis))
		return err
	})
	return oldest
}
