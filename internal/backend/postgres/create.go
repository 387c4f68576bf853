package postgres

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"curt/internal/backend/postgres/linkrow"
	"curt/internal/backend/postgres/pgdb"
	"curt/internal/backend/postgres/reservations"
	"curt/internal/link"
)

// creator creates links.
type creator struct {
	*linkReader

	config   LinksConfig
	joiner   *joiner
	reserved *reservations.Reservations
}

// Create implements link.Store.
func (s *creator) Create(ctx context.Context, l link.Link) (link.Link, error) {
	if err := s.db.Ready(ctx); err != nil {
		return link.Link{}, fmt.Errorf("create: %w", err)
	}
	if err := linkrow.Storable(&l); err != nil {
		return link.Link{}, fmt.Errorf("create: %w", err)
	}
	within, cancel := pgdb.Limited(ctx) // the wait for its turn included
	defer cancel()
	stored, err := s.joiner.submit(within, l)
	if err != nil {
		return link.Link{}, fmt.Errorf("create %s: %w", l.Key, err)
	}
	return stored, nil
}

// createJoined creates the links of a batch. Its callers may be gone.
func (s *creator) createJoined(batch []*creation) {
	ctx, cancel := pgdb.Limited(context.Background())
	defer cancel()
	links := make([]link.Link, len(batch))
	for i, c := range batch {
		links[i] = c.link
	}
	results, err := s.createAll(ctx, s.db.WritePool, links)
	s.db.ResetIfReadOnly(err)
	err = pgdb.WriteError(ctx, err)
	for i, c := range batch {
		if c.result, c.err = results[i].link, results[i].err; !results[i].done {
			c.err = err
		}
	}
}

// outcome is what came of one create.
type outcome struct {
	link link.Link
	err  error // a sentinel of package link
	done bool  // false: the error of the whole call is the answer
}

// createAll creates storable links, each as if those before it had been created first.
// Unless q is a transaction, what was done before an error stays.
func (s *creator) createAll(ctx context.Context, q pgdb.Querier, links []link.Link) ([]outcome, error) {
	results := make([]outcome, len(links))
	left := make([]int, len(links))
	for i := range links {
		left[i] = i
		links[i].Version, links[i].Spent = 1, 0
		links[i] = links[i].Normal()
	}
	// Each round decides at least the first entry that is left.
	for len(left) > 0 {
		now, later := firsts(links, left)
		lost, err := s.insert(ctx, q, links, now, results)
		if err != nil {
			return results, err
		}
		if len(lost)+len(later) == 0 {
			return results, nil
		}
		if left, err = s.resolve(ctx, q, links, merge(lost, later), results); err != nil {
			return results, err
		}
	}
	return results, nil
}

// owned is an id, which is unique within its workspace.
type owned struct {
	workspace link.WorkspaceID
	id        link.ID
}

// firsts parts the entries that are left into those that have neither the key nor the id
// of an earlier one, and the rest.
func firsts(links []link.Link, left []int) (now, later []int) {
	if len(left) == 1 {
		return left, nil
	}
	keys, ids := make(map[link.Key]bool, len(left)), make(map[owned]bool, len(left))
	for _, i := range left {
		key, id := links[i].Key, owned{links[i].Workspace, links[i].ID}
		if keys[key] || ids[id] {
			later = append(later, i)
		} else {
			now = append(now, i)
		}
		keys[key], ids[id] = true, true
	}
	return now, later
}

// merge merges two ascending lists.
func merge(a, b []int) []int {
	all := make([]int, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		if a[0] < b[0] {
			all, a = append(all, a[0]), a[1:]
		} else {
			all, b = append(all, b[0]), b[1:]
		}
	}
	return append(append(all, a...), b...)
}

