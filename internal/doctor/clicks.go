package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"curt/internal/backend/sqlite"
	"curt/internal/clicks"
	"curt/internal/config"
	"curt/internal/link"
)

const recountAdvice = "with the server stopped, set clicks.db aside: the next start counts again what the click log still holds"

// clicks checks clicks.db and the click log, and compares the two.
func (e *examination) clicks(ctx context.Context) {
	_, newest, err := sqlite.Schemas()
	if err != nil {
		e.fail("clicks.db", "", "%v", err)
		return
	}
	s := e.database(ctx, "clicks.db", newest, recountAdvice)
	if s == nil {
		e.noCounts()
		return
	}
	defer e.end(s)
	state, err := s.Counted()
	if err != nil {
		e.fail("clicks.db", recountAdvice, "its place in the click log cannot be read: %v", err)
		return
	}
	if e.All {
		e.totals(ctx, s)
	}
	first, err := e.firstDay(s)
	switch {
	case errors.Is(err, errNoLog) && folderSize(e.path("clicks")) > 0:
		e.fail("click log", "check the disk; statistics stay as they are", "nothing of it can be read")
		return
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, errNoLog):
		if state.Position != (clicks.Position{}) {
			e.warn("click log", "restore it, if there is a copy; statistics stay as they are", "it is gone: what was not counted yet is lost")
		} else {
			e.ok("click log", "it is empty, and nothing was counted")
		}
		return
	case err != nil:
		e.fail("click log", "check the disk", "%v", err)
		return
	}
	recount, err := clicks.RecountDir(ctx, e.path("clicks"), first, state.Position, func(done, all int64) { e.tell("click log", done, all) })
	if err != nil {
		e.fail("click log", "check the disk", "%v", err)
		return
	}
	e.recorded(recount.Latest, "a click")
	e.log(&recount, state.Position)
	e.oneVisitor(&recount)
	e.compare(ctx, s, &recount, first)
}

// noCounts tells of statistics that are gone. Links alone do not say that there were any:
// an import makes them, too.
func (e *examination) noCounts() {
	_, searched := e.file("search.db")
	_, logged := e.file("clicks")
	switch {
	case !e.missing("clicks.db"), !e.Config.Does(config.RoleAPI) && !e.Config.Does(config.RoleRedirect):
	case e.Config.Analytics != "":
		e.ok("clicks.db", "not examined: statistics are in a database, as CURT_ANALYTICS says, which has means of its own")
	case e.held:
		e.fail("clicks.db", "restart the server: what the click log still holds is counted again; a backup has the rest",
			"it is not there, and what the server that runs counts is lost with it")
	case searched || logged:
		e.fail("clicks.db", "restore the last backup, or start without: what the click log still holds is counted again",
			"it is not there: without it there are no statistics")
	default:
		e.ok("clicks.db", "it is not there: nothing was counted yet")
	}
}

// errNoLog: nothing of the log can be read.
var errNoLog = errors.New("the click log is empty")

// firstDay returns the first day of which the log still has every click, of those that
// are to be counted again.
func (e *examination) firstDay(s *sqlite.Snapshot) (uint32, error) {
	oldest, ok, err := clicks.OldestOf(e.path("clicks"))
	switch {
	case err != nil:
		return 0, err
	case !ok:
		return 0, errNoLog
	}
	seen, err := s.FirstSeen()
	if err != nil {
		return 0, err
	}
	first := clicks.BucketAt(clicks.Day, oldest).Ordinal
	if !seen.IsZero() && seen.Before(oldest) {
		first++ // of its day some may have been in a segment that is gone
	}
	if !e.All {
		window := clicks.BucketAt(clicks.Day, e.Now.AddDate(0, 0, 1-max(e.Days, 1))).Ordinal
		first = max(first, window)
	}
	return first, nil
}

