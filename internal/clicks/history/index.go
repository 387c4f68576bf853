package history

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"iter"
	"os"
	"slices"

	"github.com/cespare/xxhash/v2"

	"curt/internal/clicks"
	"curt/internal/clicks/clicklog"
)

// granule is a run of whole blocks of a segment: what is read at once to find the
// clicks of one link.
type granule struct {
	offset, end      int64
	earliest, latest int64    // of its events, Unix milliseconds
	keys             []uint64 // digests of the links that were asked for, sorted, distinct; nil when read from a file
}

// granuleBytes ends a granule. Some 400 browsers' clicks are read in 0.2 ms, and a
// segment has at most a thousand granules, however small its blocks are.
const granuleBytes = 64 << 10

// maxGranules fits the two bytes of the index; what comes after it in a segment of
// more than 4 GiB belongs to the last granule.
const maxGranules = 1<<16 - 1

// keyDigest is what indexes know of a key. Two keys with one digest cost a reading
// in vain: records are compared with the key itself.
func keyDigest(key []byte) uint64 { return xxhash.Sum64(key) }

// segmentIndex says which granules of a segment hold events of a link. Orphans are
// left out: anyone could inflate it.
type segmentIndex struct {
	number   uint64
	size     int64 // what is indexed without a gap: up to the segment's end, or to a damage
	granules []granule
}

// gap reports whether a damage lies within what is indexed.
func (x *segmentIndex) gap() bool {
	n := len(x.granules)
	return n > 0 && x.size < x.granules[n-1].end
}

// add indexes the next block that can be read.
func (x *segmentIndex) add(b *clicklog.Block) {
	n := len(x.granules)
	if n == 0 || n < maxGranules && x.granules[n-1].end-x.granules[n-1].offset >= granuleBytes {
		x.seal()
		x.granules = append(x.granules, granule{offset: b.At.Offset, earliest: b.Earliest, latest: b.Latest})
		n++
	}
	g := &x.granules[n-1]
	g.end = b.Next.Offset
	if b.At.Offset == x.size {
		x.size = b.Next.Offset
	}
	g.earliest, g.latest = min(g.earliest, b.Earliest), max(g.latest, b.Latest)
	last := uint64(0)
	_ = b.Events(func(e *clicklog.Event) error { // a record that does not fit ends the block here as it does for Fold
		if d := keyDigest(e.Key); e.Outcome != clicks.Orphan && (d != last || len(g.keys) == 0) {
			g.keys = append(g.keys, d)
			last = d
		}
		return nil
	})
}

// seal brings the last granule into its final form.
func (x *segmentIndex) seal() {
	if n := len(x.granules); n > 0 {
		g := &x.granules[n-1]
		slices.Sort(g.keys)
		g.keys = slices.Clone(slices.Compact(g.keys)) // without the room that it grew by
	}
}

// find returns the granules that may hold events of a key, in order.
func (x *segmentIndex) find(digest uint64) (found []granule, err error) {
	for i := range x.granules {
		g := &x.granules[i]
		_, ok := slices.BinarySearch(g.keys, digest)
		if !ok && i == len(x.granules)-1 { // not sorted yet
			ok = slices.Contains(g.keys, digest)
		}
		if ok {
			found = append(found, granule{offset: g.offset, end: g.end, earliest: g.earliest, latest: g.latest})
		}
	}
	return found, nil
}

// all returns every granule, in order.
func (x *segmentIndex) all() []granule { return slices.Clone(x.granules) }

// The index of a segment lies beside it. All numbers are little-endian.
//
//	 0  magic "CURTIDX" and the version '1'
//	 8  CRC-32C of everything from offset 12 to the end of the granules
//	12  number of granules
//	16  number of the segment
//	24  size of the segment that is indexed
//	32  number of pairs
//	40  granules: offset, end, earliest and latest time, 8 bytes each
//
// Then pages of pageSize bytes, each with the CRC-32C of its rest, the number of
// its pairs in 4 bytes, and the pairs: the digest of a key in 8 bytes and the
// number of a granule in 2, sorted. The pages are searched where they lie, each is
// checked as it is read, so that nothing is held in memory and nothing believed.
const (
	indexMagic   = "CURTIDX1"
	indexHead    = 40
	granuleEntry = 32
	pageSize     = 4096
	pageHead     = 8
	pairSize     = 10
	pagePairs    = (pageSize - pageHead) / pairSize
)

