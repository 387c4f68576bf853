// Package linklist reads a page of links from the index by age of curt.db, and goes on where an
// entry of the index is damaged. Read Walk.Page first.
package linklist

import (
	"bytes"
	"cmp"
	"database/sql/driver"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"curt/internal/backend/sqlite/linkrow"
	"curt/internal/backend/sqlite/sqlitedb"
	"curt/internal/link"
)

// position is where a walk of List stands: the last link, and its workspace for
// walks over all of them.
type position struct {
	id        link.ID
	workspace int64
}

// cursor binds the position to the filter, so that a cursor cannot be used with
// another one.
func (p position) cursor(f link.Filter) link.Cursor {
	return link.Cursor(fmt.Sprintf("%s-%x-%d", f.Tag(), p.id[:], p.workspace))
}

func parseCursor(c link.Cursor, f link.Filter) (position, error) {
	var p position
	tag, rest, _ := strings.Cut(string(c), "-")
	id, workspace, _ := strings.Cut(rest, "-")
	n, errNumber := strconv.ParseInt(workspace, 10, 64)
	raw, errID := hex.DecodeString(id)
	if tag != f.Tag() || errNumber != nil || errID != nil || len(raw) != len(p.id) {
		return p, link.BadCursor(c)
	}
	copy(p.id[:], raw)
	p.workspace = n
	return p, nil
}

// neighbour returns the id just before p's, or just after: a walk goes on from there,
// because a link of another workspace may have p's own id.
func (p position) neighbour(before bool) link.ID {
	hi, lo := binary.BigEndian.Uint64(p.id[:8]), binary.BigEndian.Uint64(p.id[8:])
	if before {
		var borrow uint64
		lo, borrow = bits.Sub64(lo, 1, 0)
		hi -= borrow
	} else {
		var carry uint64
		lo, carry = bits.Add64(lo, 1, 0)
		hi += carry
	}
	var id link.ID
	binary.BigEndian.PutUint64(id[:8], hi)
	binary.BigEndian.PutUint64(id[8:], lo)
	return id
}

const (
	// listChunk is how many entries of the age index a walk reads at a time.
	chunkLength = 256
	// listBudget bounds the entries that one List reads when its filter matches few
	// of them: among 10 million links 8,000 took 20 ms of one processor, and eight pages
	// at once may take 50. Then the page is short and says where it stopped.
	budget = 4_000
)

// Walk merges the age indexes of some workspaces.
type Walk struct {
	filter link.Filter
	limit  int
	after  *position
	lanes  []*lane
	spent  int // entries read so far

	damaged func(link.Key, error) // called with what the walk passes over; zero key = the error names it
}

// New returns the walk of one List. It goes through the age index of the workspace, or of
// every workspace side by side, which is cheap for the dozens that an instance has.
func New(f link.Filter, p link.Page, damaged func(link.Key, error)) (*Walk, error) {
	if p.Limit < 1 || p.Limit > link.MaxPage {
		return nil, fmt.Errorf("limit %d: %w", p.Limit, link.ErrInvalid)
	}
	w := &Walk{filter: f, limit: p.Limit, damaged: damaged}
	if p.After != "" {
		after, err := parseCursor(p.After, f)
		if err != nil {
			return nil, err
		}
		w.after = &after
	}
	return w, nil
}

// Statements are those that a request runs, by name; a test looks at their plans.
func Statements() map[string]string {
	return map[string]string{
		"oldest": sqlOldest, "newest": sqlNewest, "oldest past": sqlOldestPast, "newest past": sqlNewestPast, "one workspace": sqlOneWorkspace,
	}
}

// Page reads the page.
func (w *Walk) Page(t *sqlitedb.Tx) (link.Slice, error) {
	if err := w.open(t); err != nil {
		return link.Slice{}, err
	}
	return w.read(t, w.limit)
}

// lane is the walk through one workspace.
type lane struct {
	workspace int64
	last      link.ID // of the last entry read
	ahead     []entry
	drained   bool
}

// entry is what the filter needs of a link.
type entry struct {
	n      int64
	at     position
	status link.Status
	domain link.Domain
}

const (
	sqlWorkspaces   = `SELECT n FROM workspaces`
	sqlOneWorkspace = `SELECT n FROM workspaces WHERE name = ?`
)

// open finds the workspaces and where each of them goes on.
func (w *Walk) open(t *sqlitedb.Tx) error {
	query, args := sqlWorkspaces, []any{}
	if w.filter.Workspace != "" {
		query, args = sqlOneWorkspace, []any{string(w.filter.Workspace)}
	}
	return t.Each(query, func(row []driver.Value) error {
		lane := &lane{workspace: sqlitedb.Next[int64](&sqlitedb.Scanner{Row: row})}
		if !w.filter.Oldest {
			lane.last = link.ID(bytes.Repeat([]byte{0xff}, len(link.ID{})))
		}
		if w.filter.Oldest && !w.filter.Since.IsZero() {
			lane.last = position{id: w.filter.Since}.neighbour(true)
		}
		if w.after != nil {
			lane.last = w.after.neighbour(w.filter.Oldest)
		}
		w.lanes = append(w.lanes, lane)
		return nil
	}, args...)
}

