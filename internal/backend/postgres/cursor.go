package postgres

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"curt/internal/link"
)

// keyPosition is where a walk in the order of a number and keys stands.
type keyPosition struct {
	n   int64
	key link.Key
}

func (p keyPosition) cursor() link.Cursor {
	return link.Cursor(strconv.FormatInt(p.n, 10) + "/" + p.key.String())
}

func parseKeyCursor(c link.Cursor) (keyPosition, error) {
	if c == "" {
		return firstPosition(), nil
	}
	number, rest, _ := strings.Cut(string(c), "/")
	domain, code, ok := strings.Cut(rest, "/")
	n, err := strconv.ParseInt(number, 10, 64)
	p := keyPosition{n: n, key: link.Key{Domain: link.Domain(domain), Code: link.Code(code)}}
	if err != nil || !ok || p.key.Validate() != nil {
		return keyPosition{}, link.BadCursor(c)
	}
	return p, nil
}

// listPosition is where a walk of List stands: the last link that it has read.
type listPosition struct {
	id        link.ID
	workspace link.WorkspaceID
}

// cursor binds the position to the filter, so that it cannot be used with another one.
func (p listPosition) cursor(f link.Filter) link.Cursor {
	return link.Cursor(fmt.Sprintf("%s-%x-%x", f.Tag(), p.id[:], string(p.workspace)))
}

func parseListCursor(c link.Cursor, f link.Filter) (listPosition, error) {
	var p listPosition
	tag, rest, _ := strings.Cut(string(c), "-")
	id, workspace, ok := strings.Cut(rest, "-")
	raw, errID := hex.DecodeString(id)
	name, errName := hex.DecodeString(workspace)
	if tag != f.Tag() || !ok || errID != nil || errName != nil || len(raw) != len(p.id) || len(name) > link.MaxName {
		return p, link.BadCursor(c)
	}
	copy(p.id[:], raw)
	p.workspace = link.WorkspaceID(name)
	return p, nil
}
