// Package linkrow says how a link lies in its row of curt.db: columns, values and checksums.
// Read Scan first, and Args for what is written.
package linkrow

import (
	"database/sql/driver"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"curt/internal/backend/sqlite/sqlitedb"
	"curt/internal/link"
)

const (
	TargetColumns = `domain, code, destination, fallback, starts, expires, version, max_clicks, spent,
	redirect, status, safety, forward_query, no_index, cacheable, checksum, needs`
	// What is written of a row, in the order of rowOf.
	ChangingColumns = `destination, status, safety, redirect, starts, expires, updated, max_clicks, spent, fallback, forward_query,
	no_index, cacheable, created_by, title, tags, version, digest, checksum, whole, needs, extra, extra_sum`
	StoredColumns = `id, workspace, domain, code, minted, destination, status, safety, redirect, starts, expires, created, updated,
	max_clicks, spent, fallback, forward_query, no_index, cacheable, created_by, title, tags, version, digest, checksum, whole, needs, extra,
	extra_sum, origin`
	ChangingMarks = `?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?`
	StoredMarks   = ChangingMarks + `, ?, ?, ?, ?, ?, ?, ?`
)

// A row carries a CRC-32C of its key and of all that a redirect uses, so that a bit
// that flipped on the disk gives an error instead of a wrong redirect: CRC-32 finds
// every error of one bit and every burst of up to 32. The counter spent is left
// out, because a redirect reads it of few links. What no change of a link changes has a sum
// of its own, origin, which says whose a link is that is damaged otherwise; whole covers
// every column of a field and the row's place, and extra_sum those of the fields without a
// column of their own. A redirect reads none of these. Older releases go on without them: what
// they change loses whole by a trigger.
//
// The upper half of checksum is its version. The first covers no needs, and is what older
// releases write and read; a link that needs what they do not know has the second, which they
// take for damage and answer with 503.

// Scan reads linkColumns and checks every checksum.
func Scan(row []driver.Value) (n int64, l link.Link, err error) {
	n, l, state := Read(row)
	if state == (State{Serves: true, Owned: true, whole: true}) {
		return n, l, nil
	}
	lost := &link.DamagedError{Key: l.Key, Err: fmt.Errorf("row %d is damaged, except possibly its destination: %w", n, sqlitedb.ErrCorrupt)}
	if state.Owned {
		lost.Workspace = l.Workspace
	}
	if !state.Serves {
		lost.Err = fmt.Errorf("row %d has a damaged destination and is answered 503: %w", n, sqlitedb.ErrCorrupt)
	}
	return n, link.Link{}, lost
}

// State says which parts of a row are what was written.
type State struct {
	Serves bool // key, and all that a redirect uses but spent
	Owned  bool // key, workspace, id and time of creation; of a row that does not bear their sum, when all else is well
	whole  bool // everything, where the row bears a sum of that, and what follows from other columns
}

// Read reads linkColumns, whatever they hold.
func Read(row []driver.Value) (n int64, l link.Link, state State) {
	s := sqlitedb.Scanner{Row: row}
	n = s.Int()
	named, tagged := readFields(&s, &l)
	hash, sum := s.Int(), s.Int()
	first, bears := s.Optional()
	all, summed := s.Optional()
	needs, extra := uint64(s.Int()), s.Text()
	also, extended := s.Optional()
	known := link.Later{Needs: needs, Members: extra} == link.Later{} && !extended || extended && also == extraSum(n, &l, needs, extra)
	known = known && l.SetExtra(extra, needs) == nil
	state.Serves = !s.Bad && sum == checksum(l.Key, l.Target(), l.MaxClicks, needs) && (needs == 0 || known)
	state.whole = tagged && known && named && hash == link.Digest(l.Destination) && (!summed || all == Whole(n, &l))
	state.Owned = named && first == Origin(&l)
	if !bears {
		state.Owned = state.Serves && state.whole
	}
	return n, l, state
}

// readFields reads the columns of the fields of a link. named is false when its workspace is
// missing, for which no redirect asks; tagged, when its tags cannot be read.
func readFields(s *sqlitedb.Scanner, l *link.Link) (named, tagged bool) {
	tagged = true
	fields := link.Fields()
	for i := range fields {
		f := &fields[i]
		if f.Column == "" {
			continue
		}
		switch x := f.Of(l).(type) {
		case *link.ID:
			copy(x[:], sqlitedb.Next[[]byte](s))
		case *string:
			if x == (*string)(&l.Workspace) {
				*x, named = s.Maybe()
				continue
			}
			*x = s.Text()
		case *bool:
			*x = s.Bool()
		case *uint8:
			*x = uint8(s.Int())
		case *uint16:
			*x = uint16(s.Int())
		case *uint64:
			*x = uint64(s.Int())
		case *time.Time:
			*x = s.Time()
		case *[]string:
			tags, ok := parseTags(s.Text())
			*x, tagged = tags, ok
		}
	}
	return named, tagged
}

