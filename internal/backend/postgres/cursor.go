package postgres

import (
	"crypto/sha256"
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
		return keyPosition{}, badCursor(c)
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
	return link.Cursor(fmt.Sprintf("%s-%x-%x", filterTag(f), p.id[:], string(p.workspace)))
}

func parseListCursor(c link.Cursor, f link.Filter) (listPosition, error) {
	var p listPosition
	tag, rest, _ := strings.Cut(string(c), "-")
	id, workspace, ok := strings.Cut(rest, "-")
	raw, errID := hex.DecodeString(id)
	name, errName := hex.DecodeString(workspace)
	if tag != filterTag(f) || !ok || errID != nil || errName != nil || len(raw) != len(p.id) || len(name) > link.MaxName {
		return p, badCursor(c)
	}
	copy(p.id[:], raw)
	p.workspace = link.WorkspaceID(name)
	return p, nil
}

func filterTag(f link.Filter) string {
	domain := "*"
	if f.Domain != nil {
		domain = "=" + string(*f.Domain)
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %d %x %t", f.Workspace, domain, f.Status, f.Since, f.Oldest))
	return hex.EncodeToString(sum[:8])
}

func badCursor(c link.Cursor) error { return fmt.Errorf("cursor %q: %w", c, link.ErrInvalid) }
