// Package linkrow says how a link lies in its row in PostgreSQL: columns, and values as they are
// written and read. Read Scan first.
package linkrow

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"curt/internal/backend/postgres/pgdb"
	"curt/internal/link"
)

const (
	// The columns of fields, in the order of the table of fields (a test holds it to that).
	Columns = `id, workspace, domain, code, minted::int, destination, status, safety, redirect, starts, expires, created, updated,
	max_clicks, spent, fallback, forward_query, no_index, cacheable, created_by, title, tags, version, needs, extra`
	// What a create writes, and what a change may, in the order of the table, behind what follows
	// from other columns. Tags come last, as text.
	CreateColumns = `digest, needs, extra, id, workspace, domain, code, minted, destination, status, safety, redirect, starts, expires,
	created, updated, max_clicks, fallback, forward_query, no_index, cacheable, created_by, title`
	CreateArrays = `$2::bigint[], $3::bigint[], $4::text[], $5::uuid[], $6::text[], $7::text[], $8::text[], $9::bool[], $10::text[],
	$11::smallint[], $12::smallint[], $13::smallint[], $14::bigint[], $15::bigint[], $16::bigint[], $17::bigint[], $18::bigint[],
	$19::text[], $20::bool[], $21::bool[], $22::bool[], $23::text[], $24::text[], $25::text[]`
	ChangingColumns = `digest, needs, extra, workspace, destination, status, safety, redirect, starts, expires,
	updated, max_clicks, fallback, forward_query, no_index, cacheable, created_by, title`
)

// Nowhere is the place of codes that no strategy issues.
const Nowhere = -1

// Scan reads linkColumns and then whatever else a query returns.
func Scan(row pgx.Row, more ...any) (link.Link, error) {
	var l link.Link
	fields := link.Fields()
	numbers := make([]int64, len(fields)) // unsigned numbers and times, as the columns have them
	into := make([]any, 0, len(fields)+4)
	for i := range fields {
		if fields[i].Column == "" {
			continue
		}
		switch x := fields[i].Of(&l).(type) {
		case *link.ID:
			into = append(into, (*[16]byte)(x))
		case *string, *bool, *[]string:
			into = append(into, x)
		default:
			into = append(into, &numbers[i])
		}
	}
	var needs int64
	var extra string
	if err := row.Scan(append(append(into, &needs, &extra), more...)...); err != nil {
		return link.Link{}, err
	}
	for i := range fields {
		switch x := fields[i].Of(&l).(type) {
		case *uint8:
			*x = uint8(numbers[i])
		case *uint16:
			*x = uint16(numbers[i])
		case *uint64:
			*x = uint64(numbers[i])
		case *time.Time:
			*x = link.TimeOf(numbers[i])
		}
	}
	if len(l.Tags) == 0 {
		l.Tags = nil
	}
	if err := l.SetExtra(extra, uint64(needs)); err != nil {
		return link.Link{}, &link.DamagedError{Key: l.Key, Workspace: l.Workspace, Err: err}
	}
	return l, nil
}

// KindOf returns the kind of code that the column counted says: Counted is the only one beside
// Chosen.
func KindOf(minted bool) link.CodeKind {
	if minted {
		return link.Counted
	}
	return link.Chosen
}

// Written reports whether statements set the column of a field: the counters of clicks and of
// changes are their own business.
func Written(f *link.Field) bool { return f.Column != "" && !f.Counter && f.Column != "version" }

// Value is what a column stores of a field: a string, bool, int16, int64 or pgtype.UUID. Tags are
// the text of an array, because many of them go into one statement, and an array of arrays must
// have rows of one length.
func Value(f *link.Field, l *link.Link) any {
	switch x := f.Of(l).(type) {
	case *link.ID:
		return pgdb.UUID(*x)
	case *string:
		return *x
	case *bool:
		return *x
	case *uint8:
		if f.Column == "minted" {
			return *x != uint8(link.Chosen)
		}
		return int16(*x)
	case *uint16:
		return int16(*x)
	case *uint64:
		return int64(*x)
	case *time.Time:
		return link.Millis(*x)
	case *[]string:
		return literal(*x)
	}
	return nil
}

// scanTarget reads targetColumns. needs are bits of fields that the target does not show.
func scanTarget(row pgx.Row) (t link.Target, needs uint64, err error) {
	var version, limit, spent, bits int64
	var status, safety, redirect int16
	err = row.Scan(&t.Destination, &t.Fallback, &t.Starts, &t.Expires, &version, &limit, &spent, &redirect,
		&status, &safety, &t.ForwardQuery, &t.NoIndex, &t.Cacheable, &bits)
	t.Version, t.Limited = link.Version(version), limit != 0
	t.Exhausted = t.Limited && uint64(spent) >= uint64(limit)
	t.Redirect, t.Status, t.Safety = link.Redirect(redirect), link.Status(status), link.Safety(safety)
	return t, uint64(bits), err
}

// Storable returns ErrInvalid for a link that the database would refuse, so that no
// statement with the links of others fails for it: PostgreSQL's text is UTF-8 without NUL.
func Storable(l *link.Link) error {
	if err := l.Validate(); err != nil {
		return err
	}
	fields := link.Fields()
	for i := range fields {
		if t, is := Value(&fields[i], l).(string); is && (!utf8.ValidString(t) || strings.ContainsRune(t, 0)) {
			return fmt.Errorf("%w: %s: a text that is not UTF-8, or has a NUL", link.ErrInvalid, l.Key)
		}
	}
	_, err := l.Extra()
	return err
}

// literal writes an array of texts as PostgreSQL reads it.
func literal(texts []string) string {
	if len(texts) == 0 {
		return "{}"
	}
	var b strings.Builder
	for i, t := range texts {
		b.WriteByte("{,"[min(i, 1)])
		b.WriteByte('"')
		b.WriteString(quoted().Replace(t))
		b.WriteByte('"')
	}
	b.WriteByte('}')
	return b.String()
}

func quoted() *strings.Replacer { return strings.NewReplacer(`\`, `\\`, `"`, `\"`) }

const (
	targetColumns = `destination, fallback, starts, expires, version, max_clicks, spent, redirect, status, safety,
	forward_query, no_index, cacheable, needs`
	SQLTarget = `SELECT ` + targetColumns + ` FROM links WHERE place = $1 AND domain = $2 AND code = $3`
)

// Target asks for the target of a place, a domain and a code. A row of version 0 is a reservation, and no
// link.
func Target(ctx context.Context, q pgdb.Querier, args ...any) (t link.Target, needs uint64, found bool, err error) {
	found, err = pgdb.OnePrepared(ctx, q, func(row pgx.Row) (err error) {
		t, needs, err = scanTarget(row)
		return err
	}, SQLTarget, args...)
	if t.Version == 0 {
		return link.Target{}, 0, false, err
	}
	return t, needs, found, err
}
