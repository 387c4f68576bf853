package sqlite

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"strings"

	"curt/internal/link"
)

// expiryPosition is where a walk of Expired stands.
type expiryPosition struct {
	ms  int64
	key link.Key
}

func (p expiryPosition) cursor() link.Cursor {
	return link.Cursor(strconv.FormatInt(p.ms, 10) + "/" + p.key.String())
}

func parseExpiryCursor(c link.Cursor) (expiryPosition, error) {
	if c == "" {
		return expiryPosition{ms: math.MinInt64}, nil
	}
	ms, rest, _ := strings.Cut(string(c), "/")
	domain, code, ok := strings.Cut(rest, "/")
	n, err := strconv.ParseInt(ms, 10, 64)
	if err != nil || !ok {
		return expiryPosition{}, link.BadCursor(c)
	}
	return expiryPosition{ms: n, key: link.Key{Domain: link.Domain(domain), Code: link.Code(code)}}, nil
}

// rowCursor is a position among the rows of links.
func rowCursor(n int64) link.Cursor { return link.Cursor(strconv.FormatInt(n, 10)) }

func parseRowCursor(c link.Cursor) (int64, error) {
	if c == "" {
		return math.MinInt64, nil
	}
	n, err := strconv.ParseInt(string(c), 10, 64)
	if err != nil {
		return 0, link.BadCursor(c)
	}
	return n, nil
}

// listPosition is where a walk of List stands: the last link, and its workspace for
// walks over all of them.
type listPosition struct {
	id        link.ID
	workspace int64
}

// listCursor binds the position to the filter, so that a cursor cannot be used with
// another one.
func (p listPosition) cursor(f link.Filter) link.Cursor {
	return link.Cursor(fmt.Sprintf("%s-%x-%d", f.Tag(), p.id[:], p.workspace))
}

func parseListCursor(c link.Cursor, f link.Filter) (listPosition, error) {
	var p listPosition
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
func (p listPosition) neighbour(before bool) link.ID {
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
