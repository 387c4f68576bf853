package sqlite_test

import (
	"encoding/binary"
	"testing"
)

const pageBytes = 4096

// record is where the columns of one row, or of one entry of an index, lie in a database file.
type record struct {
	columns [][2]int // first byte and length; of those in the record, not of a row's number
}

// records finds every record of a B-tree (https://www.sqlite.org/fileformat2.html, section 1.6)
// that lies within its page.
func records(t *testing.T, file []byte, root int) (all []record) {
	t.Helper()
	base := (root - 1) * pageBytes
	page := file[base : base+pageBytes]
	head := 0
	if root == 1 {
		head = 100
	}
	kind, cells := page[head], int(binary.BigEndian.Uint16(page[head+3:]))
	pointers, inner := head+8, kind == 2 || kind == 5
	if inner {
		pointers = head + 12
	}
	for i := range cells {
		at := int(binary.BigEndian.Uint16(page[pointers+2*i:]))
		if inner {
			all = append(all, records(t, file, int(binary.BigEndian.Uint32(page[at:])))...)
			at += 4
		}
		if kind == 5 {
			continue // of a table: a number alone
		}
		size, n := varint(page[at:])
		at += n
		if kind == 13 {
			_, n = varint(page[at:])
			at += n
		}
		if at+size > pageBytes || size > pageBytes/8 && kind != 13 {
			t.Fatalf("page %d has a record that goes on elsewhere; the test wants shorter rows", root)
		}
		all = append(all, columnsOf(page[at:], base+at))
	}
	if inner {
		all = append(all, records(t, file, int(binary.BigEndian.Uint32(page[head+8:])))...)
	}
	return all
}

// columnsOf reads the header of a record that lies at an offset of the file.
func columnsOf(b []byte, offset int) (r record) {
	size, n := varint(b)
	body := size
	for n < size {
		serial, length := varint(b[n:])
		n += length
		width := 0
		switch {
		case serial >= 12:
			width = (serial - 12) / 2
		case serial <= 4:
			width = serial
		case serial == 5:
			width = 6
		case serial <= 7:
			width = 8
		}
		r.columns = append(r.columns, [2]int{offset + body, width})
		body += width
	}
	return r
}

func varint(b []byte) (v, n int) {
	for n < 8 {
		v = v<<7 | int(b[n]&0x7f)
		if n++; b[n-1] < 0x80 {
			return v, n
		}
	}
	return v<<8 | int(b[n]), n + 1
}
