package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"time"

	"curt/internal/backend/sqlite/linkrow"
	"curt/internal/backend/sqlite/reservations"
	"curt/internal/backend/sqlite/sqlitedb"
	"curt/internal/link"
)

// Create implements link.Store.
func (s *Links) Create(ctx context.Context, l link.Link) (link.Link, error) {
	if err := l.Validate(); err != nil {
		return link.Link{}, fmt.Errorf("create: %w", err)
	}
	s.ahead.read(ctx, s.db.Closed(), &l)
	var stored link.Link
	err := s.db.Write(ctx, 1, func(t *sqlitedb.Tx) (err error) {
		stored, err = s.create(t, l)
		return err
	})
	if err != nil {
		return link.Link{}, fmt.Errorf("create %s: %w", l.Key, err)
	}
	return stored, nil
}

// created returns l as it is stored.
func created(l link.Link) link.Link {
	l.Version, l.Spent = 1, 0
	return l.Normal()
}

// create inserts l, or says what it met.
func (s *Links) create(t *sqlitedb.Tx, l link.Link) (link.Link, error) {
	l = created(l)
	workspace, err := s.workspace(t, l.Workspace)
	if err != nil {
		return link.Link{}, err
	}
	if n, ok := s.place(l.Key.Code); ok && l.CodeKind != link.Chosen {
		if changed, err := insert(t, n, workspace, &l); err != nil || changed == 1 {
			s.note(l.ID)
			if changed == 1 {
				s.counted = append(s.counted, n)
			}
			return l, err
		}
	}
	l, _, err = s.createAlias(t, workspace, l)
	return l, err
}

// createAlias is create for a code that does not lie at a permuted place, or whose
// place is taken: by itself, by another link, or by another domain's. known says that
// the link was there already. Most links are new: nobody is asked what stands in the way
// before something does.
func (s *Links) createAlias(t *sqlitedb.Tx, workspace int64, l link.Link) (stored link.Link, known bool, err error) {
	inserted, err := s.insertAlias(t, workspace, &l, false)
	switch {
	case err != nil:
		return link.Link{}, false, err
	case !inserted:
		if stored, known, err = s.conflict(t, workspace, &l); !errors.Is(err, errRedeemed) {
			return stored, known, err
		}
		return s.createAlias(t, workspace, l)
	}
	return l, false, nil
}

const (
	sqlPlaceTaken  = `SELECT 1 FROM links WHERE n = ?`
	sqlLastAlias   = `SELECT coalesce(max(n), -9223372036854775807 - 1) FROM links WHERE n < 0`
	sqlInsertAlias = `INSERT INTO aliases (domain, code, n) VALUES (?, ?, ?) ON CONFLICT DO NOTHING`
	// The same for a link that another one may stand in for: no entry where one might.
	sqlInsertTwinless = `INSERT INTO aliases (domain, code, n) SELECT ?, ?, ? WHERE NOT EXISTS (SELECT 1` + twinsWhere + `) ON CONFLICT DO NOTHING`
	sqlDeleteAlias    = `DELETE FROM aliases WHERE domain = ? AND code = ?`
	sqlInsertAliased  = `INSERT INTO links (` + linkrow.StoredColumns + `, n) VALUES (` + linkrow.StoredMarks + `, ?) ON CONFLICT DO NOTHING`
)

// insertAlias inserts l behind the other aliases and logs it, unless its key or its id is taken, or, with dedupe,
// another link may stand in for it. The entry in aliases comes first: it decides about the key, so that
// the statement of the row, the longest one, need not.
func (s *Links) insertAlias(t *sqlitedb.Tx, workspace int64, l *link.Link, dedupe bool) (inserted bool, err error) {
	if !s.linkReader.config.NeverIssued(l.Key.Code) {
		if taken, err := s.taken(t, l.Key); err != nil || taken {
			return false, err
		}
	}
	if s.lastAlias == 0 {
		if s.lastAlias, _, err = t.Number(sqlLastAlias); err != nil {
			return false, err
		}
	}
	for {
		n := s.lastAlias + 1
		row, err := linkrow.Args(n, workspace, l, false) // before anything is written, which its error would not undo
		if err != nil {
			return false, err
		}
		statement, entry := sqlInsertAlias, []any{string(l.Key.Domain), string(l.Key.Code), n}
		if dedupe {
			statement, entry = sqlInsertTwinless, append(entry, workspace, link.Digest(l.Destination), link.Millis(l.Expires))
		}
		if changed, err := t.Exec(statement, entry...); err != nil || changed == 0 {
			return false, err
		}
		if changed, err := t.Exec(sqlInsertAliased, row...); err != nil {
			return false, err
		} else if changed == 1 {
			s.lastAlias = n
			s.note(l.ID)
			return true, s.logAlias(t, n, l)
		}
		// The id is taken, or the row, by another process.
		_, err = t.Exec(sqlDeleteAlias, entry[:2]...)
		last, _, failed := t.Number(sqlLastAlias)
		if err = errors.Join(err, failed); err != nil || last == s.lastAlias {
			return false, err
		}
		s.lastAlias = last
	}
}

