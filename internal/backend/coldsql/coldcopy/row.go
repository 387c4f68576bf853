package coldcopy

import (
	"database/sql/driver"
	"encoding/binary"
	"fmt"
	"strings"

	"curt/internal/backend/coldsql"
	"curt/internal/link"
)

// row is a row with values that are good as arguments of a coldsql.Tx, and its digest.
type row struct {
	key    string // of the key's values
	values []any
	digest Digest
}

// read makes a row of what a database returned, whichever it was.
func (t *table) read(from []driver.Value) (r row, err error) {
	if len(from) != len(t.columns) {
		return r, fmt.Errorf("%s: %d columns: %w", t.name, len(from), coldsql.ErrDamaged)
	}
	r.values = make([]any, len(from))
	text := appendText(make([]byte, 0, 256), t.name)
	for i, c := range t.columns {
		if r.values[i], err = c.value(from[i]); err != nil {
			return r, fmt.Errorf("%s: %w", t.name, err)
		}
		text = appendValue(text, r.values[i])
		if i == t.key-1 {
			r.key = string(text)
		}
	}
	r.digest = of(text)
	return r, nil
}

// value is the value of a column as an argument.
func (c column) value(v driver.Value) (any, error) {
	switch c.kind {
	case number:
		switch n := v.(type) {
		case int64:
			return n, nil
		case int32:
			return int64(n), nil
		case int16:
			return int64(n), nil
		}
	case flag:
		switch b := v.(type) {
		case bool:
			return b, nil
		case int64:
			return b != 0, nil
		}
	case word:
		if s, is := v.(string); is {
			return s, nil
		}
	case text:
		switch s := v.(type) {
		case string:
			return coldsql.Text(s), nil
		case []byte:
			return coldsql.Text(s), nil
		}
	case octets:
		if b, is := v.([]byte); is {
			return append([]byte{}, b...), nil // not nil, which is NULL
		}
		if v == nil { // SQLite's driver returns it for an empty blob
			return []byte{}, nil
		}
	case id, optional:
		return c.id(v)
	case words:
		return split(v)
	}
	return nil, fmt.Errorf("column %s is %T: %w", c.name, v, coldsql.ErrDamaged)
}

func (c column) id(v driver.Value) (any, error) {
	var found link.ID
	n := 0
	switch b := v.(type) {
	case []byte:
		n = copy(found[:], b)
		if len(b) > len(found) {
			n = -1
		}
	case [16]byte:
		found, n = b, len(b)
	case nil:
	default:
		n = -1
	}
	switch {
	case c.kind == optional && (n == 0 || n == len(found)):
		return coldsql.OptionalID(found), nil
	case c.kind == id && n == len(found):
		return found, nil
	}
	return nil, fmt.Errorf("column %s is %T: %w", c.name, v, coldsql.ErrDamaged)
}

func split(v driver.Value) (any, error) {
	switch list := v.(type) {
	case string:
		return coldsql.Words(strings.Fields(list)), nil
	case []any:
		all := coldsql.Words{}
		for _, w := range list {
			s, is := w.(string)
			if !is {
				return nil, coldsql.ErrDamaged
			}
			all = append(all, s)
		}
		return all, nil
	}
	return nil, coldsql.ErrDamaged
}

// appendValue appends a value so that no two lists of values are alike.
func appendValue(b []byte, v any) []byte {
	switch x := v.(type) {
	case int64:
		return binary.BigEndian.AppendUint64(b, uint64(x))
	case bool:
		return append(b, byte(bit(x)))
	case string:
		return appendText(b, x)
	case coldsql.Text:
		return appendText(b, string(x))
	case []byte:
		return appendText(b, string(x))
	case link.ID:
		return append(b, x[:]...)
	case coldsql.OptionalID:
		return append(b, x[:]...)
	case coldsql.Words:
		b = binary.AppendUvarint(b, uint64(len(x)))
		for _, w := range x {
			b = appendText(b, w)
		}
	}
	return b
}
