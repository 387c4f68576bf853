package movein

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"curt/internal/backend/coldsql/coldcopy"
	"curt/internal/backend/postgres/linkrow"
	"curt/internal/backend/postgres/pgdb"
	"curt/internal/backend/postgres/reservations"
	"curt/internal/link"
)

// UnfitError names links whose texts PostgreSQL cannot keep.
type UnfitError struct{ Keys []link.Key }

// Error returns one line.
func (e *UnfitError) Error() string {
	names := make([]string, 0, len(e.Keys))
	for _, k := range e.Keys {
		names = append(names, k.String())
	}
	return "texts that are not UTF-8, or have a NUL, which PostgreSQL does not keep; change or delete first: " + strings.Join(names, ", ")
}

// fit returns an UnfitError for links with such texts.
func fit(links []link.Link) error {
	var unfit UnfitError
	fields := link.Fields()
	bad := func(s string) bool { return !utf8.ValidString(s) || strings.ContainsRune(s, 0) }
	for n := range links {
		for i := range fields {
			is := false
			switch x := fields[i].Of(&links[n]).(type) {
			case *string:
				is = fields[i].Column != "" && bad(*x)
			case *[]string:
				is = fields[i].Column != "" && bad(strings.Join(*x, ""))
			}
			if is && len(unfit.Keys) < 10 {
				unfit.Keys = append(unfit.Keys, links[n].Key)
				break
			}
		}
	}
	if len(unfit.Keys) > 0 {
		return &unfit
	}
	return nil
}

// columns are those of links, in the order of values. made stays NULL: a link that was moved was not
// created here, and no follower of creates is told of it.
func columns() []string {
	names := []string{"place", "digest", "needs", "extra", "made"}
	fields := link.Fields()
	for i := range fields {
		if fields[i].Column != "" {
			names = append(names, fields[i].Column)
		}
	}
	return names
}

// values are those of a link.
func (t *Target) values(l *link.Link) ([]any, error) {
	extra, err := l.Extra()
	if err != nil {
		return nil, err
	}
	row := []any{t.place(l.Key.Code), link.Digest(l.Destination), int64(l.Needs()), extra, nil}
	fields := link.Fields()
	for i := range fields {
		f := &fields[i]
		if f.Column == "" {
			continue
		}
		if tags, is := f.Of(l).(*[]string); is {
			row = append(row, append([]string{}, *tags...))
			continue
		}
		row = append(row, linkrow.Value(f, l))
	}
	return row, nil
}

// place returns where a code lies.
func (t *Target) place(c link.Code) int64 {
	if place, ok := t.codes.Position(c); ok {
		return place
	}
	return linkrow.Nowhere
}

func (t *Target) keyColumns(keys []link.Key) (place []int64, domain, code []string) {
	for _, k := range keys {
		place, domain, code = append(place, t.place(k.Code)), append(domain, string(k.Domain)), append(code, string(k.Code))
	}
	return place, domain, code
}

const sqlDropLinks = `DELETE FROM links USING unnest($1::bigint[], $2::text[], $3::text[]) AS d (place, domain, code)
	WHERE links.place = d.place AND links.domain = d.domain AND links.code = d.code`

// PutLinks stores links as they are, in the place of what is stored under their keys, and how far the
// move has come with them, in one transaction. A link may come several times; the last one counts.
// It is a DELETE and a COPY: an UPDATE would have triggers append to the change log.
func (t *Target) PutLinks(ctx context.Context, links []link.Link, s *State) error {
	links = newest(links)
	if err := fit(links); err != nil {
		return err
	}
	rows := make([][]any, len(links))
	keys := make([]link.Key, len(links))
	for i := range links {
		var err error
		if rows[i], err = t.values(&links[i]); err != nil {
			return fmt.Errorf("%s: %w", links[i].Key, err)
		}
		keys[i] = links[i].Key
	}
	place, domain, code := t.keyColumns(keys)
	return t.transact(ctx, func(ctx context.Context, tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, sqlDropLinks, place, domain, code); err != nil {
			return fmt.Errorf("replace links: %w", err)
		}
		if _, err := tx.CopyFrom(ctx, pgx.Identifier{"links"}, columns(), pgx.CopyFromRows(rows)); err != nil {
			return fmt.Errorf("store links: %w", err)
		}
		return save(ctx, tx, s)
	})
}

