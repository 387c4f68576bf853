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
// of its own, origin, which says whose a link is that is damaged otherwise; and whole covers
// every column and the row's place. A redirect reads neither. Older releases go on without
// both: what they change loses whole by a trigger.

// scanner reads the columns of a row in order. The first column of another type than
// asked for makes it bad; SQLite's STRICT tables allow none, so that is damage.
type scanner struct {
	row []driver.Value
	bad bool
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
	workspace, named := s.maybe() // no redirect asks for it
	l.Workspace = link.WorkspaceID(workspace)
	copy(l.ID[:], next[[]byte](&s))
	l.Key = link.Key{Domain: link.Domain(s.text()), Code: link.Code(s.text())}
	l.Minted = s.bool()
	l.Destination = s.text()
	l.Status, l.Safety, l.Redirect = link.Status(s.int()), link.Safety(s.int()), link.Redirect(s.int())
	l.Starts, l.Expires, l.Created, l.Updated = s.time(), s.time(), s.time(), s.time()
	l.MaxClicks, l.Spent = uint64(s.int()), uint64(s.int())
	l.Fallback = s.text()
	l.ForwardQuery, l.NoIndex, l.Cacheable = s.bool(), s.bool(), s.bool()
	l.CreatedBy, l.Title = s.text(), s.text()
	tags, ok := parseTags(s.text())
	l.Tags = tags
	l.Version = link.Version(s.int())
	hash, sum := s.int(), s.int()
	first, bears := s.optional()
	all, summed := s.optional()
	state.serves = !s.bad && sum == checksum(l.Key, l.Target(), l.MaxClicks)
	state.whole = ok && named && hash == digest(l.Destination) && (!summed || all == whole(n, &l))
	state.owned = named && first == origin(&l)
	if !bears {
		state.owned = state.serves && state.whole
	}
	return n, l, state
}

// whole covers every column of a link, and where it lies; digest follows from destination.
func whole(n int64, l *link.Link) int64 {
	b := append(make([]byte, 0, 256), l.ID[:]...)
	for _, number := range [...]uint64{
		uint64(n), uint64(bit(l.Minted)), uint64(l.Status), uint64(l.Safety), uint64(l.Redirect), uint64(millis(l.Starts)), uint64(millis(l.Expires)),
		uint64(millis(l.Created)), uint64(millis(l.Updated)), l.MaxClicks, l.Spent,
		uint64(bit(l.ForwardQuery)), uint64(bit(l.NoIndex)), uint64(bit(l.Cacheable)), uint64(l.Version),
	} {
		b = binary.LittleEndian.AppendUint64(b, number)
	}
	texts := [...]string{
		string(l.Workspace), string(l.Key.Domain), string(l.Key.Code), l.Destination, l.Fallback, l.CreatedBy, l.Title, formatTags(l.Tags),
	}
	for _, text := range texts {
		b = append(binary.AppendUvarint(b, uint64(len(text))), text...)
	}
	return int64(int32(crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli))))
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

// scanTarget reads targetColumns and checks the checksum.
func scanTarget(row []driver.Value) (link.Key, link.Target, error) {
	s := scanner{row: row}
	k := link.Key{Domain: link.Domain(s.text()), Code: link.Code(s.text())}
	t := link.Target{Destination: s.text(), Fallback: s.text(), Starts: s.int(), Expires: s.int(), Version: link.Version(s.int())}
	limit, spent := uint64(s.int()), uint64(s.int())
	t.Limited, t.Exhausted = limit > 0, limit > 0 && spent >= limit
	t.Redirect, t.Status, t.Safety = link.Redirect(s.int()), link.Status(s.int()), link.Safety(s.int())
	t.ForwardQuery, t.NoIndex, t.Cacheable = s.bool(), s.bool(), s.bool()
	sum := s.int()
	if s.bad || sum != checksum(k, t, limit) {
		return link.Key{}, link.Target{}, &link.DamagedError{Key: k, Err: fmt.Errorf("its row does not say where it leads: %w", ErrCorrupt)}
	}
	return k, t, nil
}

// insertArgs are the arguments of sqlInsertLink.
func insertArgs(n, workspace int64, l *link.Link) []any {
	return []any{
		n, workspace, l.ID[:], string(l.Key.Domain), string(l.Key.Code), bit(l.Minted),
		l.Destination, digest(l.Destination), int64(l.Status), int64(l.Safety), int64(l.Redirect),
		millis(l.Starts), millis(l.Expires), millis(l.Created), millis(l.Updated),
		int64(l.MaxClicks), int64(l.Spent), l.Fallback, bit(l.ForwardQuery), bit(l.NoIndex), bit(l.Cacheable),
		l.CreatedBy, l.Title, formatTags(l.Tags), int64(l.Version), checksum(l.Key, l.Target(), l.MaxClicks), origin(l), whole(n, l),
		string(l.Key.Domain), string(l.Key.Code),
	}
}

// updateArgs are the arguments of sqlUpdateLink.
func updateArgs(n int64, l *link.Link) []any {
	return []any{
		l.Destination, digest(l.Destination), int64(l.Status), int64(l.Safety), int64(l.Redirect),
		millis(l.Starts), millis(l.Expires), millis(l.Updated),
		int64(l.MaxClicks), int64(l.Spent), l.Fallback, bit(l.ForwardQuery), bit(l.NoIndex), bit(l.Cacheable),
		l.CreatedBy, l.Title, formatTags(l.Tags), int64(l.Version), checksum(l.Key, l.Target(), l.MaxClicks), whole(n, l), n,
	}
}

// checksum covers the key and the target but Exhausted, and the bound behind Limited.
func checksum(k link.Key, t link.Target, maxClicks uint64) int64 {
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
