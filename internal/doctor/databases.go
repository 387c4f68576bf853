package doctor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"curt/internal/abuse"
	"curt/internal/backend/sqlite"
	"curt/internal/config"
	"curt/internal/link"
	"curt/internal/server"
	"curt/internal/weburl"
)

const restore = "stop the server and restore the last backup"

// unlessDisk is the advice, unless the disk is to blame: then the files may be well, and an old
// backup would lose what is in them.
func unlessDisk(advice string, err error) string {
	if errors.Is(err, sqlite.ErrUnreadable) {
		return "check the disk, of which the kernel's log says more, and look again; restore nothing before it reads"
	}
	return advice
}

// database checks the structure and the schema of a file; the snapshot is nil when the
// file is not there, or cannot be read at all.
func (e *examination) database(ctx context.Context, name string, newest int64, advice string) *sqlite.Snapshot {
	path, there := e.file(name)
	if !there {
		return nil
	}
	s, err := sqlite.TakeSnapshot(ctx, path)
	if err != nil {
		e.fail(name, unlessDisk(advice, err), "it cannot be opened: %v", err)
		return nil
	}
	e.tell(name, 0, 0)
	damage, err := s.Damage(e.All)
	switch {
	case err != nil:
		e.fail(name, unlessDisk(advice, err), "it cannot be read: %v", err)
	case len(damage) > 0:
		e.fail(name, advice, "it is damaged: %s", linesOf(damage))
	default:
		e.ok(name, "its structure is whole")
	}
	e.schema(s, name, newest, advice)
	return s
}

// schema compares the file's schema with the newest that this program knows.
func (e *examination) schema(s *sqlite.Snapshot, name string, newest int64, advice string) {
	version, err := s.Schema()
	needs, wrong := s.Needs()
	switch err := errors.Join(err, wrong); {
	case err != nil:
		e.fail(name, advice, "its schema cannot be read: %v", err)
	case needs > newest:
		back := "restore a backup from before the upgrade"
		if name == "search.db" {
			back = advice
		}
		e.fail(name, "start the later release; or "+back, "its schema is %d, a later release's: this one knows %d and does not start on it", version, newest)
	case version > newest:
		e.warn(name, "this release works on it; go on to the later one when you can",
			"its schema is %d, a later release's: this one knows %d", version, newest)
	case version < newest:
		e.warn(name, "back up the folder; the next start brings it up to date", "its schema is %d, and this release's is %d", version, newest)
	default:
		e.ok(name, "its schema is %d, this release's", version)
	}
}

func (e *examination) tell(check string, done, all int64) {
	if e.Progress != nil {
		e.Progress(check, done, all)
	}
}

// links looks at curt.db: every entry of the journal and every row, the leases of codes
// and the keys of visitor tags.
func (e *examination) links(ctx context.Context) {
	newest, _, err := sqlite.Schemas()
	if err != nil {
		e.fail("curt.db", "", "%v", err)
		return
	}
	if !e.outside(ctx) {
		return // SQLite would show what is left, and leave less for the next start to notice it by
	}
	s := e.database(ctx, "curt.db", newest, restore)
	if s == nil {
		e.noLinks()
		return
	}
	defer e.end(s)
	e.rows(ctx, s, e.decisions(ctx, s))
	e.leases(s)
	e.dayKeys(s)
}

// outside looks at what is known of curt.db outside of it, and reports whether it may be
// read: its write-ahead log must have all that was confirmed. Only the server that has the
// folder, if one has it, can say that.
func (e *examination) outside(ctx context.Context) bool {
	path, there := e.file("curt.db")
	if !there || e.held || e.Config.Links != config.SQLite {
		return true
	}
	const log, state = "write-ahead log", "curt.db.state"
	o, err := sqlite.Look(ctx, path)
	switch {
	case errors.Is(err, sqlite.ErrGone):
		e.fail(log, restore, "%v", err)
		return false
	case err != nil:
		e.fail(log, "check the disk", "it cannot be read: %v", err)
		return true
	case o.Lost != nil && o.New: // from before there was a state file: nothing is refused
		e.fail(log, "copy the folder; then "+restore+", or start the server, which gives up what is lost and says so", "%s", o.Lost.What)
		return true
	case o.Lost != nil:
		e.fail(log, "copy the folder; then "+restore+", or give up what is lost: curt serve --force says how much that is",
			"%s; no server starts on it, and the links are not examined", o.Lost.What)
		return false
	}
	e.ok(log, "nothing that was confirmed is known to be missing")
	const apart = "nothing: the next start skips 10 to 20 million ids"
	switch {
	case o.Spoiled:
		e.warn(state, apart+" and makes the file anew; check the disk", "it is damaged: nobody knows which codes were given away")
	case o.Elsewhere:
		e.warn(state, apart+", so that both give away other codes", "this folder is a copy, or was moved to another disk or machine")
	}
	return true
}

// noLinks tells of a folder without curt.db.
func (e *examination) noLinks() {
	_, there := e.file("curt.db")
	switch err := server.Elsewhere(e.Config.Data); {
	case !e.there || there:
	case e.Config.Links != config.SQLite:
		e.ok("curt.db", "not examined: the links are in a database, as CURT_LINKS says, which has means of its own")
	case err != nil:
		e.warn("curt.db", "give doctor the settings of the server: CURT_LINKS is not set here", "not examined: %v", err)
	default:
		e.fail("curt.db", restore, "it is not there: without it there are no links")
	}
}

func (e *examination) end(s *sqlite.Snapshot) {
	if err := s.Close(); err != nil {
		e.warn("data folder", "", "%v", err)
	}
}