var (
	errIndex    = errors.New("the index is damaged")
	errIndexSum = errors.New("its checksum is wrong")
)

// indexTable has hardware support on every machine that matters.
func indexTable() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

type indexPair struct {
	digest  uint64
	granule uint16
}

// encode writes the file's bytes. The granules must be sealed. rest is called between what takes
// some 0.2 ms at most.
func (x *segmentIndex) encode(w io.Writer, yield func()) error {
	if _, err := w.Write(x.head()); err != nil {
		return err
	}
	var pairs []indexPair
	var page []byte
	write := func(pairs []indexPair) error {
		page = appendPage(page[:0], pairs)
		_, err := w.Write(page)
		return err
	}
	for part := range x.parts() {
		yield()
		pairs = append(pairs, part...)
		for len(pairs) >= pagePairs {
			if err := write(pairs[:pagePairs]); err != nil {
				return err
			}
			pairs = pairs[:copy(pairs, pairs[pagePairs:])]
		}
	}
	if len(pairs) == 0 {
		return nil
	}
	return write(pairs)
}

// head returns what the file begins with: counts, and the granules.
func (x *segmentIndex) head() []byte {
	pairs := 0
	for i := range x.granules {
		pairs += len(x.granules[i].keys)
	}
	b := make([]byte, indexHead, indexHead+len(x.granules)*granuleEntry)
	copy(b, indexMagic)
	binary.LittleEndian.PutUint32(b[12:], uint32(len(x.granules)))
	binary.LittleEndian.PutUint64(b[16:], x.number)
	binary.LittleEndian.PutUint64(b[24:], uint64(x.size))
	binary.LittleEndian.PutUint64(b[32:], uint64(pairs))
	for _, g := range x.granules {
		for _, n := range []int64{g.offset, g.end, g.earliest, g.latest} {
			b = binary.LittleEndian.AppendUint64(b, uint64(n))
		}
	}
	binary.LittleEndian.PutUint32(b[8:], crc32.Checksum(b[12:], indexTable()))
	return b
}

// indexParts is in how many parts, by the first bits of their digests, pairs are sorted: so that
// none takes long, and not all of them, tens of MB, are held beside the granules.
const (
	indexPartBits = 8
	indexParts    = 1 << indexPartBits
)

// parts yields all pairs in order, in parts that are valid until the next one. The keys of each
// granule are in order, so those of a part follow those of the part before.
func (x *segmentIndex) parts() iter.Seq[[]indexPair] {
	return func(yield func([]indexPair) bool) {
		next := make([]int, len(x.granules)) // of each granule's keys
		var pairs []indexPair
		for part := range uint64(indexParts) {
			pairs = pairs[:0]
			for i := range x.granules {
				keys := x.granules[i].keys
				for next[i] < len(keys) && keys[next[i]]>>(64-indexPartBits) == part {
					pairs = append(pairs, indexPair{keys[next[i]], uint16(i)})
					next[i]++
				}
			}
			slices.SortFunc(pairs, func(a, b indexPair) int {
				return cmp.Or(cmp.Compare(a.digest, b.digest), cmp.Compare(a.granule, b.granule))
			})
			if !yield(pairs) {
				return
			}
		}
	}
}

func appendPage(b []byte, pairs []indexPair) []byte {
	begin := len(b)
	b = append(b, make([]byte, pageSize)...)
	page := b[begin:]
	binary.LittleEndian.PutUint32(page[4:], uint32(len(pairs)))
	for i, p := range pairs {
		binary.LittleEndian.PutUint64(page[pageHead+i*pairSize:], p.digest)
		binary.LittleEndian.PutUint16(page[pageHead+i*pairSize+8:], p.granule)
	}
	binary.LittleEndian.PutUint32(page, crc32.Checksum(page[4:], indexTable()))
	return b
}

// write puts the index beside its segment, whole or not at all. It is not synced:
// what a power cut leaves of it is found by its checksums and rebuilt.
func (x *segmentIndex) write(path string, yield func()) error {
	temporary := path + ".tmp"
	if err := x.create(temporary, yield); err != nil {
		return errors.Join(fmt.Errorf("write index: %w", err), os.Remove(temporary))
	}
	if err := os.Rename(temporary, path); err != nil {
		return fmt.Errorf("write index: %w", err)
	}
	return nil
}

