package searchindex

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"curt/internal/link"
	"curt/internal/search"
)

const (
	// searchPage is how long a page of terms gets, so that its row fits into one page
	// of the file; a term that most documents have makes a longer one.
	pageLength = 3900

	// chunkDocs is how many documents one chunk names.
	chunkDocs = 128

	// segmentShift leaves 20 bits for pages and chunks of a segment: 65,536 documents
	// with search's bound of words in pages of 4 KiB take 17.
	segmentShift = 20
)

// errPacked means that packed bytes were not written by this package.
func errPacked(what string) error { return fmt.Errorf("%w: %s", search.ErrDamaged, what) }

// withSum appends a checksum to packed bytes: SQLite has none, and a bit that flipped
// would hide links without a word.
func withSum(b []byte) []byte {
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)))
}

// checked checks and removes the checksum.
func checked(b []byte) ([]byte, error) {
	if len(b) < 4 {
		return nil, errPacked("short page")
	}
	data, sum := b[:len(b)-4], binary.LittleEndian.Uint32(b[len(b)-4:])
	if crc32.Checksum(data, crc32.MakeTable(crc32.Castagnoli)) != sum {
		return nil, errPacked("checksum")
	}
	return data, nil
}

// pageWriter packs terms, which come sorted, into pages. An entry is what the term
// shares with the one before (a varint), the length of its rest, the rest, and the
// postings.
type pageWriter struct {
	docs  int
	put   func(page int, data []byte) error
	heads []string // first term of each page

	buf     []byte
	entry   []byte
	scratch []byte
	last    []byte
}

func (w *pageWriter) add(term []byte, list []int) error {
	w.entry = w.pack(w.entry[:0], term, list)
	if len(w.buf) > 0 && len(w.buf)+len(w.entry) > pageLength {
		if err := w.flush(); err != nil {
			return err
		}
		w.entry = w.pack(w.entry[:0], term, list) // the first of a page shares nothing
	}
	if len(w.buf) == 0 {
		w.heads = append(w.heads, string(term))
	}
	w.buf = append(w.buf, w.entry...)
	w.last = append(w.last[:0], term...)
	return nil
}

func (w *pageWriter) pack(b, term []byte, list []int) []byte {
	shared := 0
	if len(w.buf) > 0 {
		for shared < len(term) && shared < len(w.last) && term[shared] == w.last[shared] {
			shared++
		}
	}
	b = binary.AppendUvarint(b, uint64(shared))
	b = binary.AppendUvarint(b, uint64(len(term)-shared))
	b = append(b, term[shared:]...)
	return appendPostings(b, list, w.docs, &w.scratch)
}

// flush writes the page under way, if any.
func (w *pageWriter) flush() error {
	if len(w.buf) == 0 {
		return nil
	}
	err := w.put(len(w.heads)-1, withSum(w.buf))
	w.buf = w.buf[:0]
	return err
}

// pageReader walks the terms of one page.
type pageReader struct {
	data []byte
	term []byte // valid until the next call of next
	list postings
}

// next moves to the next term; ok is false at the end.
func (r *pageReader) next() (ok bool, err error) {
	if len(r.data) == 0 {
		return false, nil
	}
	shared, rest := r.varint(), r.varint()
	if shared < 0 || shared > len(r.term) || rest < 0 || rest > len(r.data) {
		return false, errPacked("term")
	}
	r.term = append(r.term[:shared], r.data[:rest]...)
	r.data = r.data[rest:]
	size := r.varint()
	if size < 0 || size>>1 > len(r.data) {
		return false, errPacked("postings")
	}
	r.list = postings{data: r.data[:size>>1], bits: size&1 == 1}
	r.data = r.data[size>>1:]
	return true, nil
}

// varint returns -1 for what is none, or no length.
func (r *pageReader) varint() int {
	v, n := binary.Uvarint(r.data)
	if n <= 0 || v > 1<<30 {
		r.data = nil
		return -1
	}
	r.data = r.data[n:]
	return int(v)
}

// packHeads joins terms; each stands behind its length.
func packHeads(heads []string) []byte {
	var b []byte
	for _, h := range heads {
		b = append(binary.AppendUvarint(b, uint64(len(h))), h...)
	}
	return withSum(b)
}

func unpackHeads(b []byte) (heads []string, err error) {
	b, err = checked(b)
	if err != nil {
		return nil, err
	}
	for r := (pageReader{data: b}); len(r.data) > 0; {
		n := r.varint()
		if n < 0 || n > len(r.data) {
			return nil, errPacked("heads")
		}
		heads = append(heads, string(r.data[:n]))
		r.data = r.data[n:]
	}
	return heads, nil
}

// packChunk packs documents that are sorted by id: what the id shares with the one
// before, its rest, domain and code behind their lengths.
func packChunk(docs []search.Hit) []byte {
	var b []byte
	var last link.ID
	for _, d := range docs {
		shared := 0
		for shared < len(last) && d.ID[shared] == last[shared] {
			shared++
		}
		b = append(append(b, byte(shared)), d.ID[shared:]...)
		b = append(binary.AppendUvarint(b, uint64(len(d.Key.Domain))), d.Key.Domain...)
		b = append(binary.AppendUvarint(b, uint64(len(d.Key.Code))), d.Key.Code...)
		last = d.ID
	}
	return withSum(b)
}

func unpackChunk(b []byte) ([]search.Hit, error) {
	b, err := checked(b)
	if err != nil {
		return nil, err
	}
	docs := make([]search.Hit, 0, chunkDocs)
	text := string(b) // that all keys are parts of: of a chunk mostly one is wanted
	var id link.ID
	for r := (pageReader{data: b}); len(r.data) > 0; {
		shared := int(r.data[0])
		r.data = r.data[1:]
		if shared > len(id) || len(id)-shared > len(r.data) {
			return nil, errPacked("id")
		}
		r.data = r.data[copy(id[shared:], r.data):]
		domain, ok1 := r.part(text)
		code, ok2 := r.part(text)
		if !ok1 || !ok2 {
			return nil, errPacked("key")
		}
		docs = append(docs, search.Hit{ID: id, Key: link.Key{Domain: link.Domain(domain), Code: link.Code(code)}})
	}
	return docs, nil
}

// part reads a text behind its length as a part of whole, which ends where the data does.
func (r *pageReader) part(whole string) (string, bool) {
	n := r.varint()
	if n < 0 || n > len(r.data) {
		return "", false
	}
	begin := len(whole) - len(r.data)
	r.data = r.data[n:]
	return whole[begin : begin+n], true
}