// transact is Transact with the time that a page takes.
func (t *Target) transact(ctx context.Context, f func(context.Context, pgx.Tx) error) error {
	return t.db.WriteWithin(ctx, pgdb.StatementLimit, func(ctx context.Context) error {
		return pgdb.Retry(ctx, func() error {
			return pgx.BeginFunc(ctx, t.db.WritePool, func(tx pgx.Tx) error { return f(ctx, tx) })
		})
	})
}

// newest returns the last one of each key.
func newest(links []link.Link) []link.Link {
	at := make(map[link.Key]int, len(links))
	all := make([]link.Link, 0, len(links))
	for i := range links {
		if n, there := at[links[i].Key]; there {
			all[n] = links[i]
			continue
		}
		at[links[i].Key] = len(all)
		all = append(all, links[i])
	}
	return all
}

// A row of version 0 is a reservation (package reservations): it lasts for five minutes, and stays behind.
const sqlGetLinks = `SELECT ` + linkrow.Columns + ` FROM links WHERE version > 0 AND (place, domain, code) IN
	(SELECT * FROM unnest($1::bigint[], $2::text[], $3::text[]))`

// Same returns coldcopy.ErrDiffers unless the links are stored as they are.
func (t *Target) Same(ctx context.Context, links []link.Link) error {
	links = newest(links)
	keys := make([]link.Key, len(links))
	var here, there coldcopy.Digest
	for i := range links {
		keys[i] = links[i].Key
		d, err := coldcopy.OfLink(&links[i])
		if err != nil {
			return err
		}
		here.Add(d)
	}
	place, domain, code := t.keyColumns(keys)
	err := t.db.ReadMany(ctx, func(ctx context.Context, q pgdb.Querier) error {
		there = coldcopy.Digest{}
		return pgdb.Each(ctx, q, func(row pgx.Row) error { return addLink(&there, row) }, sqlGetLinks, place, domain, code)
	})
	if err == nil && here != there {
		err = fmt.Errorf("%d changed links: %w", len(links), coldcopy.ErrDiffers)
	}
	return err
}

func addLink(sum *coldcopy.Digest, row pgx.Row) error {
	l, err := linkrow.Scan(row)
	if err != nil {
		return err
	}
	d, err := coldcopy.OfLink(&l)
	sum.Add(d)
	return err
}

const (
	sqlLinksAfter = `SELECT ` + linkrow.Columns + `, place FROM links WHERE version > 0 AND (place, domain, code) > ($1, $2, $3)
	ORDER BY place, domain, code LIMIT $4`
	sqlCountLinks = `SELECT count(*) FROM links WHERE version > 0`
	sqlDropAll    = `TRUNCATE links`
	sqlLimited    = `SELECT domain, code FROM links WHERE max_clicks <> 0`
)

// Page returns up to n links behind a cursor, tombstones included, and the cursor behind them; the empty
// one at the end.
func (t *Target) Page(ctx context.Context, after link.Cursor, n int) (page []link.Link, next link.Cursor, err error) {
	at := link.NumberedKey{N: -1 << 63}
	if after != "" {
		if at, err = link.ParseNumberedKey(after); err != nil {
			return nil, "", err
		}
	}
	var last int64
	err = t.db.ReadMany(ctx, func(ctx context.Context, q pgdb.Querier) error {
		page = page[:0]
		return pgdb.Each(ctx, q, func(row pgx.Row) error {
			l, err := linkrow.Scan(row, &last)
			page = append(page, l)
			return err
		}, sqlLinksAfter, at.N, string(at.Key.Domain), string(at.Key.Code), n)
	})
	if err == nil && len(page) == n {
		next = link.NumberedKey{N: last, Key: page[n-1].Key}.Cursor()
	}
	return page, next, err
}

// Each calls f with all links, by pages.
func (t *Target) Each(ctx context.Context, f func([]link.Link) error) error {
	for after := link.Cursor(""); ; {
		page, next, err := t.Page(ctx, after, walkPage)
		if err == nil {
			err = f(page)
		}
		if err != nil || next == "" {
			return err
		}
		after = next
	}
}