// log tells how the click log is.
func (e *examination) log(r *clicks.Recount, counted clicks.Position) {
	for i, d := range r.Damages {
		if i == 3 {
			e.fail("click log", "", "%d more places are damaged", len(r.Damages)-i)
			break
		}
		e.fail("click log", "check the disk; what was counted stays so, clicks there that were not are lost", "%v", d)
	}
	if r.Torn && !e.held {
		e.warn("click log", "nothing: the next start cuts it off", "its end is torn, as a power cut leaves it")
	}
	switch {
	case r.End.Compare(counted) < 0:
		e.fail("click log", "if the log lost its end, check the disk: statistics stay as they are; if not, "+recountAdvice,
			"clicks.db has counted up to %s, and the log ends at %s: they are not of one time, or the log lost its end", counted, r.End)
	case r.Waiting > 0 && !e.held:
		e.warn("click log", "start the server, which counts them", "%d clicks wait to be counted", r.Waiting)
	}
	if len(r.Damages) == 0 {
		e.ok("click log", "%d clicks were read, and every checksum holds", r.Events)
	}
}

// totals compares each link's total with the sum of its days.
func (e *examination) totals(ctx context.Context, s *sqlite.Snapshot) {
	e.tell("totals", 0, 0)
	switch off, example, err := s.TotalsOff(ctx); {
	case err != nil:
		e.fail("totals", recountAdvice, "they cannot be read: %v", err)
	case off > 0:
		e.fail("totals", recountAdvice, "%d links have totals that are not the sum of their days, among them %s", off, name(example))
	default:
		e.ok("totals", "each is the sum of its days")
	}
}

// compare holds the statistics against the recount, link by link and day by day. Who is
// a bot is not compared: releases differ in it.
func (e *examination) compare(ctx context.Context, s *sqlite.Snapshot, r *clicks.Recount, first uint32) {
	var wrong, days int
	var example string
	differ := func(d clicks.LinkDay, stored, log clicks.Counts) {
		if wrong++; wrong == 1 {
			example = fmt.Sprintf("%s on %s has %s in the statistics and %s in the log", name(d.Key),
				clicks.Bucket{Granularity: clicks.Day, Ordinal: d.Day}.Start().Format(time.DateOnly), counts(stored), counts(log))
		}
	}
	err := s.CountedDays(ctx, first, func(d clicks.LinkDay, stored clicks.Counts) {
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
		e.fail("statistics", recountAdvice, "they cannot be read: %v", err)
		return
	}
	for d, log := range r.Days {
		if log != (clicks.Counts{}) {
			differ(d, clicks.Counts{}, log)
		}
	}
	since := clicks.Bucket{Granularity: clicks.Day, Ordinal: first}.Start().Format(time.DateOnly)
	switch {
	case wrong > 0 && len(r.Damages) > 0:
		e.fail("statistics", "the damage of the click log may be why; if not, "+recountAdvice, "%d days of links differ from the click log; %s", wrong, example)
	case wrong > 0:
		e.fail("statistics", recountAdvice, "%d days of links differ from the click log; %s", wrong, example)
	default:
		e.ok("statistics", "%d days of links since %s are what the click log says", days, since)
	}
}

// name writes a link for people.
func name(k link.Key) string {
	if k == (link.Key{}) {
		return "what asks for unknown codes"
	}
	return k.String()
}

// counts writes what is compared.
func counts(c clicks.Counts) string {
	return fmt.Sprintf("%d clicks, %d previews, %d fallbacks, %d refused", c.Clicks, c.Previews, c.Fallbacks, c.Refused)
}

// taken tells what the end of the last server cost, which the next start will.
func (e *examination) taken() {
	t := clicks.TakenFrom(clicks.TallyFile(e.Config.Data), e.path("clicks"))
	const advice = "start the server: it goes on where the one before was, and links are not concerned"
	switch {
	case !t.Killed:
	case t.Unknown:
		e.warn("last end", advice, "the last server was killed, and nobody knows how many clicks that cost: %s", t.Why)
	case t.Clicks > 0:
		e.warn("last end", advice, "the last server was killed: %d clicks were answered that are in no statistics", t.Clicks)
	default:
		e.ok("last end", "the last server was killed, and no click was lost")
	}
}