const (
	// One statement decides the creates of many callers: no row where the key or the id
	// is taken. It inserts in the order of keys, so that two such statements wait for
	// each other in one direction only; the change log gets the order of the callers.
	sqlCreate = `WITH given AS (
	SELECT * FROM unnest($1::bigint[], ` + linkrow.CreateArrays + `, $26::int[]) AS t (place, ` + linkrow.CreateColumns + `, tags, turn)
), made AS (
	INSERT INTO links (place, ` + linkrow.CreateColumns + `, tags, spent, version)
	SELECT place, ` + linkrow.CreateColumns + `, tags::text[], 0, 1
	FROM given ORDER BY place, domain COLLATE "C", code COLLATE "C"
	ON CONFLICT DO NOTHING RETURNING place, domain, code, minted, id, workspace, created_by
), created AS (
	SELECT given.turn, made.* FROM made JOIN given
	ON given.place = made.place AND given.domain = made.domain AND given.code = made.code
), head AS (
	UPDATE change_head SET seq = change_head.seq + news.many
	FROM (SELECT count(*) AS many FROM made WHERE NOT minted) AS news
	WHERE change_head.n = 1 AND news.many > 0 RETURNING change_head.seq - news.many AS base
), logged AS (
	INSERT INTO changes (seq, domain, code, version, kind, id, workspace, principal, at, region)
	SELECT head.base + row_number() OVER (ORDER BY created.turn), created.domain, created.code, 1, 'created', created.id,
		created.workspace, created.created_by, ` + pgdb.NowMillis + `, $27
	FROM head CROSS JOIN created WHERE NOT created.minted
)
SELECT turn FROM created`
)

// insert sends the entries in one statement and returns those whose key or id is taken.
// Should a value be refused that storable let pass, only its own link pays for it.
func (s *creator) insert(ctx context.Context, q pgdb.Querier, links []link.Link, entries []int, results []outcome) (lost []int, err error) {
	if pool, ok := q.(*pgxpool.Pool); ok {
		switch done, err := s.insertCounted(ctx, pool, links, entries); {
		case err != nil:
			return nil, err
		case done:
			for _, i := range entries {
				s.created(&links[i], &results[i])
			}
			return nil, nil
		}
	}
	made := make(map[int]bool, len(entries))
	args, turns := s.createArgs(links, entries)
	send := func() error {
		return pgdb.Each(ctx, q, func(row pgx.Row) error {
			var turn int32
			err := row.Scan(&turn)
			made[int(turn)] = true
			return err
		}, sqlCreate, append(args, turns, s.config.Region)...)
	}
	_, inTransaction := q.(pgx.Tx) // which ends with its first error
	if err = send(); !inTransaction && pgdb.IsRepeatable(err) {
		err = pgdb.Retry(ctx, send)
	}
	switch {
	case pgdb.IsData(err) && len(entries) == 1:
		results[entries[0]] = outcome{err: fmt.Errorf("%w: %w", link.ErrInvalid, err), done: true}
		return nil, nil
	case pgdb.IsData(err) && !inTransaction:
		for _, i := range entries {
			one, err := s.insert(ctx, q, links, []int{i}, results)
			if err != nil {
				return nil, err
			}
			lost = append(lost, one...)
		}
		return lost, nil
	case err != nil:
		return nil, err
	}
	for _, i := range entries {
		if !made[i] {
			lost = append(lost, i)
			continue
		}
		if results[i] = (outcome{link: links[i], done: true}); !inTransaction {
			s.created(&links[i], &results[i])
		}
	}
	return lost, nil
}

// created notes that a link is stored.
func (s *creator) created(l *link.Link, result *outcome) {
	*result = outcome{link: *l, done: true}
	if s.config.Stored != nil {
		s.config.Stored(l.ID)
	}
}

