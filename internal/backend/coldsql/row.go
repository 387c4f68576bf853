package coldsql

import (
	"database/sql/driver"
	"strings"
	"time"

	"curt/internal/link"
)

// row reads the columns of a row in order. The first one that is not of the type asked for makes
// it bad: that is damage.
type row struct {
	values []driver.Value
	bad    bool
}

func (r *row) next() (v driver.Value) {
	if len(r.values) == 0 {
		r.bad = true
		return nil
	}
	v, r.values = r.values[0], r.values[1:]
	return v
}

func (r *row) int() int64 {
	switch v := r.next().(type) {
	case int64:
		return v
	case int32:
		return int64(v)
	case int16:
		return int64(v)
	}
	r.bad = true
	return 0
}

func (r *row) bool() bool {
	switch v := r.next().(type) {
	case bool:
		return v
	case int64:
		return v != 0
	}
	r.bad = true
	return false
}

func (r *row) text() string {
	switch v := r.next().(type) {
	case string:
		return v
	case []byte: // Text
		return string(v)
	}
	r.bad = true
	return ""
}

func (r *row) words() (words []string) {
	switch v := r.next().(type) {
	case string:
		return strings.Fields(v)
	case []any:
		for _, w := range v {
			text, ok := w.(string)
			r.bad = r.bad || !ok
			words = append(words, text)
		}
		return words
	}
	r.bad = true
	return nil
}

// fill reads bytes of exactly the size of b, or, where they may be missing, none.
func (r *row) fill(b []byte, optional bool) (filled bool) {
	var v []byte
	switch of := r.next().(type) {
	case []byte:
		v = of
	case [16]byte:
		v = of[:]
	case nil:
	default:
		r.bad = true
	}
	if len(v) == 0 && optional {
		return false
	}
	r.bad = r.bad || len(v) != len(b)
	copy(b, v)
	return true
}

func (r *row) id() (id link.ID) {
	r.fill(id[:], false)
	return id
}

func (r *row) key() link.Key {
	return link.Key{Domain: link.Domain(r.text()), Code: link.Code(r.text())}
}

func (r *row) time() time.Time {
	ms := r.int()
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

func (r *row) damage() error {
	if r.bad {
		return ErrDamaged
	}
	return nil
}

// millis is what is stored of a time; 0 = none.
func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}
