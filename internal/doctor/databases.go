package doctor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"curt/internal/abuse/blocklist"
	"curt/internal/backend/sqlite"
	"curt/internal/backend/sqlite/leases"
	"curt/internal/backend/sqlite/searchindex"
	"curt/internal/backend/sqlite/snapshot"
	"curt/internal/backend/sqlite/sqlitedb"
	"curt/internal/config"
	"curt/internal/datafolder"
	"curt/internal/link"
	"curt/internal/weburl"
)

const restore = "stop the server and restore the last backup"

// unlessDisk is the advice, unless the disk is to blame: then the files may be well, and an old
// backup would lose what is in them.
func unlessDisk(advice string, err error) string {
	if errors.Is(err, sqlitedb.ErrUnreadable) {
		return "check the disk and the kernel log, then run doctor again; do not restore before the disk is readable"
	}
	return advice
}

// database checks the structure and the schema of a file; the snapshot is nil when the
// file is not there, or cannot be read at all.
func (e *examination) database(ctx context.Context, name string, newest int64, advice string) *snapshot.Snapshot {
	path, there := e.file(name)
	if !there {
		return nil
	}
	s, err := snapshot.Take(ctx, path)
	if err != nil {
		e.fail(name, unlessDisk(advice, err), "cannot be opened: %v", err)
		return nil
	}
	e.tell(name, 0, 0)
	damage, err := s.Damage(e.All)
	switch {
	case err != nil:
		e.fail(name, unlessDisk(advice, err), "unreadable: %v", err)
	case len(damage) > 0:
		e.fail(name, advice, "damaged: %s", linesOf(damage))
	default:
		e.ok(name, "structure intact")
	}
	e.schema(s, name, newest, advice)
	return s
}

