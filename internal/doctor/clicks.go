package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"curt/internal/backend/sqlite/counts"
	"curt/internal/clicks"
	"curt/internal/clicks/capture"
	"curt/internal/clicks/clicklog"
	"curt/internal/clicks/recount"
	"curt/internal/clicks/rollup"
	"curt/internal/config"
	"curt/internal/link"
)

const recountAdvice = "stop the server and move clicks.db aside: the next start recounts the clicks still in the click log"

// clicks checks clicks.db and the click log, and compares the two.
func (e *examination) clicks(ctx context.Context) {
	newest, err := counts.Schema()
	if err != nil {
		e.fail("clicks.db", "", "%v", err)
		return
	}
	file := e.database(ctx, "clicks.db", newest, recountAdvice)
	if file == nil {
		e.noCounts()
		return
	}
	defer e.end(file)
	c := &countsCheck{examination: e, counts: counts.Snapshot{Snapshot: file}}
	state, err := c.counts.Counted()
	if err != nil {
		e.fail("clicks.db", recountAdvice, "its position in the click log is unreadable: %v", err)
		return
	}
	if e.All {
		c.totals(ctx)
	}
	first, err := c.firstDay()
	switch {
	case errors.Is(err, errNoLog) && folderSize(e.path("clicks")) > 0:
		e.fail("click log", "check the disk; statistics are not affected", "unreadable")
		return
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, errNoLog):
		if state.Position != (clicklog.Position{}) {
			e.warn("click log", "restore it if there is a copy; statistics are not affected", "missing: uncounted clicks are lost")
		} else {
			e.ok("click log", "empty, nothing counted yet")
		}
		return
	case err != nil:
		e.fail("click log", "check the disk", "%v", err)
		return
	}
	recount, err := recount.Dir(ctx, e.path("clicks"), first, state.Position, func(done, all int64) { e.tell("click log", done, all) })
	if err != nil {
		e.fail("click log", "check the disk", "%v", err)
		return
	}
	e.recorded(recount.Latest, "a click")
	c.log(&recount, state.Position)
	c.oneVisitor(&recount)
	c.compare(ctx, &recount, first)
}

// countsCheck compares the content of clicks.db, in one snapshot, with the click log.
type countsCheck struct {
	*examination

	counts counts.Snapshot
}

// noCounts tells of statistics that are gone. Links alone do not say that there were any:
// an import makes them, too.
func (e *examination) noCounts() {
	_, searched := e.file("search.db")
	_, logged := e.file("clicks")
	switch {
	case !e.missing("clicks.db"), !e.Config.Does(config.RoleAPI) && !e.Config.Does(config.RoleRedirect):
	case e.Config.Analytics != "":
		e.ok("clicks.db", "not checked: statistics are in the database of CURT_ANALYTICS, which has its own tools")
	case e.held:
		e.fail("clicks.db", "restart the server to recount the clicks still in the click log; older ones are in a backup",
			"missing: the running server's counts will be lost")
	case searched || logged:
		e.fail("clicks.db", "restore the last backup, or start without it to recount the clicks still in the click log",
			"missing: there are no statistics")
	default:
		e.ok("clicks.db", "missing: nothing counted yet")
	}
}

// errNoLog: nothing of the log can be read.
var errNoLog = errors.New("the click log is empty")

// firstDay returns the first day of which the log still has every click, of those that
// are to be counted again.
func (c *countsCheck) firstDay() (uint32, error) {
	oldest, ok, err := recount.Oldest(c.path("clicks"))
	switch {
	case err != nil:
		return 0, err
	case !ok:
		return 0, errNoLog
	}
	seen, err := c.counts.FirstSeen()
	if err != nil {
		return 0, err
	}
	first := rollup.BucketAt(rollup.Day, oldest).Ordinal
	if !seen.IsZero() && seen.Before(oldest) {
		first++ // of its day some may have been in a segment that is gone
	}
	if !c.All {
		window := rollup.BucketAt(rollup.Day, c.Now.AddDate(0, 0, 1-max(c.Days, 1))).Ordinal
		first = max(first, window)
	}
	return first, nil
}