// resolve answers entries that were not inserted by what is stored, a reservation perhaps. Those that
// meet nothing are left: what was in their way is gone, or was refused itself.
func (s *creator) resolve(ctx context.Context, q pgdb.Querier, links []link.Link, entries []int, results []outcome) (left []int, err error) {
	taken, err := s.taken(ctx, q, links, entries)
	if err == nil && slices.ContainsFunc(entries, func(i int) bool { return taken[i].ID == links[i].ID }) {
		err = confirm(ctx, q) // an earlier try may have stored them
	}
	if err != nil {
		return nil, err
	}
	byID, err := s.linksByID(ctx, q, links, entries)
	if err != nil {
		return nil, err
	}
	reserved, entries := reservedOf(taken, byID, entries)
	again, err := s.redeem(ctx, q, links, reserved, results)
	if err != nil {
		return nil, err
	}
	keys, ids := make(map[link.Key]bool), make(map[owned]bool) // of those that are left
	for _, i := range entries {
		l := &links[i]
		there, isTaken := taken[i]
		other, known := byID[i]
		switch {
		case keys[l.Key] || ids[owned{l.Workspace, l.ID}] || !known && !isTaken:
			left = append(left, i)
			keys[l.Key], ids[owned{l.Workspace, l.ID}] = true, true
			continue
		case isTaken && there.ID == l.ID:
			results[i].link = there.Normal()
		case isTaken:
			results[i].err = link.ErrExists
		default:
			results[i].err = fmt.Errorf("id belongs to %s: %w", other.Key, link.ErrConflict)
		}
		results[i].done = true
	}
	return merge(left, again), nil
}

const sqlLinksByID = `SELECT ` + linkrow.Columns + `, turn FROM unnest($1::int[], $2::uuid[], $3::text[]) AS t (turn, wanted, owner)
	JOIN links ON id = wanted AND workspace = owner`

func (s *creator) linksByID(ctx context.Context, q pgdb.Querier, links []link.Link, entries []int) (map[int]link.Link, error) {
	var turns []int32
	var ids []pgtype.UUID
	var workspaces []string
	for _, i := range entries {
		turns, ids, workspaces = append(turns, int32(i)), append(ids, pgdb.UUID(links[i].ID)), append(workspaces, string(links[i].Workspace))
	}
	return byTurn(ctx, q, sqlLinksByID, turns, ids, workspaces)
}

// byTurn returns the links of a query by the number in its last column.
func byTurn(ctx context.Context, q pgdb.Querier, query string, args ...any) (map[int]link.Link, error) {
	found := make(map[int]link.Link)
	err := pgdb.Each(ctx, q, func(row pgx.Row) error {
		var turn int32
		l, err := linkrow.Scan(row, &turn)
		found[int(turn)] = l
		return err
	}, query, args...)
	return found, err
}

const sqlTaken = `SELECT ` + linkrow.Columns + `, turn FROM unnest($1::int[], $2::bigint[], $3::text[], $4::text[]) AS t (turn, at, host, name)
	JOIN links ON place = at AND domain = host AND code = name`

func (s *creator) taken(ctx context.Context, q pgdb.Querier, links []link.Link, entries []int) (map[int]link.Link, error) {
	return byTurn(ctx, q, sqlTaken, s.keyArgs(entries, func(i int) link.Key { return links[i].Key })...)
}

// CreateMany implements link.Batcher: as many statements as the entries need, one when
// they are new and do not dedupe.
func (s *creator) CreateMany(ctx context.Context, now time.Time, entries []link.Creation) ([]link.Result, error) {
	results := make([]link.Result, len(entries))
	err := s.db.WriteWithin(ctx, pgdb.StatementLimit, func(ctx context.Context) error {
		return s.createEntries(ctx, now, entries, results)
	})
	if err != nil {
		return nil, fmt.Errorf("create %d links: %w", len(entries), err)
	}
	return results, nil
}