// rows reads every link, or as many as there is time for.
func (e *examination) rows(ctx context.Context, s *sqlite.Snapshot, decided *verdicts) {
	lists := e.lists(ctx)
	var listed uint64
	var example link.Key
	seen, most := int64(0), s.MostLinks()
	within, end := e.bounded(ctx)
	defer end()
	rows, err := s.EachLink(within, func(l *link.Link) {
		if seen++; seen%4096 == 0 {
			e.tell("links", seen, most)
		}
		e.recorded(l.Updated, "a link")
		decided.see(l)
		if lists == nil || l.Status != link.Active || l.Safety >= link.Blocked {
			return
		}
		if u, err := weburl.Parse(l.Destination); err == nil {
			if _, bad := lists.Match(u); bad {
				listed, example = listed+1, l.Key
			}
		}
	})
	late := errors.Is(err, errLate)
	switch {
	case ctx.Err() != nil:
		return
	case len(rows.Damaged) > 0:
		e.fail("links", "delete it, which leaves its code taken, or "+restore, "%d or more are damaged: %v", len(rows.Damaged), rows.Damaged[0])
	case late:
		e.warn("links", toTheEnd, "%d of at most %d were read in %s; of those every checksum holds", rows.Read, most, e.Within)
	case err != nil:
		e.fail("links", unlessDisk(restore, err), "they cannot be read: %v", err)
	case rows.Hidden > 0:
		e.fail("links", restore, "%d are not found by their code", rows.Hidden)
	default:
		e.ok("links", "%d, deleted ones among them, and every checksum holds", rows.Read)
	}
	if err == nil || late {
		e.compared(decided, late)
		e.listed(lists, listed, example, late)
	}
}

// listed says how many links lead to what is listed; part is whether not all were read.
func (e *examination) listed(lists *abuse.Blocklists, n uint64, example link.Key, part bool) {
	const disable = "curt links disable --destination HOST switches off what leads to a host"
	again := "the server judges all links again every " + e.Config.Recheck.String() + " and when a list changes (CURT_RECHECK), and blocks them; at once: " + disable
	if e.Config.Recheck == 0 {
		again = "with CURT_RECHECK, as 24h, the server judges old links again and blocks them; or " + disable
	}
	switch {
	case lists == nil:
	case n > 0:
		e.warn("blocklists", again, "%d links lead to what was listed later, among them %s", n, example)
	case part:
		e.ok("blocklists", "none of the links that were read leads to what is listed")
	default:
		e.ok("blocklists", "no link leads to what is listed")
	}
}

// lists opens the blocklists; nil when there are none, or when settings has told what is
// wrong.
func (e *examination) lists(ctx context.Context) *abuse.Blocklists {
	if len(e.Config.Blocklists) == 0 {
		return nil
	}
	lists, err := abuse.Open(ctx, abuse.Config{Paths: e.Config.Blocklists, Allow: e.Config.Allowlists})
	if err != nil {
		return nil
	}
	return lists
}

// leases looks for counters that lie behind the codes made from them.
func (e *examination) leases(s *sqlite.Snapshot) {
	older, err := s.Behind()
	if err != nil {
		e.fail("leases", restore, "they cannot be read: %v", err)
		return
	}
	if older && !e.held {
		e.warn("leases", "restore the last backup if links are missing; a start moves the counters past all codes that were given away",
			"curt.db is older than curt.db.state beside it: links that were made last are gone")
	}
	switch stale, err := s.StaleLeases(); {
	case err != nil:
		e.fail("leases", restore, "they cannot be read: %v", err)
	case len(stale) > 0:
		e.fail("leases", "restart the server: a start moves the counters past all links",
			"codes of length %s would be made twice: their counter is older than their links", numbers(stale))
	default:
		e.ok("leases", "no code that a link has will be made again")
	}
}

func numbers(list []int) string {
	text := fmt.Sprint(list)
	return text[1 : len(text)-1]
}

// dayKeys looks for keys that should be gone: with one, visitor tags of its day can be
// tied to addresses.
func (e *examination) dayKeys(s *sqlite.Snapshot) {
	days, err := s.KeyDays()
	if err != nil {
		e.fail("visitor keys", restore, "they cannot be read: %v", err)
		return
	}
	today := e.Now.UTC().Truncate(24 * time.Hour)
	for _, day := range days {
		date := day.Format(time.DateOnly)
		switch {
		case day.After(today):
			e.fail("visitor keys", "set the clock, then restart the server", "there is one of %s, which is to come", date)
			return
		case day.Before(today) && e.held && day.Before(today.AddDate(0, 0, -1)):
			e.warn("visitor keys", "the next click ends it", "the key of %s is still there", date)
			return
		case day.Before(today) && !e.held:
			e.warn("visitor keys", "start the server, whose first click ends it; a folder that is out of use should be deleted", "the key of %s is still there", date)
			return
		}
	}
	e.ok("visitor keys", "none of a past day is kept")
}

// search looks at search.db, which can be made again.
func (e *examination) search(ctx context.Context) {
	newest, err := sqlite.SearchSchema()
	if err != nil {
		e.fail("search.db", "", "%v", err)
		return
	}
	if s := e.database(ctx, "search.db", newest, "stop the server and delete search.db and the two files beside it: it is filled anew"); s != nil {
		e.end(s)
		return
	}
	switch {
	case !e.missing("search.db"), !e.Config.Does(config.RoleAPI):
	case e.held:
		e.fail("search.db", "restart the server: a start fills it anew", "it is not there, and the server that runs answers from what was deleted")
	default:
		e.ok("search.db", "it is not there: the next start fills it")
	}
}