// taken reports whether a link that the statement of insert does not see has the key: one at the place of a
// counted code, or one whose alias a damaged entry hides.
func (s *Links) taken(t *sqlitedb.Tx, k link.Key) (bool, error) {
	if n, ok := s.place(k.Code); ok {
		taken, err := t.One(sqlPlaceTaken, sqlitedb.Ignore, n)
		if err == nil && taken {
			_, _, taken, err = s.byKey(t, k)
		}
		if err != nil || taken {
			return taken, err
		}
	}
	return soundAliases(t, k, s.log)
}

// One statement decides a counted create: no row where neither the place, nor
// the id, nor the key is taken.
const sqlInsertLink = `INSERT INTO links (` + linkrow.StoredColumns + `, n) SELECT ` + linkrow.StoredMarks + `, ?
	WHERE NOT EXISTS (SELECT 1 FROM aliases WHERE domain = ? AND code = ?)
	ON CONFLICT DO NOTHING`

// insert inserts the row n, unless it, the id or the key is taken.
func insert(t *sqlitedb.Tx, n, workspace int64, l *link.Link) (changed int64, err error) {
	args, err := linkrow.Args(n, workspace, l, false)
	if err != nil {
		return 0, err
	}
	return t.Exec(sqlInsertLink, append(args, string(l.Key.Domain), string(l.Key.Code))...)
}

// errRedeemed: a reservation was in the way of a link, and is no more.
var errRedeemed = errors.New("the reservation of the key has ended")

// conflict says what kept l from being inserted: itself, another link of its key, another key of its id,
// or a reservation.
func (s *Links) conflict(t *sqlitedb.Tx, workspace int64, l *link.Link) (stored link.Link, known bool, err error) {
	_, stored, taken, err := s.byKey(t, l.Key)
	switch {
	case err != nil:
		return link.Link{}, false, err
	case taken && stored.ID == l.ID:
		return stored, true, nil
	case taken:
		return link.Link{}, false, link.ErrExists
	}
	if err := idFree(t, workspace, l); err != nil {
		return link.Link{}, false, err
	}
	switch reserved, err := reservations.Redeem(t, l); {
	case err != nil:
		return link.Link{}, false, err
	case reserved:
		return link.Link{}, false, errRedeemed
	}
	return link.Link{}, false, fmt.Errorf("%s cannot be inserted, without a conflict: %w: %w", l.Key, link.ErrUnavailable, sqlitedb.ErrCorrupt)
}

const sqlLinkByID = `SELECT ` + linkrow.Columns + ` FROM links WHERE workspace = ? AND id = ?`

// idFree returns link.ErrConflict when the id of l is that of another key in a workspace.
func idFree(t *sqlitedb.Tx, workspace int64, l *link.Link) error {
	var other link.Link
	known, err := t.One(sqlLinkByID, func(row []driver.Value) error {
		_, stored, err := linkrow.Scan(row)
		other = stored
		return err
	}, workspace, l.ID[:])
	if err == nil && known && other.Key != l.Key {
		err = fmt.Errorf("id belongs to %s: %w", other.Key, link.ErrConflict)
	}
	return err
}

const (
	sqlWorkspace       = `SELECT n FROM workspaces WHERE name = ?`
	sqlInsertWorkspace = `INSERT INTO workspaces (name) VALUES (?)`
)

// workspace returns the number of a workspace, which it makes when it is new.
func (p *pending) workspace(t *sqlitedb.Tx, name link.WorkspaceID) (int64, error) {
	if n, ok := p.workspaces[name]; ok {
		return n, nil
	}
	n, found, err := t.Number(sqlWorkspace, string(name))
	if err == nil && !found {
		n, err = t.Insert(sqlInsertWorkspace, string(name))
	}
	if err != nil {
		return 0, err
	}
	p.workspaces[name] = n
	return n, nil
}

// CreateMany implements link.Batcher: one transaction, whatever the number of links.
func (s *Links) CreateMany(ctx context.Context, now time.Time, entries []link.Creation) ([]link.Result, error) {
	s.ahead.readMany(ctx, s.db.Closed(), entries)
	return many(ctx, s.db, "create", len(entries), func(t *sqlitedb.Tx, i int) link.Result { return s.createEntry(t, now, &entries[i]) })
}

