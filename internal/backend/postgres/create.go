package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"curt/internal/link"
)

const (
	// One statement decides the creates of many callers: no row where the key or the id
	// is taken. It inserts in the order of keys, so that two such statements wait for
	// each other in one direction only; the change log gets the order of the callers.
	sqlCreate = `WITH given AS (
	SELECT * FROM unnest($1::bigint[], ` + createArrays + `, $26::int[]) AS t (place, ` + createColumns + `, tags, turn)
), made AS (
	INSERT INTO links (place, ` + createColumns + `, tags, spent, version)
	SELECT place, ` + createColumns + `, tags::text[], 0, 1
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
		created.workspace, created.created_by, ` + nowMillis + `, $27
	FROM head CROSS JOIN created WHERE NOT created.minted
)
SELECT turn FROM created`

	// Codes that the permutation made are almost never taken, and are not in the change log:
	// for them a plain INSERT does, which fails as a whole where one is.
	sqlInsertCounted = `INSERT INTO links (place, ` + createColumns + `, tags, spent, version)
	SELECT place, ` + createColumns + `, tags::text[], 0, 1
	FROM unnest($1::bigint[], ` + createArrays + `) AS t (place, ` + createColumns + `, tags)`

	sqlLinksByID = `SELECT ` + linkColumns + `, turn FROM unnest($1::int[], $2::uuid[], $3::text[]) AS t (turn, wanted, owner)
	JOIN links ON id = wanted AND workspace = owner`
	sqlTaken = `SELECT ` + linkColumns + `, turn FROM unnest($1::int[], $2::bigint[], $3::text[], $4::text[]) AS t (turn, at, host, name)
	JOIN links ON place = at AND domain = host AND code = name`
)

// Create implements link.Store.
func (s *Links) Create(ctx context.Context, l link.Link) (link.Link, error) {
	if err := s.ready(ctx); err != nil {
		return link.Link{}, fmt.Errorf("create: %w", err)
	}
	if err := storable(&l); err != nil {
		return link.Link{}, fmt.Errorf("create: %w", err)
	}
	within, cancel := limited(ctx) // the wait for its turn included
	defer cancel()
	stored, err := s.joiner.submit(within, l)
	if err != nil {
		return link.Link{}, fmt.Errorf("create %s: %w", l.Key, err)
	}
	return stored, nil
}

// createJoined creates the links of a batch. Its callers may be gone.
func (s *Links) createJoined(batch []*creation) {
	ctx, cancel := limited(context.Background())
	defer cancel()
	links := make([]link.Link, len(batch))
	for i, c := range batch {
		links[i] = c.link
	}
	results, err := s.createAll(ctx, s.write, links)
	s.heard(err)
	err = writeError(ctx, err)
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
func (s *Links) createAll(ctx context.Context, q querier, links []link.Link) ([]outcome, error) {
	results := make([]outcome, len(links))
	left := make([]int, len(links))
	for i := range links {
		left[i] = i
		links[i].Version, links[i].Spent = 1, 0
		links[i] = normal(links[i])
	}
	// Each round settles the first entry that is left at least.
	for len(left) > 0 {
		now, later := firsts(links, left)
		lost, err := s.insert(ctx, q, links, now, results)
		if err != nil {
			return results, err
		}
		if len(lost)+len(later) == 0 {
			return results, nil
		}
		if left, err = s.settle(ctx, q, links, merge(lost, later), results); err != nil {
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

// insert sends the entries in one statement and returns those whose key or id is taken.
// Should a value be refused that storable let pass, only its own link pays for it.
func (s *Links) insert(ctx context.Context, q querier, links []link.Link, entries []int, results []outcome) (lost []int, err error) {
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
		return each(ctx, q, func(row pgx.Row) error {
			var turn int32
			err := row.Scan(&turn)
			made[int(turn)] = true
			return err
		}, sqlCreate, append(args, turns, s.config.Region)...)
	}
	_, inTransaction := q.(pgx.Tx) // which ends with its first error
	if err = send(); !inTransaction && isRepeatable(err) {
		err = repeated(ctx, send)
	}
	switch {
	case isData(err) && len(entries) == 1:
		results[entries[0]] = outcome{err: fmt.Errorf("%w: %w", link.ErrInvalid, err), done: true}
		return nil, nil
	case isData(err) && !inTransaction:
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
func (s *Links) created(l *link.Link, result *outcome) {
	*result = outcome{link: *l, done: true}
	if s.config.Stored != nil {
		s.config.Stored(l.ID)
	}
}

// settle answers entries that were not inserted by what is stored. Those that meet
// nothing are left: what was in their way is gone, or was refused itself.
func (s *Links) settle(ctx context.Context, q querier, links []link.Link, entries []int, results []outcome) (left []int, err error) {
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
			results[i].link = normal(there)
		case isTaken:
			results[i].err = link.ErrExists
		default:
			results[i].err = fmt.Errorf("id belongs to %s: %w", other.Key, link.ErrConflict)
		}
		results[i].done = true
	}
	return left, nil
}

func (s *Links) linksByID(ctx context.Context, q querier, links []link.Link, entries []int) (map[int]link.Link, error) {
	var turns []int32
	var ids []pgtype.UUID
	var workspaces []string
	for _, i := range entries {
		turns, ids, workspaces = append(turns, int32(i)), append(ids, uuid(links[i].ID)), append(workspaces, string(links[i].Workspace))
	}
	found := make(map[int]link.Link)
	err := each(ctx, q, func(row pgx.Row) error {
		var turn int32
		l, err := scanLink(row, &turn)
		found[int(turn)] = l
		return err
	}, sqlLinksByID, turns, ids, workspaces)
	return found, err
}

func (s *Links) taken(ctx context.Context, q querier, links []link.Link, entries []int) (map[int]link.Link, error) {
	found := make(map[int]link.Link)
	err := each(ctx, q, func(row pgx.Row) error {
		var turn int32
		l, err := scanLink(row, &turn)
		found[int(turn)] = l
		return err
	}, sqlTaken, s.keyArgs(entries, func(i int) link.Key { return links[i].Key })...)
	return found, err
}

// CreateMany implements link.Batcher: as many statements as the entries need, one when
// they are new and do not dedupe.
func (s *Links) CreateMany(ctx context.Context, now time.Time, entries []link.Creation) ([]link.Result, error) {
	if err := s.ready(ctx); err != nil {
		return nil, fmt.Errorf("create %d links: %w", len(entries), err)
	}
	within, cancel := context.WithTimeout(ctx, statementLimit)
	defer cancel()
	results := make([]link.Result, len(entries))
	err := s.createEntries(within, now, entries, results)
	s.heard(err)
	if err = writeError(ctx, err); err != nil {
		return nil, fmt.Errorf("create %d links: %w", len(entries), err)
	}
	return results, nil
}

// createEntries joins neighbours that do not dedupe.
func (s *Links) createEntries(ctx context.Context, now time.Time, entries []link.Creation, results []link.Result) error {
	var run []int
	flush := func() error {
		links := make([]link.Link, len(run))
		for j, i := range run {
			links[j] = entries[i].Link
		}
		outcomes, err := s.createAll(ctx, s.write, links)
		for j, i := range run {
			results[i].Link, results[i].Err = outcomes[j].link, outcomes[j].err
		}
		run = run[:0]
		return err
	}
	for i := range entries {
		switch err := storable(&entries[i].Link); {
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
