package countries

import (
	"bytes"
	"compress/gzip"
	"embed"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"net/netip"
	"slices"
)

// files has nothing but .keep in a build for which [Pack] did not write the table.
//
//go:embed all:table
var files embed.FS

// ErrMissing is the error of a build without the table.
var ErrMissing = errors.New("this build does not include the table of countries: run scripts/countries before go build")

const (
	// Folder and the names of its files are what [Pack] writes, below this package.
	Folder = "table"
	IPv4   = "ipv4"
	IPv6   = "ipv6"

	dateSize  = len("20260915")
	mostRange = 4 << 20 // entries of a file: five times those of today
)

// address is an address as a number: IPv4 in low.
type address struct{ high, low uint64 }

func number(addr netip.Addr) address {
	if addr.Is4() {
		b := addr.As4()
		return address{low: uint64(binary.BigEndian.Uint32(b[:]))}
	}
	b := addr.As16()
	return address{binary.BigEndian.Uint64(b[:8]), binary.BigEndian.Uint64(b[8:])}
}

// Entry is the beginning of a range of addresses that ends before the next one, and its country:
// ISO 3166-1 alpha-2, zero = unknown.
type Entry struct {
	From    netip.Addr
	Country [2]byte
}

// Pack returns a file of the table: the date of the data (YYYYMMDD), then, with gzip, the
// countries, the beginnings and the country of each. Beginnings are differences of 128 bits as
// two varints, because neighbors are close to each other; this takes 0.8 MB for both families
// where the addresses alone take 12.6 MB. Entries are in order and of one family.
func Pack(date string, entries []Entry) ([]byte, error) {
	if len(date) != dateSize {
		return nil, fmt.Errorf("%q is not a date", date)
	}
	var names []byte
	index := map[[2]byte]byte{}
	var differences, places []byte
	var last address
	for i, e := range entries {
		at := number(e.From)
		low, borrow := bits.Sub64(at.low, last.low, 0)
		high, under := bits.Sub64(at.high, last.high, borrow)
		if under != 0 || i > 0 && high|low == 0 {
			return nil, fmt.Errorf("entry %d, %s, is not after the previous one", i, e.From)
		}
		differences = binary.AppendUvarint(binary.AppendUvarint(differences, high), low)
		last = at
		place, ok := index[e.Country]
		if !ok {
			if len(index) == 256 {
				return nil, errors.New("more than 256 countries")
			}
			place = byte(len(index))
			index[e.Country] = place
			names = append(names, e.Country[:]...)
		}
		places = append(places, place)
	}
	head := binary.AppendUvarint(binary.AppendUvarint(nil, uint64(len(index))), uint64(len(entries)))
	b := bytes.NewBufferString(date)
	w, err := gzip.NewWriterLevel(b, gzip.BestCompression) // without a time: the same data is the same bytes
	if err != nil {
		return nil, fmt.Errorf("compress the table: %w", err)
	}
	for _, part := range [][]byte{head, names, differences, places} {
		if _, err := w.Write(part); err != nil {
			return nil, fmt.Errorf("compress the table: %w", err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("compress the table: %w", err)
	}
	return b.Bytes(), nil
}

// ranges are the addresses of one family in memory.
type ranges struct {
	short  []uint32  // beginnings of IPv4
	long   []address // beginnings of IPv6
	places []byte    // index of names, one for each beginning
	names  string    // two letters each; zero bytes = unknown
}

// unpack reads a file that Pack wrote.
func unpack(packed []byte, short bool) (*ranges, error) {
	if len(packed) < dateSize {
		return nil, ErrMissing
	}
	z, err := gzip.NewReader(bytes.NewReader(packed[dateSize:]))
	if err != nil {
		return nil, fmt.Errorf("read the table of countries: %w", err)
	}
	b, err := io.ReadAll(io.LimitReader(z, 32*mostRange))
	if err != nil {
		return nil, fmt.Errorf("read the table of countries: %w", err)
	}
	d := decoder{rest: b}
	count, entries := d.uvarint(), d.uvarint()
	if count > 256 || entries > mostRange {
		return nil, fmt.Errorf("read the table of countries: %d countries, %d entries", count, entries)
	}
	r := &ranges{names: string(d.take(2 * int(count)))}
	var at address
	for range entries {
		high, low := d.uvarint(), d.uvarint()
		var carry uint64
		at.low, carry = bits.Add64(at.low, low, 0)
		at.high += high + carry
		if short {
			r.short = append(r.short, uint32(at.low))
		} else {
			r.long = append(r.long, at)
		}
	}
	r.places = slices.Clone(d.take(int(entries)))
	if d.broken || len(d.rest) > 0 || slices.ContainsFunc(r.places, func(p byte) bool { return 2*int(p) >= len(r.names) }) {
		return nil, errors.New("read the table of countries: the file is damaged")
	}
	r.short, r.long = slices.Clip(r.short), slices.Clip(r.long)
	return r, nil
}

// country returns the country of an address of this family; "" = unknown. It does not allocate.
func (r *ranges) country(addr netip.Addr) string {
	if r == nil {
		return ""
	}
	// The entry is the one before the first that begins after the address.
	at, i := number(addr), 0
	if addr.Is4() {
		i = after(len(r.short), func(i int) bool { return uint64(r.short[i]) > at.low })
	} else {
		i = after(len(r.long), func(i int) bool {
			b := r.long[i]
			return b.high > at.high || b.high == at.high && b.low > at.low
		})
	}
	if i == 0 {
		return ""
	}
	name := r.names[2*int(r.places[i-1]):][:2]
	if name[0] == 0 {
		return ""
	}
	return name
}

// after is sort.Search where it can be inlined, which halves a look-up.
func after(n int, is func(int) bool) int {
	low, high := 0, n
	for low < high {
		middle := int(uint(low+high) >> 1)
		if is(middle) {
			high = middle
		} else {
			low = middle + 1
		}
	}
	return low
}

// decoder reads the parts of a file; what is missing is zero, and broken says so at the end.
type decoder struct {
	rest   []byte
	broken bool
}

func (d *decoder) uvarint() uint64 {
	v, n := binary.Uvarint(d.rest)
	if n <= 0 {
		d.broken = true
		return 0
	}
	d.rest = d.rest[n:]
	return v
}

func (d *decoder) take(n int) []byte {
	if n > len(d.rest) {
		d.broken = true
		return make([]byte, n)
	}
	part := d.rest[:n]
	d.rest = d.rest[n:]
	return part
}
