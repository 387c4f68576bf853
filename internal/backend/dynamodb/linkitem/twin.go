package linkitem

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"time"

	"curt/internal/link"
)

// answers is a digest of the domain and of all fields that change the answer.
func answers(l *link.Link) ([]byte, error) {
	all := []any{string(l.Key.Domain)}
	fields := link.Fields()
	for i := range fields {
		f := &fields[i]
		if f.Kind != link.Answer && f.Kind != link.Secret {
			continue
		}
		value := f.Of(l)
		if t, ok := value.(*time.Time); ok {
			value = link.Millis(*t)
		}
		all = append(all, f.Column, f.Name, value)
	}
	text, err := json.Marshal(all)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", link.ErrInvalid, err)
	}
	sum := sha256.Sum256(text)
	return sum[:16], nil
}