// createEntries joins neighbours that do not dedupe.
func (s *creator) createEntries(ctx context.Context, now time.Time, entries []link.Creation, results []link.Result) error {
	var run []int
	flush := func() error {
		links := make([]link.Link, len(run))
		for j, i := range run {
			links[j] = entries[i].Link
		}
		outcomes, err := s.createAll(ctx, s.db.WritePool, links)
		for j, i := range run {
			results[i].Link, results[i].Err = outcomes[j].link, outcomes[j].err
		}
		run = run[:0]
		return err
	}
	for i := range entries {
		switch err := linkrow.Storable(&entries[i].Link); {
		case err != nil:
			results[i].Err = err
		case !entries[i].Dedupe:
			run = append(run, i)
		default:
			if err := flush(); err != nil {
				return err
			}
			r := &results[i]
			r.Link, r.Found, err = s.findOrCreate(ctx, entries[i].Link, now)
			if err != nil && !isAnswer(err) {
				return err
			}
			r.Err = err
		}
	}
	return flush()
}

// isAnswer reports an error that is about one link.
func isAnswer(err error) bool {
	return errors.Is(err, link.ErrExists) || errors.Is(err, link.ErrConflict) || errors.Is(err, link.ErrInvalid)
}

// createArgs are the arguments of sqlInsertCounted: an array each of the places and of createColumns
// with the tags. turns is the last one of sqlCreate.
func (s *creator) createArgs(links []link.Link, entries []int) (args []any, turns []int32) {
	n := len(entries)
	turns = make([]int32, n)
	place, sum, needs, extra := make([]int64, n), make([]int64, n), make([]int64, n), make([]string, n)
	for at, i := range entries {
		l := &links[i]
		turns[at], place[at], sum[at], needs[at] = int32(i), s.place(l.Key.Code), link.Digest(l.Destination), int64(l.Needs())
		extra[at], _ = l.Extra() // storable has seen that it can be written
	}
	args = append(make([]any, 0, 27), place, sum, needs, extra)
	fields := link.Fields()
	for i := range fields {
		if f := &fields[i]; linkrow.Written(f) {
			args = append(args, array(f, links, entries))
		}
	}
	return args, turns
}

// array holds one field of many links.
func array(f *link.Field, links []link.Link, entries []int) any {
	switch linkrow.Value(f, new(link.Link)).(type) {
	case string:
		return arrayOf[string](f, links, entries)
	case bool:
		return arrayOf[bool](f, links, entries)
	case int16:
		return arrayOf[int16](f, links, entries)
	case int64:
		return arrayOf[int64](f, links, entries)
	}
	return arrayOf[pgtype.UUID](f, links, entries)
}

func arrayOf[T any](f *link.Field, links []link.Link, entries []int) []T {
	all := make([]T, len(entries))
	for at, i := range entries {
		all[at], _ = linkrow.Value(f, &links[i]).(T) // each value of a field has one type
	}
	return all
}

// insertCounted inserts entries whose codes the permutation made, all or none. done is false when one
// of them is of another kind, or was refused: then each has to be decided by itself.
func (s *creator) insertCounted(ctx context.Context, pool *pgxpool.Pool, links []link.Link, entries []int) (done bool, err error) {
	for _, i := range entries {
		if links[i].CodeKind == link.Chosen {
			return false, nil
		}
	}
	args, _ := s.createArgs(links, s.ordered(links, entries))
	err = pgdb.Retry(ctx, func() error { return s.sendCounted(ctx, pool, args) })
	if pgdb.IsData(err) {
		return false, nil
	}
	return err == nil, err
}

// ordered returns entries in the order of keys, so that two statements wait for each other
// in one direction only.
func (s *creator) ordered(links []link.Link, entries []int) []int {
	type placed struct {
		entry int
		place int64 // to find it costs more than to compare
	}
	all := make([]placed, len(entries))
	for n, i := range entries {
		all[n] = placed{i, s.place(links[i].Key.Code)}
	}
	slices.SortFunc(all, func(a, b placed) int {
		x, y := &links[a.entry].Key, &links[b.entry].Key
		return cmp.Or(cmp.Compare(a.place, b.place), cmp.Compare(x.Domain, y.Domain), cmp.Compare(x.Code, y.Code))
	})
	sorted := make([]int, len(all))
	for n := range all {
		sorted[n] = all[n].entry
	}
	return sorted
}