// Get returns links as they are now; one that is not there is left out.
func (t *Target) Get(ctx context.Context, keys []link.Key) (links []link.Link, err error) {
	place, domain, code := t.keyColumns(keys)
	err = t.db.ReadMany(ctx, func(ctx context.Context, q pgdb.Querier) error {
		links = nil
		return pgdb.Each(ctx, q, func(row pgx.Row) error {
			l, err := linkrow.Scan(row)
			links = append(links, l)
			return err
		}, sqlGetLinks, place, domain, code)
	})
	return links, err
}

// Digest reads all links.
func (t *Target) Digest(ctx context.Context, told func(rows int64)) (coldcopy.Digest, error) {
	return coldcopy.OfLinks(func(page func([]link.Link) error) error { return t.Each(ctx, page) }, told)
}

// CountLinks returns how many links there are, tombstones included.
func (t *Target) CountLinks(ctx context.Context) (n int64, err error) {
	err = t.transact(ctx, func(ctx context.Context, tx pgx.Tx) error { return tx.QueryRow(ctx, sqlCountLinks).Scan(&n) })
	return n, err
}

// DropLinks forgets all links: they are read anew.
func (t *Target) DropLinks(ctx context.Context, s *State) error {
	return t.transact(ctx, func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, sqlDropAll)
		return errors.Join(err, save(ctx, tx, s))
	})
}

// Limited returns the keys of links with max_clicks, whose counter changes without a word in the log.
func (t *Target) Limited(ctx context.Context) (keys []link.Key, err error) {
	err = t.transact(ctx, func(ctx context.Context, tx pgx.Tx) error {
		keys = nil
		return pgdb.Each(ctx, tx, func(row pgx.Row) error {
			var k link.Key
			err := row.Scan((*string)(&k.Domain), (*string)(&k.Code))
			keys = append(keys, k)
			return err
		}, sqlLimited)
	})
	return keys, err
}

// Import stores links as they are, in a database that no server uses, and returns a result for each. A
// link that is there already under the same id and key is Found and stays as it is; a key that another
// link has is ErrExists, and one that another workspace has reserved a HeldError. None is taken for counted, as their
// codes may be of another store.
func (t *Target) Import(ctx context.Context, links []link.Link) ([]link.Result, error) {
	results := make([]link.Result, len(links))
	keys := make([]link.Key, len(links))
	for i := range links {
		keys[i] = links[i].Key
	}
	there, err := t.Get(ctx, keys)
	if err != nil {
		return nil, err
	}
	held, err := t.held(ctx, keys)
	if err != nil {
		return nil, err
	}
	taken := make(map[link.Key]link.Link, len(there))
	for i := range there {
		taken[there[i].Key] = there[i]
	}
	var fresh []link.Link
	for i := range links {
		l, r := links[i], &results[i]
		if r.Err = importable(&l); r.Err != nil {
			continue
		}
		if other, is := taken[l.Key]; is {
			if r.Link, r.Found = other, other.ID == l.ID; !r.Found {
				*r = link.Result{Err: link.ErrExists}
			}
			continue
		}
		if other, is := held[l.Key]; is && other.Workspace != l.Workspace {
			r.Err = &link.HeldError{Reservation: other}
			continue
		}
		taken[l.Key], r.Link = l, l
		fresh = append(fresh, l)
	}
	if len(fresh) > 0 {
		err = t.PutLinks(ctx, fresh, nil)
	}
	return results, err
}

// held returns the reservations of keys that have not lapsed.
func (t *Target) held(ctx context.Context, keys []link.Key) (map[link.Key]link.Reservation, error) {
	held, of := map[link.Key]link.Reservation{}, reservations.New(t.db, t.place, nil)
	for chunk := range slices.Chunk(keys, link.MaxPage) {
		occupants, err := of.Occupants(ctx, chunk)
		if err != nil {
			return nil, err
		}
		for i := range occupants {
			if o := &occupants[i]; o.Held() {
				held[chunk[i]] = o.Reservation
			}
		}
	}
	return held, nil
}

// importable makes of a link what is stored.
func importable(l *link.Link) error {
	imported, err := l.Imported()
	if err != nil {
		return err
	}
	*l = imported
	return fit(append([]link.Link(nil), *l))
}
