package coldcopy

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"time"

	"curt/internal/link"
)

// Digest is a sum over rows in any order: two tables with the same rows have the same one. It finds
// what was lost, doubled or changed by mistake, and keeps nobody from forging.
type Digest struct {
	Rows int64
	Sum  [4]uint64
}

// Of is the digest of one row.
func of(row []byte) Digest {
	h := sha256.Sum256(row)
	d := Digest{Rows: 1}
	for i := range d.Sum {
		d.Sum[i] = binary.BigEndian.Uint64(h[8*i:])
	}
	return d
}

// Add adds the rows of another digest.
func (d *Digest) Add(other Digest) {
	d.Rows += other.Rows
	for i := range d.Sum {
		d.Sum[i] += other.Sum[i]
	}
}

// String returns the sum as text.
func (d Digest) String() string {
	var b []byte
	for _, part := range d.Sum {
		b = binary.BigEndian.AppendUint64(b, part)
	}
	return hex.EncodeToString(b[:16])
}

// OfLinks is the digest of all links that each calls back with, page by page. told is given the number so far.
func OfLinks(each func(page func([]link.Link) error) error, told func(rows int64)) (sum Digest, err error) {
	err = each(func(page []link.Link) error {
		for i := range page {
			d, err := OfLink(&page[i])
			if err != nil {
				return err
			}
			sum.Add(d)
		}
		told(sum.Rows)
		return nil
	})
	return sum, err
}

// OfLink is the digest of a link: of every field of the table of fields, and of those that a newer
// release added.
func OfLink(l *link.Link) (Digest, error) {
	extra, err := l.Extra()
	if err != nil {
		return Digest{}, err
	}
	row := appendText(make([]byte, 0, 512), "links")
	fields := link.Fields()
	for i := range fields {
		if fields[i].Column == "" {
			continue
		}
		switch x := fields[i].Of(l).(type) {
		case *link.ID:
			row = append(row, x[:]...)
		case *string:
			row = appendText(row, *x)
		case *bool:
			row = append(row, byte(bit(*x)))
		case *uint8:
			row = binary.BigEndian.AppendUint64(row, uint64(*x))
		case *uint16:
			row = binary.BigEndian.AppendUint64(row, uint64(*x))
		case *uint64:
			row = binary.BigEndian.AppendUint64(row, *x)
		case *time.Time:
			row = binary.BigEndian.AppendUint64(row, uint64(link.Millis(*x)))
		case *[]string:
			row = binary.AppendUvarint(row, uint64(len(*x)))
			for _, t := range *x {
				row = appendText(row, t)
			}
		}
	}
	return of(appendText(binary.BigEndian.AppendUint64(row, l.Needs()), extra)), nil
}

// OfRow is the digest of numbers and blobs in the order of columns; nil = NULL.
func OfRow(name string, numbers []int64, blobs ...[]byte) Digest {
	row := appendText(make([]byte, 0, 256), name)
	for _, n := range numbers {
		row = binary.BigEndian.AppendUint64(row, uint64(n))
	}
	for _, b := range blobs {
		if row = append(row, byte(bit(b != nil))); b != nil {
			row = appendText(row, string(b))
		}
	}
	return of(row)
}

func appendText(row []byte, text string) []byte {
	return append(binary.AppendUvarint(row, uint64(len(text))), text...)
}

func bit(b bool) int64 {
	if b {
		return 1
	}
	return 0
}