// Codes that the permutation made are almost never taken, and are not in the change log:
// for them a plain INSERT does, which fails as a whole where one is.
const sqlInsertCounted = `INSERT INTO links (place, ` + linkrow.CreateColumns + `, tags, spent, version)
	SELECT place, ` + linkrow.CreateColumns + `, tags::text[], 0, 1
	FROM unnest($1::bigint[], ` + linkrow.CreateArrays + `) AS t (place, ` + linkrow.CreateColumns + `, tags)`

// sendCounted sends the statement with the arguments that createArgs made.
func (s *creator) sendCounted(ctx context.Context, pool *pgxpool.Pool, args []any) error {
	c, err := pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer c.Release()
	_, err = c.Exec(ctx, sqlInsertCounted, append([]any{pgdb.Prepared(c.Conn())}, args...)...)
	return err
}

// FindOrCreate implements link.Deduper.
func (s *creator) FindOrCreate(ctx context.Context, l link.Link, now time.Time) (stored link.Link, found bool, err error) {
	if err := linkrow.Storable(&l); err != nil {
		return link.Link{}, false, fmt.Errorf("find or create: %w", err)
	}
	// Callers who want the same take turns.
	err = s.db.WriteWithin(ctx, pgdb.StatementLimit, func(ctx context.Context) error {
		stored, found, err = s.findOrCreate(ctx, l, now)
		return err
	})
	if err != nil {
		return link.Link{}, false, fmt.Errorf("find or create %s: %w", l.Key, err)
	}
	return stored, found, nil
}

// Until the transaction ends, nobody else looks for the same destination to create it.
const sqlAlone = `SELECT pg_advisory_xact_lock($1)`

// findOrCreate looks without a lock first, which mostly suffices.
func (s *creator) findOrCreate(ctx context.Context, l link.Link, now time.Time) (stored link.Link, found bool, err error) {
	err = s.db.RetryRead(ctx, func() error {
		stored, found, err = s.standIn(ctx, s.db.ReadPool, l, now)
		return err
	})
	if err != nil || found {
		return stored, found, err
	}
	err = pgdb.Retry(ctx, func() error {
		return pgx.BeginFunc(ctx, s.db.WritePool, func(t pgx.Tx) error {
			if _, err := t.Exec(ctx, sqlAlone, lockOf(l)); err != nil {
				return err
			}
			// This statement sees what the one before us has committed.
			stored, found, err = s.standIn(ctx, t, l, now)
			if err != nil || found {
				return err
			}
			outcomes, err := s.createAll(ctx, t, []link.Link{l})
			if err == nil {
				stored, err = outcomes[0].link, outcomes[0].err
			}
			return err
		})
	})
	if err == nil && !found && s.config.Stored != nil {
		s.config.Stored(stored.ID)
	}
	return stored, found, err
}

// standIn finds another link that stands in for l, unless l itself is stored: a call that
// is repeated answers for its own link, whatever stands in by now.
func (s *creator) standIn(ctx context.Context, q pgdb.Querier, l link.Link, now time.Time) (same link.Link, found bool, err error) {
	same, found, err = findSame(ctx, q, l, now)
	if err != nil || !found || same.ID == l.ID {
		return link.Link{}, false, err
	}
	own, there, err := s.byKey(ctx, q, l.Key)
	return same, !there || own.ID != l.ID, err
}

// lockOf returns what stands for all links that may be the same as l.
func lockOf(l link.Link) int64 {
	sum := sha256.Sum256(fmt.Appendf(nil, "curt dedupe %q %q %d", l.Workspace, l.Destination, link.Millis(l.Expires)))
	return int64(binary.BigEndian.Uint64(sum[:]))
}
