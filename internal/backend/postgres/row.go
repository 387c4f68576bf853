package postgres

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"curt/internal/codegen"
	"curt/internal/link"
)

const (
	linkColumns = `id, domain, code, workspace, minted, destination, status, safety, redirect, starts, expires, created,
	updated, max_clicks, spent, fallback, forward_query, no_index, cacheable, created_by, title, tags, version`
	targetColumns = `destination, fallback, starts, expires, version, max_clicks, spent, redirect, status, safety,
	forward_query, no_index, cacheable`
)

// lengthShift leaves 60 bits for the id, which hold 62^10.
const lengthShift = 60

// nowhere is the place of codes that the permutation cannot make.
const nowhere = -1

// place returns where a code lies.
func (s *Links) place(c link.Code) int64 {
	id, ok := s.codes.ID(c)
	if !ok {
		return nowhere
	}
	return int64(uint64(len(c)-codegen.MinLength)<<lengthShift | id)
}

// scanLink reads linkColumns and then whatever else a query returns.
func scanLink(row pgx.Row, more ...any) (l link.Link, err error) {
	var id pgtype.UUID
	var starts, expires, created, updated, limit, spent, version int64
	var status, safety, redirect int16
	err = row.Scan(append([]any{
		&id, (*string)(&l.Key.Domain), (*string)(&l.Key.Code), (*string)(&l.Workspace), &l.Minted, &l.Destination,
		&status, &safety, &redirect, &starts, &expires, &created, &updated, &limit, &spent, &l.Fallback,
		&l.ForwardQuery, &l.NoIndex, &l.Cacheable, &l.CreatedBy, &l.Title, &l.Tags, &version,
	}, more...)...)
	if err != nil {
		return link.Link{}, err
	}
	l.ID, l.Version = id.Bytes, link.Version(version)
	l.Status, l.Safety, l.Redirect = link.Status(status), link.Safety(safety), link.Redirect(redirect)
	l.Starts, l.Expires, l.Created, l.Updated = timeOf(starts), timeOf(expires), timeOf(created), timeOf(updated)
	l.MaxClicks, l.Spent = uint64(limit), uint64(spent)
	if len(l.Tags) == 0 {
		l.Tags = nil
	}
	return l, nil
}

// scanTarget reads targetColumns.
func scanTarget(row pgx.Row) (t link.Target, err error) {
	var version, limit, spent int64
	var status, safety, redirect int16
	err = row.Scan(&t.Destination, &t.Fallback, &t.Starts, &t.Expires, &version, &limit, &spent, &redirect,
		&status, &safety, &t.ForwardQuery, &t.NoIndex, &t.Cacheable)
	t.Version, t.Limited = link.Version(version), limit != 0
	t.Exhausted = t.Limited && uint64(spent) >= uint64(limit)
	t.Redirect, t.Status, t.Safety = link.Redirect(redirect), link.Status(status), link.Safety(safety)
	return t, err
}

// normal returns l as a later Get will: of a deleted link what its tombstone keeps, and
// nil for no tags.
func normal(l link.Link) link.Link {
	if l.Status == link.Deleted {
		return l.Tombstone(l.Updated)
	}
	if len(l.Tags) == 0 {
		l.Tags = nil
	}
	return l
}

// storable returns ErrInvalid for a link that the database would refuse, so that no
// statement with the links of others fails for it: PostgreSQL's text is UTF-8 without NUL.
func storable(l *link.Link) error {
	if err := l.Validate(); err != nil {
		return err
	}
	texts := append([]string{
		string(l.Key.Domain), string(l.Workspace), l.Destination, l.Fallback, l.CreatedBy, l.Title,
	}, l.Tags...)
	for _, t := range texts {
		if !utf8.ValidString(t) || strings.ContainsRune(t, 0) {
			return fmt.Errorf("%w: %s: a text that is not UTF-8, or has a NUL", link.ErrInvalid, l.Key)
		}
	}
	return nil
}

// digest stands for a destination in an index: 8 bytes, of which no stranger can make
// many equal ones.
func digest(destination string) int64 {
	if destination == "" {
		return 0 // a tombstone
	}
	sum := sha256.Sum256([]byte(destination))
	return int64(binary.BigEndian.Uint64(sum[:]))
}

func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func timeOf(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

func uuid(id link.ID) pgtype.UUID { return pgtype.UUID{Bytes: id, Valid: true} }

// literal writes an array of texts as PostgreSQL reads it: many of them go into one
// statement, and an array of arrays must have rows of one length.
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
