package sqlite

import (
	"crypto/sha256"
	"database/sql/driver"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"curt/internal/link"
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

// scanner reads the columns of a row in order. The first column of another type than
// asked for makes it bad; SQLite's STRICT tables allow none, so that is damage.
type scanner struct {
	row          []driver.Value
	bad, badTags bool
}

func next[T any](s *scanner) T {
	var v T
	if len(s.row) == 0 {
		s.bad = true
		return v
	}
	v, ok := s.row[0].(T)
	s.bad = s.bad || !ok
	s.row = s.row[1:]
	return v
}

// optional reads a number that may be missing.
func (s *scanner) optional() (n int64, there bool) {
	if len(s.row) > 0 && s.row[0] == nil {
		s.row = s.row[1:]
		return 0, false
	}
	return s.int(), true
}

// maybe reads a text that may be missing.
func (s *scanner) maybe() (text string, there bool) {
	if len(s.row) > 0 && s.row[0] == nil {
		s.row = s.row[1:]
		return "", false
	}
	return s.text(), true
}

func (s *scanner) text() string    { return next[string](s) }
func (s *scanner) int() int64      { return next[int64](s) }
func (s *scanner) bool() bool      { return next[int64](s) != 0 }
func (s *scanner) time() time.Time { return timeOf(next[int64](s)) }

// scanLink reads linkColumns and checks every checksum.
func scanLink(row []driver.Value) (n int64, l link.Link, err error) {
	n, l, state := readLink(row)
	if state == (rowState{serves: true, owned: true, whole: true}) {
		return n, l, nil
	}
	lost := &link.DamagedError{Key: l.Key, Err: fmt.Errorf("row %d is not what was written, but for where its code leads, if the code still leads to it: %w", n, ErrCorrupt)}
	if state.owned {
		lost.Workspace = l.Workspace
	}
	if !state.serves {
		lost.Err = fmt.Errorf("row %d does not say where it leads, and answers 503: %w", n, ErrCorrupt)
	}
	return n, link.Link{}, lost
}

// rowState says which parts of a row are what was written.
type rowState struct {
	serves bool // key, and all that a redirect uses but spent
	owned  bool // key, workspace, id and time of creation; of a row that does not bear their sum, when all else is well
	whole  bool // everything, where the row bears a sum of that, and what follows from other columns
}

// readLink reads linkColumns, whatever they hold.
func readLink(row []driver.Value) (n int64, l link.Link, state rowState) {
	s := scanner{row: row}
	n = s.int()
	named := s.fields(&l)
	hash, sum := s.int(), s.int()
	first, bears := s.optional()
	all, summed := s.optional()
	needs, extra := uint64(s.int()), s.text()
	also, extended := s.optional()
	known := link.Later{Needs: needs, Members: extra} == link.Later{} && !extended || extended && also == extraSum(n, &l, needs, extra)
	known = known && l.SetExtra(extra, needs) == nil
	state.serves = !s.bad && sum == checksum(l.Key, l.Target(), l.MaxClicks, needs) && (needs == 0 || known)
	state.whole = !s.badTags && known && named && hash == digest(l.Destination) && (!summed || all == whole(n, &l))
	state.owned = named && first == origin(&l)
	if !bears {
		state.owned = state.serves && state.whole
	}
	return n, l, state
}

// fields reads the columns of the fields of a link. named is false when its workspace is
// missing, for which no redirect asks.
func (s *scanner) fields(l *link.Link) (named bool) {
	fields := link.Fields()
	for i := range fields {
		f := &fields[i]
		if f.Column == "" {
			continue
		}
		switch x := f.Of(l).(type) {
		case *link.ID:
			copy(x[:], next[[]byte](s))
		case *string:
			if x == (*string)(&l.Workspace) {
				*x, named = s.maybe()
				continue
			}
			*x = s.text()
		case *bool:
			*x = s.bool()
		case *uint8:
			*x = uint8(s.int())
		case *uint16:
			*x = uint16(s.int())
		case *uint64:
			*x = uint64(s.int())
		case *time.Time:
			*x = s.time()
		case *[]string:
			tags, ok := parseTags(s.text())
			*x, s.badTags = tags, s.badTags || !ok
		}
	}
	return named
}

// whole covers the number and the fields of a row: first the numbers, then the texts.
func whole(n int64, l *link.Link) int64 {
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
		return bit(*x), true
	case *uint8:
		return int64(*x), true
	case *uint16:
		return int64(*x), true
	case *uint64:
		return int64(*x), true
	case *time.Time:
		return millis(*x), true
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

// origin covers what says whose a link is: key, workspace, id and time of creation.
func origin(l *link.Link) int64 {
	b := append(make([]byte, 0, 128), l.ID[:]...)
	b = binary.LittleEndian.AppendUint64(b, uint64(millis(l.Created)))
	for _, text := range [...]string{string(l.Key.Domain), string(l.Key.Code), string(l.Workspace)} {
		b = append(binary.AppendUvarint(b, uint64(len(text))), text...)
	}
	return int64(int32(crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli))))
}

// scanTarget reads targetColumns and checks the checksum. needs are bits of fields that the
// target does not show.
func scanTarget(row []driver.Value) (k link.Key, t link.Target, needs uint64, err error) {
	s := scanner{row: row}
	k = link.Key{Domain: link.Domain(s.text()), Code: link.Code(s.text())}
	t = link.Target{Destination: s.text(), Fallback: s.text(), Starts: s.int(), Expires: s.int(), Version: link.Version(s.int())}
	limit, spent := uint64(s.int()), uint64(s.int())
	t.Limited, t.Exhausted = limit > 0, limit > 0 && spent >= limit
	t.Redirect, t.Status, t.Safety = link.Redirect(s.int()), link.Status(s.int()), link.Safety(s.int())
	t.ForwardQuery, t.NoIndex, t.Cacheable = s.bool(), s.bool(), s.bool()
	sum := s.int()
	needs = uint64(s.int())
	if s.bad || sum != checksum(k, t, limit, needs) {
		return link.Key{}, link.Target{}, 0, &link.DamagedError{Key: k, Err: fmt.Errorf("its row does not say where it leads: %w", ErrCorrupt)}
	}
	return k, t, needs, nil
}

// rowOf returns what the row n keeps of l, whose workspace has a number.
func rowOf(n, workspace int64, l *link.Link, changing bool) ([]any, error) {
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
	args = append(args, digest(l.Destination), checksum(l.Key, l.Target(), l.MaxClicks, needs), whole(n, l), int64(needs), extra, also)
	if !changing {
		args = append(args, origin(l))
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
	b = append(b, byte(t.Status), byte(t.Safety), byte(bit(t.ForwardQuery)), byte(bit(t.NoIndex)), byte(bit(t.Cacheable)))
	if needs != 0 {
		const second = 2 << 32
		return second | int64(crc32.Update(sum, table, binary.LittleEndian.AppendUint64(b, needs)))
	}
	// Signed, because SQLite stores small magnitudes shorter.
	return int64(int32(crc32.Update(sum, table, b)))
}

// digest stands for a destination in an index: 8 bytes, of which no stranger can
// make many equal ones.
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

func bit(b bool) int64 {
	if b {
		return 1
	}
	return 0
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
