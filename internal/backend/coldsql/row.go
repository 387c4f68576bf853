package coldsql

import (
	"database/sql/driver"
	"strings"
	"time"

	"curt/internal/link"
)

// Row reads the columns of a row in order. The first one that is not of the type asked for makes
// it bad: that is damage.
type Row struct {
	values []driver.Value
	bad    bool
}

func (r *Row) next() (v driver.Value) {
	if len(r.values) == 0 {
		r.bad = true
		return nil
	}
	v, r.values = r.values[0], r.values[1:]
	return v
}

func (r *Row) Int() int64 {
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

func (r *Row) Bool() bool {
	switch v := r.next().(type) {
	case bool:
		return v
	case int64:
		return v != 0
	}
	r.bad = true
	return false
}

func (r *Row) Text() string {
	switch v := r.next().(type) {
	case string:
		return v
	case []byte: // Text
		return string(v)
	}
	r.bad = true
	return ""
}

func (r *Row) Words() (words []string) {
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

// Fill reads bytes of exactly the size of b, or, where they may be missing, none.
func (r *Row) Fill(b []byte, optional bool) (filled bool) {
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

func (r *Row) ID() (id link.ID) {
	r.Fill(id[:], false)
	return id
}

func (r *Row) Key() link.Key {
	return link.Key{Domain: link.Domain(r.Text()), Code: link.Code(r.Text())}
}

func (r *Row) Time() time.Time {
	ms := r.Int()
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

// Check marks the row as damaged unless a value of it is good.
func (r *Row) Check(good bool) { r.bad = r.bad || !good }

func (r *Row) damage() error {
	if r.bad {
		return ErrDamaged
	}
	return nil
}