// Whole covers the number and the fields of a row: first the numbers, then the texts.
func Whole(n int64, l *link.Link) int64 {
	b := append(make([]byte, 0, 256), l.ID[:]...)
	b = binary.LittleEndian.AppendUint64(b, uint64(n))
	fields := link.Fields()
	for i := range fields {
		if n, is := number(&fields[i], l); is {
			b = binary.LittleEndian.AppendUint64(b, uint64(n))
		}
	}
	for i := range fields {
		if text, is := text(&fields[i], l); is {
			b = append(binary.AppendUvarint(b, uint64(len(text))), text...)
		}
	}
	return int64(int32(crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli))))
}

// value is what a row stores of a field: int64, string or []byte; nil = it has no column.
func value(f *link.Field, l *link.Link) any {
	if n, is := number(f, l); is {
		return n
	}
	if text, is := text(f, l); is {
		return text
	}
	if id, is := f.Of(l).(*link.ID); is && f.Column != "" {
		return id[:]
	}
	return nil
}

// number is value of a field that is stored as an integer. Nothing is allocated for it.
func number(f *link.Field, l *link.Link) (n int64, is bool) {
	if f.Column == "" {
		return 0, false
	}
	switch x := f.Of(l).(type) {
	case *bool:
		return sqlitedb.Bit(*x), true
	case *uint8:
		return int64(*x), true
	case *uint16:
		return int64(*x), true
	case *uint64:
		return int64(*x), true
	case *time.Time:
		return link.Millis(*x), true
	}
	return 0, false
}

// text is value of a field that is stored as text.
func text(f *link.Field, l *link.Link) (s string, is bool) {
	if f.Column == "" {
		return "", false
	}
	switch x := f.Of(l).(type) {
	case *string:
		return *x, true
	case *[]string:
		return formatTags(*x), true
	}
	return "", false
}

// extraSum covers the fields without a column, and whose they are.
func extraSum(n int64, l *link.Link, needs uint64, extra string) int64 {
	b := append(make([]byte, 0, 64), l.ID[:]...)
	b = binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(b, uint64(n)), needs)
	return int64(int32(crc32.Checksum(append(b, extra...), crc32.MakeTable(crc32.Castagnoli))))
}

// Origin covers what says whose a link is: key, workspace, id and time of creation.
func Origin(l *link.Link) int64 {
	b := append(make([]byte, 0, 128), l.ID[:]...)
	b = binary.LittleEndian.AppendUint64(b, uint64(link.Millis(l.Created)))
	for _, text := range [...]string{string(l.Key.Domain), string(l.Key.Code), string(l.Workspace)} {
		b = append(binary.AppendUvarint(b, uint64(len(text))), text...)
	}
	return int64(int32(crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli))))
}

// ScanTarget reads targetColumns and checks the checksum. needs are bits of fields that the
// target does not show.
func ScanTarget(row []driver.Value) (k link.Key, t link.Target, needs uint64, err error) {
	s := sqlitedb.Scanner{Row: row}
	k = link.Key{Domain: link.Domain(s.Text()), Code: link.Code(s.Text())}
	t = link.Target{Destination: s.Text(), Fallback: s.Text(), Starts: s.Int(), Expires: s.Int(), Version: link.Version(s.Int())}
	limit, spent := uint64(s.Int()), uint64(s.Int())
	t.Limited, t.Exhausted = limit > 0, limit > 0 && spent >= limit
	t.Redirect, t.Status, t.Safety = link.Redirect(s.Int()), link.Status(s.Int()), link.Safety(s.Int())
	t.ForwardQuery, t.NoIndex, t.Cacheable = s.Bool(), s.Bool(), s.Bool()
	sum := s.Int()
	needs = uint64(s.Int())
	if s.Bad || sum != checksum(k, t, limit, needs) {
		return link.Key{}, link.Target{}, 0, &link.DamagedError{Key: k, Err: fmt.Errorf("its row has a damaged destination: %w", sqlitedb.ErrCorrupt)}
	}
	return k, t, needs, nil
}