// schema compares the file's schema with the newest that this program knows.
func (e *examination) schema(s *snapshot.Snapshot, name string, newest int64, advice string) {
	version, err := s.Schema()
	needs, wrong := s.Needs()
	switch err := errors.Join(err, wrong); {
	case err != nil:
		e.fail(name, advice, "schema unreadable: %v", err)
	case needs > newest:
		back := "restore a backup from before the upgrade"
		if name == "search.db" {
			back = advice
		}
		e.fail(name, "start the later release; or "+back, "schema %d of a later release: this one supports %d and does not start on it", version, newest)
	case version > newest:
		e.warn(name, "this release works with it; upgrade when you can",
			"schema %d of a later release: this one supports %d", version, newest)
	case version < newest:
		e.warn(name, "back up the folder; the next start migrates it", "schema %d, this release uses %d", version, newest)
	default:
		e.ok(name, "schema %d, current", version)
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
	newest, err := sqlite.Schema()
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
	c := &linkCheck{examination: e, links: sqlite.SnapshotOf(s)}
	c.decided = c.decisions(ctx)
	c.rows(ctx)
	c.leases()
	c.dayKeys()
}

// linkCheck examines the content of curt.db, in one snapshot.
type linkCheck struct {
	*examination

	links   *sqlite.Snapshot
	decided *verdicts // nil = links are not compared with the journal
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
	o, err := leases.Inspect(ctx, path)
	switch {
	case errors.Is(err, leases.ErrGone):
		e.fail(log, restore, "%v", err)
		return false
	case err != nil:
		e.fail(log, "check the disk", "unreadable: %v", err)
		return true
	case o.Lost != nil && o.New: // from before there was a state file: nothing is refused
		e.fail(log, "copy the folder; then "+restore+", or start the server, which logs and drops the lost transactions", "%s", o.Lost.What)
		return true
	case o.Lost != nil:
		e.fail(log, "copy the folder; then "+restore+", or drop the lost transactions: curt serve --force reports how many",
			"%s; no server starts on it, and links are not checked", o.Lost.What)
		return false
	}
	e.ok(log, "no confirmed transaction is known to be missing")
	const apart = "nothing: the next start skips 10 to 20 million ids"
	switch {
	case o.Spoiled:
		e.warn(state, apart+" and recreates the file; check the disk", "damaged: the codes already leased are unknown")
	case o.Elsewhere:
		e.warn(state, apart+", so that no two copies generate the same code", "this folder was copied, or moved to another disk or machine")
	}
	return true
}

// noLinks tells of a folder without curt.db.
func (e *examination) noLinks() {
	_, there := e.file("curt.db")
	switch err := datafolder.Elsewhere(e.Config.Data); {
	case !e.there || there:
	case e.Config.Links != config.SQLite:
		e.ok("curt.db", "not checked: links are in the database of CURT_LINKS, which has its own tools")
	case err != nil:
		e.warn("curt.db", "run doctor with the settings of the server: CURT_LINKS is not set here", "not checked: %v", err)
	default:
		e.fail("curt.db", restore, "missing: there are no links")
	}
}

func (e *examination) end(s *snapshot.Snapshot) {
	if err := s.Close(); err != nil {
		e.warn("data folder", "", "%v", err)
	}
}

// rows reads every link, or as many as there is time for.
func (c *linkCheck) rows(ctx context.Context) {
	lists := c.blocklists(ctx)
	var listed uint64
	var example link.Key
	seen, most := int64(0), c.links.MostLinks()
	within, end := c.bounded(ctx)
	defer end()
	rows, err := c.links.EachLink(within, func(l *link.Link) {
		if seen++; seen%4096 == 0 {
			c.tell("links", seen, most)
		}
		c.recorded(l.Updated, "a link")
		c.decided.see(l)
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
		c.fail("links", "delete the link, which keeps its code reserved, or "+restore, "at least %d damaged: %v", len(rows.Damaged), rows.Damaged[0])
	case late:
		c.warn("links", toTheEnd, "%d of at most %d read in %s, all checksums valid", rows.Read, most, c.Within)
	case err != nil:
		c.fail("links", unlessDisk(restore, err), "unreadable: %v", err)
	case rows.Hidden > 0:
		c.fail("links", restore, "%d cannot be found by their code", rows.Hidden)
	default:
		c.ok("links", "%d including deleted ones, all checksums valid", rows.Read)
	}
	if err == nil || late {
		c.compared(late)
		c.listed(lists, listed, example, late)
	}
}

// listed says how many links lead to what is listed; part is whether not all were read.
func (c *linkCheck) listed(lists *blocklist.Lists, n uint64, example link.Key, part bool) {
	const disable = "disable links to a host with curt links disable --destination HOST"
	again := "the server rechecks all links every " + c.Config.Recheck.String() + " and when a list changes (CURT_RECHECK), and blocks them; to act at once: " + disable
	if c.Config.Recheck == 0 {
		again = "set CURT_RECHECK, such as 24h, to recheck and block old links; or " + disable
	}
	switch {
	case lists == nil:
	case n > 0:
		c.warn("blocklists", again, "%d links point to destinations that were listed later, among them %s", n, example)
	case part:
		c.ok("blocklists", "none of the links read points to a listed destination")
	default:
		c.ok("blocklists", "no link points to a listed destination")
	}
}

// blocklists opens the blocklists; nil when there are none, or when settings has told what is
// wrong.
func (c *linkCheck) blocklists(ctx context.Context) *blocklist.Lists {
	if len(c.Config.Blocklists) == 0 {
		return nil
	}
	lists, err := blocklist.Open(ctx, blocklist.Config{Paths: c.Config.Blocklists, Allow: c.Config.Allowlists})
	if err != nil {
		return nil
	}
	return lists
}

// leases looks for counters that lie behind the codes made from them.
func (c *linkCheck) leases() {
	older, err := c.links.Outdated()
	if err != nil {
		c.fail("leases", restore, "unreadable: %v", err)
		return
	}
	if older && !c.held {
		c.warn("leases", "restore the last backup if links are missing; a start moves the counters past all leased codes",
			"curt.db is older than curt.db.state: the newest links are missing")
	}
	switch stale, err := c.links.StaleLeases(); {
	case err != nil:
		c.fail("leases", restore, "unreadable: %v", err)
	case len(stale) > 0:
		c.fail("leases", "restart the server: a start moves the counters past all links",
			"codes of length %s would repeat: their counter is older than their links", numbers(stale))
	default:
		c.ok("leases", "no existing code will be generated again")
	}
}

func numbers(list []int) string {
	text := fmt.Sprint(list)
	return text[1 : len(text)-1]
}

// dayKeys looks for keys that should be gone: with one, visitor tags of its day can be
// tied to addresses.
func (c *linkCheck) dayKeys() {
	days, err := c.links.KeyDays()
	if err != nil {
		c.fail("visitor keys", restore, "unreadable: %v", err)
		return
	}
	today := c.Now.UTC().Truncate(24 * time.Hour)
	for _, day := range days {
		date := day.Format(time.DateOnly)
		switch {
		case day.After(today.AddDate(0, 0, 1)): // a move of the folder prepares that of tomorrow
			c.fail("visitor keys", "set the clock, then restart the server", "the key of %s is in the future", date)
			return
		case day.Before(today) && c.held && day.Before(today.AddDate(0, 0, -1)):
			c.warn("visitor keys", "the next click deletes it", "the key of %s was not deleted", date)
			return
		case day.Before(today) && !c.held:
			c.warn("visitor keys", "start the server, whose first click deletes it; delete the folder if it is out of use", "the key of %s was not deleted", date)
			return
		}
	}
	c.ok("visitor keys", "no keys of past days")
}

// search looks at search.db, which can be made again.
func (e *examination) search(ctx context.Context) {
	newest, err := searchindex.Schema()
	if err != nil {
		e.fail("search.db", "", "%v", err)
		return
	}
	if s := e.database(ctx, "search.db", newest, "stop the server and delete search.db, search.db-wal and search.db-shm: the next start rebuilds the index"); s != nil {
		e.end(s)
		return
	}
	switch {
	case !e.missing("search.db"), !e.Config.Does(config.RoleAPI):
	case e.held:
		e.fail("search.db", "restart the server, which rebuilds it", "missing, and the running server uses the deleted file")
	default:
		e.ok("search.db", "missing: the next start builds it")
	}
}
