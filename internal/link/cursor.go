package link

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

// Tag stands for the filter in cursors, so that one cannot be used with another filter.
func (f Filter) Tag() string {
	domain := "*"
	if f.Domain != nil {
		domain = "=" + string(*f.Domain)
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %d %x %t", f.Workspace, domain, f.Status, f.Since, f.Oldest))
	return hex.EncodeToString(sum[:8])
}

// BadCursor is the error of a cursor that no store gave, or not for this walk.
func BadCursor(c Cursor) error { return fmt.Errorf("cursor %q: %w", c, ErrInvalid) }