// Args returns what the row n keeps of l, whose workspace has a number.
func Args(n, workspace int64, l *link.Link, changing bool) ([]any, error) {
	extra, err := l.Extra()
	if err != nil {
		return nil, err
	}
	needs := l.Needs()
	var also any // NULL
	if needs != 0 || extra != "" {
		also = extraSum(n, l, needs, extra)
	}
	args := make([]any, 0, 36)
	fields := link.Fields()
	for i := range fields {
		f := &fields[i]
		switch {
		case f.Column == "" || changing && f.Fixed:
		case f.Of(l) == any((*string)(&l.Workspace)):
			if !changing {
				args = append(args, workspace)
			}
		default:
			args = append(args, value(f, l))
		}
	}
	args = append(args, link.Digest(l.Destination), checksum(l.Key, l.Target(), l.MaxClicks, needs), Whole(n, l), int64(needs), extra, also)
	if !changing {
		args = append(args, Origin(l))
	}
	return append(args, n), nil
}

// checksum covers the key and the target but Exhausted, the bound behind Limited, and needs.
func checksum(k link.Key, t link.Target, maxClicks, needs uint64) int64 {
	table, sum := crc32.MakeTable(crc32.Castagnoli), uint32(0)
	// What is summed up escapes, so the texts are not copied and the buffer is small.
	b := make([]byte, 0, 64)
	for _, text := range [...]string{string(k.Domain), string(k.Code), t.Destination, t.Fallback} {
		b = binary.AppendUvarint(b[:0], uint64(len(text)))
		sum = crc32.Update(sum, table, b)
		sum = crc32.Update(sum, table, unsafe.Slice(unsafe.StringData(text), len(text))) //nolint:gosec // only read
	}
	b = b[:0]
	for _, n := range [...]uint64{uint64(t.Starts), uint64(t.Expires), uint64(t.Version), maxClicks} {
		b = binary.LittleEndian.AppendUint64(b, n)
	}
	b = binary.LittleEndian.AppendUint16(b, uint16(t.Redirect))
	b = append(b, byte(t.Status), byte(t.Safety), byte(sqlitedb.Bit(t.ForwardQuery)), byte(sqlitedb.Bit(t.NoIndex)), byte(sqlitedb.Bit(t.Cacheable)))
	if needs != 0 {
		const second = 2 << 32
		return second | int64(crc32.Update(sum, table, binary.LittleEndian.AppendUint64(b, needs)))
	}
	// Signed, because SQLite stores small magnitudes shorter.
	return int64(int32(crc32.Update(sum, table, b)))
}

// formatTags writes netstrings without their comma, "3:foo2:ab": readable in the
// file, and exact whatever bytes a tag holds.
func formatTags(tags []string) string {
	if len(tags) == 0 {
		return ""
	}
	var b strings.Builder
	for _, t := range tags {
		b.WriteString(strconv.Itoa(len(t)))
		b.WriteByte(':')
		b.WriteString(t)
	}
	return b.String()
}

func parseTags(s string) (tags []string, ok bool) {
	for s != "" {
		size, rest, found := strings.Cut(s, ":")
		n, err := strconv.Atoi(size)
		if !found || err != nil || n < 0 || n > len(rest) {
			return nil, false
		}
		tags, s = append(tags, rest[:n]), rest[n:]
	}
	return tags, true
}

const (
	// The columns of fields, in the order of the table of fields (a test holds it to that); the
	// name of a workspace stands for its number.
	fieldColumns = `id, ` + workspaceName + `, domain, code, minted, destination, status, safety, redirect, starts, expires, created, updated,
	max_clicks, spent, fallback, forward_query, no_index, cacheable, created_by, title, tags, version`
	workspaceName = `(SELECT name FROM workspaces WHERE workspaces.n = links.workspace)`
	Columns       = linkColumnsBefore + `, origin, whole` + extraColumns
	// SelectRow reads the row of a number.
	SelectRow         = `SELECT ` + Columns + ` FROM links WHERE n = ?`
	linkColumnsBefore = `n, ` + fieldColumns + `, digest, checksum`
	extraColumns      = `, needs, extra, extra_sum`
	sqlKnowsSums      = `SELECT count(*) FROM pragma_table_info('links') WHERE name IN ('origin', 'whole', 'extra')`
)

// ColumnsOf returns linkColumns as a file has them: before schema 8 links had no origin,
// before 9 no sum of the whole, and before 11 no extra fields.
func ColumnsOf(t *sqlitedb.Tx) (string, error) {
	known, _, err := t.Number(sqlKnowsSums)
	switch {
	case err != nil:
		return "", err
	case known == 0:
		return linkColumnsBefore + `, NULL, NULL, 0, '', NULL`, nil
	case known == 1:
		return linkColumnsBefore + `, origin, NULL, 0, '', NULL`, nil
	case known == 2:
		return linkColumnsBefore + `, origin, whole, 0, '', NULL`, nil
	}
	return Columns, nil
}

// IsDamaged reports whether an error means one link alone.
func IsDamaged(err error) bool {
	_, is := errors.AsType[*link.DamagedError](err)
	return is
}