// many writes n links in one transaction.
func many(ctx context.Context, db *sqlitedb.Store, what string, n int, write func(t *sqlitedb.Tx, i int) link.Result) ([]link.Result, error) {
	results := make([]link.Result, n)
	err := db.Write(ctx, n, func(t *sqlitedb.Tx) error {
		for i := range results {
			results[i] = write(t, i)
			if err := results[i].Err; sqlitedb.ResultCode(err) != 0 {
				return err // nothing of the batch happened
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("%s %d links: %w", what, n, err)
	}
	return results, nil
}

func (s *Links) createEntry(t *sqlitedb.Tx, now time.Time, e *link.Creation) (r link.Result) {
	switch r.Err = e.Link.Validate(); {
	case r.Err != nil:
	case e.Dedupe:
		r.Link, r.Found, r.Err = s.findOrCreate(t, e.Link, now)
	default:
		r.Link, r.Err = s.create(t, e.Link)
	}
	return r
}

// FindSame implements link.Deduper.
func (s *linkReader) FindSame(ctx context.Context, wanted link.Link, now time.Time) (same link.Link, err error) {
	err = s.db.Read(ctx, func(t *sqlitedb.Tx) error {
		workspace, found, err := t.Number(sqlWorkspace, string(wanted.Workspace))
		if err == nil && found {
			same, found, err = findSame(t, workspace, wanted, now)
		}
		if err == nil && !found {
			return link.ErrNotFound
		}
		return err
	})
	if err != nil {
		return link.Link{}, fmt.Errorf("find an equivalent link: %w", err)
	}
	return same, nil
}

// FindOrCreate implements link.Deduper: the writer is alone, so that nobody creates
// between the look and the insert.
func (s *Links) FindOrCreate(ctx context.Context, l link.Link, now time.Time) (link.Link, bool, error) {
	if err := l.Validate(); err != nil {
		return link.Link{}, false, fmt.Errorf("find or create: %w", err)
	}
	var stored link.Link // no named result: a write that the caller left may still set it
	var found bool
	err := s.db.Write(ctx, 1, func(t *sqlitedb.Tx) (err error) {
		stored, found, err = s.findOrCreate(t, l, now)
		return err
	})
	if err != nil {
		return link.Link{}, false, fmt.Errorf("find or create %s: %w", l.Key, err)
	}
	return stored, found, nil
}

func (s *Links) findOrCreate(t *sqlitedb.Tx, l link.Link, now time.Time) (link.Link, bool, error) {
	workspace, err := s.workspace(t, l.Workspace)
	if err != nil {
		return link.Link{}, false, err
	}
	if l.CodeKind == link.Chosen && l.Status == link.Active { // most have no twin, and nothing in their way
		first := created(l)
		if inserted, err := s.insertAlias(t, workspace, &first, true); err != nil {
			return link.Link{}, false, err
		} else if inserted {
			return first, false, nil
		}
	}
	same, found, err := findSame(t, workspace, l, now)
	if err == nil && found && same.ID != l.ID {
		// A call that is repeated answers for its own link, whatever stands in by now.
		var again bool
		var own link.Link
		_, own, again, err = s.byKey(t, l.Key)
		found = !again || own.ID != l.ID
	}
	if err != nil || found && same.ID != l.ID {
		return same, found, err
	}
	stored, err := s.create(t, l)
	return stored, false, err
}

// errEnough ends a walk over rows that found what it was for.
var errEnough = errors.New("enough rows")

const (
	twinsWhere = ` FROM links WHERE workspace = ? AND digest = ? AND expires = ? AND status = 1 AND safety = 1 AND max_clicks = 0 `
	sqlHasTwin = `SELECT 1` + twinsWhere + `LIMIT 1`
	sqlTwins   = `SELECT ` + linkrow.Columns + twinsWhere + `ORDER BY id LIMIT ?`
)

// findSame walks the links that may stand in for wanted, oldest first. Most links have none, and a statement of
// as many columns as a link has costs as much to begin as to find out that.
func findSame(t *sqlitedb.Tx, workspace int64, wanted link.Link, now time.Time) (same link.Link, found bool, err error) {
	digest, expires := link.Digest(wanted.Destination), link.Millis(wanted.Expires)
	if has, err := t.One(sqlHasTwin, sqlitedb.Ignore, workspace, digest, expires); err != nil || !has {
		return link.Link{}, false, err
	}
	err = t.Each(sqlTwins, func(row []driver.Value) error {
		_, l, err := linkrow.Scan(row)
		if linkrow.IsDamaged(err) {
			return nil // it stands in for nobody
		}
		if err != nil {
			return err
		}
		if l.Equivalent(wanted, now) {
			same, found = l, true
			return errEnough
		}
		return nil
	}, workspace, digest, expires, int64(link.MaxTwins))
	if errors.Is(err, errEnough) {
		err = nil
	}
	return same, found, err
}

// Import stores links as they are, with their version, their spent clicks and their
// tombstones, in one durable write, and returns a result for each, in order. A link that
// is there already under the same id and key is Found and stays as it is; a key that
// another link has is ErrExists. None is taken for counted: which codes the permutation of
// another store made, ours cannot say. The error is for the whole call: then any of them
// may have happened, and the same call may be made again.
func (s *Links) Import(ctx context.Context, links []link.Link) ([]link.Result, error) {
	return many(ctx, s.db, "import", len(links), func(t *sqlitedb.Tx, i int) link.Result { return s.importOne(t, links[i]) })
}

func (s *Links) importOne(t *sqlitedb.Tx, l link.Link) (r link.Result) {
	if l, r.Err = l.Imported(); r.Err != nil {
		return r
	}
	workspace, err := s.workspace(t, l.Workspace)
	if err != nil {
		r.Err = err
		return r
	}
	r.Link, r.Found, r.Err = s.createAlias(t, workspace, l)
	return r
}