// read reads up to limit links and looks one further, to know whether it is the end.
func (w *Walk) read(t *sqlitedb.Tx, limit int) (page link.Slice, err error) {
	chosen := make([]entry, 0, limit)
	for last := (position{}); page.Next == ""; {
		e, ok, err := w.next(t)
		if err != nil {
			return link.Slice{}, err
		}
		if !ok {
			break
		}
		if w.spent > budget {
			page.Next = e.at.cursor(w.filter) // read, and passed over or chosen below
		}
		if w.matches(e) {
			if len(chosen) == limit {
				page.Next = last.cursor(w.filter)
				break
			}
			chosen = append(chosen, e)
		}
		last = e.at
	}
	page.Links = make([]link.Link, 0, len(chosen))
	for n := range sqlitedb.Portions(len(chosen), sqlitedb.RowsAtOnce) {
		if page.Links, err = w.take(t, chosen[:n], page.Links); err != nil {
			return link.Slice{}, err
		}
		chosen = chosen[n:]
	}
	return page, nil
}

const sqlLinksAt = `SELECT ` + linkrow.Columns + ` FROM links WHERE n IN `

// take appends the whole links of up to rowsAtOnce entries, but for those that have been
// deleted meanwhile, and for those that are damaged. It reads them in one statement: one for
// each costs more than a row. Where a page of the file is damaged each is read by itself.
func (w *Walk) take(t *sqlitedb.Tx, chosen []entry, links []link.Link) ([]link.Link, error) {
	found := make([]link.Link, len(chosen))
	scan := func(row []driver.Value) error {
		n, l, err := linkrow.Scan(row)
		if linkrow.IsDamaged(err) {
			w.damaged(l.Key, err)
			return nil
		}
		if i := slices.IndexFunc(chosen, func(e entry) bool { return e.n == n }); err == nil && i >= 0 {
			found[i] = l
		}
		return err
	}
	args := make([]any, len(chosen))
	for i := range chosen {
		args[i] = chosen[i].n
	}
	err := t.Each(sqlLinksAt+sqlitedb.Groups(1, len(chosen)), scan, args...)
	if sqlitedb.IsDamage(err) {
		err = nil
		for i := range chosen {
			if one := t.Each(linkrow.SelectRow, scan, chosen[i].n); sqlitedb.IsDamage(one) {
				w.damaged(link.Key{}, chosen[i].unreadable(one))
			} else if one != nil {
				err = one
			}
		}
	}
	for i := range found {
		if !found[i].ID.IsZero() && found[i].Status != link.Deleted {
			links = append(links, found[i])
		}
	}
	return links, err
}

func (w *Walk) matches(e entry) bool {
	return e.status != link.Deleted &&
		(w.filter.Status == 0 || e.status == w.filter.Status) &&
		(w.filter.Domain == nil || e.domain == *w.filter.Domain)
}

// next returns the entry that comes first in any lane.
func (w *Walk) next(t *sqlitedb.Tx) (e entry, ok bool, err error) {
	var first *lane
	for _, lane := range w.lanes {
		if err := w.fill(t, lane); err != nil {
			return entry{}, false, err
		}
		if len(lane.ahead) > 0 && (first == nil || w.before(lane.ahead[0].at, first.ahead[0].at)) {
			first = lane
		}
	}
	if first == nil {
		return entry{}, false, nil
	}
	e, first.ahead = first.ahead[0], first.ahead[1:]
	return e, true, nil
}

// before compares positions in the order of the walk; one id may be in several
// workspaces.
func (w *Walk) before(a, b position) bool {
	order := cmp.Or(bytes.Compare(a.id[:], b.id[:]), cmp.Compare(a.workspace, b.workspace))
	if w.filter.Oldest {
		return order < 0
	}
	return order > 0
}

// A walk through the index by age must not end, turn in circles or leave links out because
// one key in it is damaged. So each entry is compared with its row, and one that says
// something else is passed over. A damaged key may also lead a search astray, but only to a
// place beside itself: whoever begins between two entries that are as their rows say is where
// he wanted to be. Else this part of the walk reads the rows themselves, sorted.

// fill reads the lane's next chunk when it has no entry ahead.
func (w *Walk) fill(t *sqlitedb.Tx, lane *lane) error {
	if len(lane.ahead) > 0 || lane.drained {
		return nil
	}
	c := chunk{walk: w, lane: lane}
	sound, err := c.begins(t)
	if err == nil && sound {
		sound, err = c.read(t)
	}
	if err != nil && !sqlitedb.IsDamage(err) {
		return err
	}
	if err != nil || !sound {
		c = chunk{walk: w, lane: lane, rows: true}
		if _, err := c.read(t); err != nil {
			return err
		}
	}
	w.spent += c.entries
	lane.ahead, lane.last, lane.drained = append(lane.ahead, c.ahead...), c.last, lane.drained || c.end
	return nil
}