func (x *segmentIndex) create(path string, yield func()) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(f, granuleBytes)
	err = x.encode(w, yield)
	if err == nil {
		err = w.Flush()
	}
	return errors.Join(err, f.Close())
}

// indexFile is an index that is searched where it lies.
type indexFile struct {
	file     *os.File
	size     int64 // of the segment, as far as it is indexed
	granules []granule
	pages    int64
	at       int64 // where the pages begin
	page     [pageSize]byte
}

// openIndex reads the head of a segment's index. errIndex means that it has to be
// rebuilt.
func openIndex(path string, s clicklog.Segment) (*indexFile, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open index: %w", err)
	}
	x := &indexFile{file: f}
	if err := x.readHead(s); err != nil {
		_ = f.Close() // only read
		return nil, fmt.Errorf("%w: %s: %w", errIndex, path, err)
	}
	return x, nil
}

func (x *indexFile) readHead(s clicklog.Segment) error {
	info, err := x.file.Stat()
	if err != nil {
		return err
	}
	head := make([]byte, indexHead)
	if _, err := x.file.ReadAt(head, 0); err != nil {
		return err
	}
	granules := int64(binary.LittleEndian.Uint32(head[12:]))
	pairs := binary.LittleEndian.Uint64(head[32:])
	x.size = int64(binary.LittleEndian.Uint64(head[24:]))
	x.at = indexHead + granules*granuleEntry
	x.pages = (info.Size() - x.at) / pageSize
	switch {
	case string(head[:8]) != indexMagic || granules > maxGranules || x.at > info.Size():
		return errors.New("not an index")
	case binary.LittleEndian.Uint64(head[16:]) != s.Number || x.size > s.Size:
		return errors.New("it belongs to another segment")
	case (info.Size()-x.at)%pageSize != 0 || pairs > uint64(x.pages*pagePairs) || int64(pairs) <= (x.pages-1)*pagePairs:
		return errors.New("truncated")
	}
	head = slices.Grow(head, int(granules)*granuleEntry)[:x.at]
	if _, err := x.file.ReadAt(head[indexHead:], indexHead); err != nil {
		return err
	}
	if crc32.Checksum(head[12:], indexTable()) != binary.LittleEndian.Uint32(head[8:]) {
		return errIndexSum
	}
	for b := head[indexHead:]; len(b) > 0; b = b[granuleEntry:] {
		n := func(i int) int64 { return int64(binary.LittleEndian.Uint64(b[8*i:])) }
		x.granules = append(x.granules, granule{offset: n(0), end: n(1), earliest: n(2), latest: n(3)})
	}
	return nil
}

// read reads a page and returns its pairs' bytes.
func (x *indexFile) read(page int64) ([]byte, error) {
	if _, err := x.file.ReadAt(x.page[:], x.at+page*pageSize); err != nil {
		return nil, fmt.Errorf("%w: %w", errIndex, err)
	}
	n := binary.LittleEndian.Uint32(x.page[4:])
	if crc32.Checksum(x.page[4:], indexTable()) != binary.LittleEndian.Uint32(x.page[:]) || n == 0 || n > pagePairs {
		return nil, fmt.Errorf("%w: page %d: %w", errIndex, page, errIndexSum)
	}
	return x.page[pageHead:][:n*pairSize], nil
}

// all returns every granule, in order.
func (x *indexFile) all() []granule { return x.granules }

// find returns the granules that may hold events of a key, in order.
func (x *indexFile) find(digest uint64) (found []granule, err error) {
	low, high := int64(0), x.pages // the first page that begins with digest or later
	for low < high {
		middle := (low + high) / 2
		pairs, err := x.read(middle)
		if err != nil {
			return nil, err
		}
		if binary.LittleEndian.Uint64(pairs) < digest {
			low = middle + 1
		} else {
			high = middle
		}
	}
	for page := max(low-1, 0); page < x.pages; page++ {
		pairs, err := x.read(page)
		if err != nil {
			return nil, err
		}
		for ; len(pairs) > 0; pairs = pairs[pairSize:] {
			d, g := binary.LittleEndian.Uint64(pairs), int(binary.LittleEndian.Uint16(pairs[8:]))
			switch {
			case d > digest:
				return found, nil
			case d == digest && g < len(x.granules):
				found = append(found, x.granules[g])
			}
		}
	}
	return found, nil
}

func (x *indexFile) close() { _ = x.file.Close() } // only read