// log tells how the click log is.
func (c *countsCheck) log(r *recount.Result, counted clicklog.Position) {
	for i, d := range r.Damages {
		if i == 3 {
			c.fail("click log", "", "%d more damaged positions", len(r.Damages)-i)
			break
		}
		c.fail("click log", "check the disk; counted clicks stay counted, uncounted clicks in the damaged part are lost", "%v", d)
	}
	if r.Torn && !c.held {
		c.warn("click log", "nothing: the next start truncates it", "torn tail, as after a power cut")
	}
	switch {
	case r.End.Compare(counted) < 0:
		c.fail("click log", "if the log lost its end, check the disk (statistics are not affected); if not, "+recountAdvice,
			"clicks.db counted up to %s, but the log ends at %s: they are from different times, or the log lost its end", counted, r.End)
	case r.Waiting > 0 && !c.held:
		c.warn("click log", "start the server to count them", "%d clicks not counted yet", r.Waiting)
	}
	if len(r.Damages) == 0 {
		c.ok("click log", "%d clicks read, all checksums valid", r.Events)
	}
}

// totals compares each link's total with the sum of its days.
func (c *countsCheck) totals(ctx context.Context) {
	c.tell("totals", 0, 0)
	switch off, example, err := c.counts.TotalsOff(ctx); {
	case err != nil:
		c.fail("totals", recountAdvice, "unreadable: %v", err)
	case off > 0:
		c.fail("totals", recountAdvice, "totals of %d links differ from the sum of their days, among them %s", off, name(example))
	default:
		c.ok("totals", "all equal the sum of their days")
	}
}

// compare holds the statistics against the recount, link by link and day by day. Who is
// a bot is not compared: releases differ in it.
func (c *countsCheck) compare(ctx context.Context, r *recount.Result, first uint32) {
	var wrong, days int
	var example string
	differ := func(d rollup.LinkDay, stored, log rollup.Counts) {
		if wrong++; wrong == 1 {
			example = fmt.Sprintf("%s on %s has %s in the statistics and %s in the log", name(d.Key),
				rollup.Bucket{Granularity: rollup.Day, Ordinal: d.Day}.Start().Format(time.DateOnly), countsOf(stored), countsOf(log))
		}
	}
	err := c.counts.CountedDays(ctx, first, func(d rollup.LinkDay, stored rollup.Counts) {
		if clicks.IsGroup(d.Key) {
			return // the log does not know whose links are
		}
		days++
		log := r.Days[d]
		delete(r.Days, d)
		stored.Humans = 0
		if stored != log {
			differ(d, stored, log)
		}
	})
	if err != nil {
		c.fail("statistics", recountAdvice, "unreadable: %v", err)
		return
	}
	for d, log := range r.Days {
		if log != (rollup.Counts{}) {
			differ(d, rollup.Counts{}, log)
		}
	}
	since := rollup.Bucket{Granularity: rollup.Day, Ordinal: first}.Start().Format(time.DateOnly)
	switch {
	case wrong > 0 && len(r.Damages) > 0:
		c.fail("statistics", "the damaged click log may be the cause; if not, "+recountAdvice, "%d days of links differ from the click log; %s", wrong, example)
	case wrong > 0:
		c.fail("statistics", recountAdvice, "%d days of links differ from the click log; %s", wrong, example)
	default:
		c.ok("statistics", "%d days of links since %s match the click log", days, since)
	}
}

// name writes a link for people.
func name(k link.Key) string {
	if k == (link.Key{}) {
		return "requests for unknown codes"
	}
	return k.String()
}

// countsOf writes what is compared.
func countsOf(c rollup.Counts) string {
	return fmt.Sprintf("%d clicks, %d previews, %d fallbacks, %d refused", c.Clicks, c.Previews, c.Fallbacks, c.Refused)
}

// taken tells what the end of the last server cost, which the next start will.
func (e *examination) taken() {
	t := capture.LossOf(capture.TallyFile(e.Config.Data), e.path("clicks"))
	const advice = "start the server: it continues where the last one stopped; links are not affected"
	switch {
	case !t.Killed:
	case t.Unknown:
		e.warn("last end", advice, "the last server was killed, unknown number of clicks lost: %s", t.Why)
	case t.Clicks > 0:
		e.warn("last end", advice, "the last server was killed: %d redirected clicks are missing from the statistics", t.Clicks)
	default:
		e.ok("last end", "the last server was killed, no clicks lost")
	}
}
