package blocklist

import (
	"encoding/binary"
	"runtime"
	"slices"
	"sort"
)

const (
	// restBytes are kept of each digest, behind the bits that number its bucket: among
	// the sixteen entries of a bucket one name in 7·10^10 is mistaken for a listed one.
	// Four bytes would be one in 3·10^8, which a large installation meets; six would
	// take another byte of each entry.
	restBytes = 5
	restBits  = 8 * restBytes
	// spare bytes at the end let the last rest be read as eight bytes.
	spare = 8 - restBytes
	// bucketSize is what a bucket has to have at the least on average: its number and
	// its start take 4 bytes.
	bucketSize = 8
)

// digests is a set of 64-bit digests, made once, in 5¼ to 5½ bytes each. The first bits of a
// digest number a bucket; the bucket holds the bits behind them, in order. The zero
// set is empty. It is safe for many goroutines.
type digests struct {
	shift  uint     // 64 minus the bits of a bucket's number
	starts []uint32 // where each bucket begins, and where the last ends
	rests  []byte   // restBytes of each digest, and spare
}

// len returns how many digests there are.
func (s *digests) len() int { return max(0, len(s.rests)-spare) / restBytes }

// size returns how many bytes the set takes.
func (s *digests) size() int { return cap(s.rests) + 4*cap(s.starts) }

func (s *digests) has(digest uint64) bool {
	if len(s.starts) == 0 {
		return false
	}
	bucket, want := digest>>s.shift, restOf(digest, s.shift)
	for i := s.starts[bucket]; i < s.starts[bucket+1]; i++ {
		if rest := s.at(int(i)); rest >= want {
			return rest == want
		}
	}
	return false
}

// restOf returns the restBits behind a bucket's number.
func restOf(digest uint64, shift uint) uint64 { return digest << (64 - shift) >> (64 - restBits) }

func (s *digests) at(i int) uint64 {
	return binary.BigEndian.Uint64(s.rests[i*restBytes:]) >> (64 - restBits)
}

func (s *digests) put(i int, rest uint64) {
	b := s.rests[i*restBytes : (i+1)*restBytes]
	b[0] = byte(rest >> 32)
	binary.BigEndian.PutUint32(b[1:], uint32(rest))
}

// tally is the first of two rounds over the same digests: it counts what each bucket
// will hold. Two rounds over a file take twice the time of one, and no memory beside
// the set: while a version is read the one before is still in use.
type tally struct {
	shift  uint
	counts []uint32
	n      int
}

// newTally expects about so many digests.
func newTally(expected int64) *tally {
	t := &tally{shift: 64}
	for expected > 2*bucketSize && t.shift > restBits {
		expected, t.shift = expected/2, t.shift-1
	}
	t.counts = make([]uint32, 1<<(64-t.shift))
	return t
}

func (t *tally) add(digest uint64) { t.counts[digest>>t.shift]++; t.n++ }

// builder is the second round: it puts each digest into its bucket.
type builder struct {
	digests
	next []uint32 // where the next digest of each bucket goes
}

// builder makes room for what was counted.
func (t *tally) builder() *builder {
	for len(t.counts) > 1 && t.n/len(t.counts) < bucketSize { // fewer than expected
		for i := range len(t.counts) / 2 {
			t.counts[i] = t.counts[2*i] + t.counts[2*i+1]
		}
		t.counts, t.shift = slices.Clone(t.counts[:len(t.counts)/2]), t.shift+1
	}
	b := &builder{next: t.counts}
	b.shift = t.shift
	b.starts = make([]uint32, len(t.counts)+1)
	for i, n := range t.counts {
		b.starts[i+1] = b.starts[i] + n
	}
	copy(b.next, b.starts)
	b.rests = make([]byte, t.n*restBytes+spare)
	return b
}

// add reports false for a digest that was not counted.
func (b *builder) add(digest uint64) bool {
	bucket := digest >> b.shift
	i := b.next[bucket]
	if i == b.starts[bucket+1] {
		return false
	}
	b.put(int(i), restOf(digest, b.shift))
	b.next[bucket]++
	return true
}

// set returns what was built, each digest once; ok is false when some that were
// counted did not come. The builder must not be used afterwards.
func (b *builder) set() (s digests, ok bool) {
	kept := uint32(0)
	run := &span{set: &b.digests}
	for i, end := range b.next {
		from := int(b.starts[i])
		if end != b.starts[i+1] {
			return digests{}, false
		}
		run.from, run.n = from, int(end)-from
		sort.Sort(run) // in place, whatever a bucket holds
		b.starts[i] = kept
		for at := from; at < int(end); at++ {
			if rest := b.at(at); at == from || rest != b.at(int(kept)-1) {
				b.put(int(kept), rest)
				kept++
			}
		}
		if i%yieldEvery == 0 {
			runtime.Gosched()
		}
	}
	b.starts[len(b.next)] = kept
	b.rests = b.rests[:int(kept)*restBytes+spare]
	if len(b.rests) < cap(b.rests)/4*3 {
		b.rests = slices.Clone(b.rests)
	}
	return b.digests, true
}

// span sorts a part of the rests.
type span struct {
	set     *digests
	from, n int
}

func (s *span) Len() int           { return s.n }
func (s *span) Less(i, j int) bool { return s.set.at(s.from+i) < s.set.at(s.from+j) }
func (s *span) Swap(i, j int) {
	a, b := s.set.at(s.from+i), s.set.at(s.from+j)
	s.set.put(s.from+i, b)
	s.set.put(s.from+j, a)
}