// errEnd ends the reading of a chunk.
var errEnd = errors.New("the chunk ends here")

// chunk is what a lane reads at a time.
type chunk struct {
	walk *Walk
	lane *lane
	rows bool // without the index

	entries int
	good    int
	ahead   []entry
	last    link.ID // of the last entry that is good
	end     bool    // there is no further one
}

const (
	// The index by age in its own order, beside the rows that its entries lead to: an entry
	// that says something else than its row is damaged. Before tells whether a walk begins
	// where it should: behind an entry that is not damaged.
	walkEntries   = `SELECT i.n, i.workspace, i.id, t.workspace, t.id, t.status, t.domain FROM links AS i INDEXED BY links_by_age LEFT JOIN links AS t ON t.n = i.n `
	sqlOldestPast = walkEntries + `WHERE (i.workspace, i.id) <= (?, ?) ORDER BY i.workspace DESC, i.id DESC LIMIT 1`
	sqlNewestPast = walkEntries + `WHERE (i.workspace, i.id) >= (?, ?) ORDER BY i.workspace, i.id LIMIT 1`
)

// begins reports whether the entry before the chunk is as its row says.
func (c *chunk) begins(t *sqlitedb.Tx) (sound bool, err error) {
	query := sqlNewestPast
	if c.walk.filter.Oldest {
		query = sqlOldestPast
	}
	sound = true
	_, err = t.One(query, func(row []driver.Value) error {
		_, sound = c.scan(row)
		return nil
	}, c.lane.workspace, c.lane.last[:])
	return sound, err
}

const (
	sqlOldest = walkEntries + `WHERE (i.workspace, i.id) > (?, ?) ORDER BY i.workspace, i.id LIMIT ?`
	sqlNewest = walkEntries + `WHERE (i.workspace, i.id) < (?, ?) ORDER BY i.workspace DESC, i.id DESC LIMIT ?`
	// The same without the index, where that is damaged: it reads every row.
	walkRows      = `SELECT n, workspace, id, workspace, id, status, domain FROM links NOT INDEXED `
	sqlOldestRows = walkRows + `WHERE workspace = ? AND id > ? ORDER BY id LIMIT ?`
	sqlNewestRows = walkRows + `WHERE workspace = ? AND id < ? ORDER BY id DESC LIMIT ?`
)

// read reads the chunk, and reports whether it begins with an entry that is as its row says.
func (c *chunk) read(t *sqlitedb.Tx) (sound bool, err error) {
	sound, c.last = true, c.lane.last
	query := map[bool]map[bool]string{
		false: {false: sqlNewest, true: sqlOldest}, true: {false: sqlNewestRows, true: sqlOldestRows},
	}[c.rows][c.walk.filter.Oldest]
	err = t.Each(query, func(row []driver.Value) error {
		e, good := c.scan(row)
		switch {
		case good && e.at.workspace != c.lane.workspace:
			c.end = true
			return errEnd
		case good:
			c.good++
			c.take(e)
		case c.entries == 0:
			sound = false
			return errEnd
		}
		c.entries++
		return nil
	}, c.lane.workspace, c.lane.last[:], int64(chunkLength))
	if errors.Is(err, errEnd) {
		err = nil
	}
	c.end = c.end || sound && c.entries < chunkLength
	return sound && (c.end || c.good > 0), err
}

// scan reads an entry, and reports whether its row says the same.
func (c *chunk) scan(row []driver.Value) (e entry, good bool) {
	s := sqlitedb.Scanner{Row: row}
	e = entry{n: s.Int()}
	e.at.workspace = s.Int()
	copy(e.at.id[:], sqlitedb.Next[[]byte](&s))
	workspace := s.Int()
	id := sqlitedb.Next[[]byte](&s)
	e.status, e.domain = link.Status(s.Int()), link.Domain(s.Text())
	good = !s.Bad && workspace == e.at.workspace && bytes.Equal(id, e.at.id[:])
	if !good {
		c.walk.damaged(link.Key{}, e.unreadable(errors.New("the age index disagrees with it")))
	}
	return e, good
}

// take keeps an entry that the walk wants.
func (c *chunk) take(e entry) {
	c.last = e.at.id
	switch {
	case bytes.Compare(e.at.id[:], c.walk.filter.Since[:]) < 0:
		c.end = true // only newest first comes here
	case c.walk.after == nil || c.walk.before(*c.walk.after, e.at):
		c.ahead = append(c.ahead, e)
	}
}

// unreadable is the error of a row that a walk passes over.
func (e entry) unreadable(err error) error {
	return &link.DamagedError{Err: fmt.Errorf("row %d: %w: %w", e.n, sqlitedb.ErrCorrupt, err)}
}
