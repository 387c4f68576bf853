package worker

import (
	"cmp"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"maps"
	"slices"

	"curt/internal/backend/kafka"
)

// maxSeen bounds the bytes of what is remembered of a partition's instances, so that it fits
// beside an offset: some 200 of them, each a start of a process. Those that were not heard of
// for longest are forgotten first.
const maxSeen = kafka.MaxMetadata/4*3 - 64

// seen is the highest sequence of each instance in a partition: a record that is not above it
// was there before. It follows from the records alone, in their order.
type seen map[uint64]sighting

type sighting struct {
	next uint64 // the sequence that may come next; 0 = any
	at   int64  // offset of the instance's last record
}

// isNew reports whether a click is there for the first time, and remembers it.
func (s seen) isNew(instance, sequence uint64, offset int64) bool {
	was := s[instance]
	if sequence < was.next {
		s[instance] = sighting{was.next, offset}
		return false
	}
	s[instance] = sighting{sequence + 1, offset}
	return true
}

// heard notes that an instance lives.
func (s seen) heard(instance uint64, offset int64) { s[instance] = sighting{s[instance].next, offset} }

// forget forgets instances that were not heard of from an offset on. What cannot be told to
// whoever has the partition next is not used here either: two would make different blocks.
func (s seen) forget(instances []uint64, from int64) {
	for _, instance := range instances {
		if s[instance].at < from {
			delete(s, instance)
		}
	}
}

// progress is what is committed with an offset, which is where the block ends.
type progress struct {
	first  int64 // where the block begins
	before seen  // of all that is before it
}

const progressVersion = 1

// encode spells a progress whose block ends at an offset, and returns the instances that there
// is no room for.
func (p progress) encode(end int64) (text string, forgotten []uint64) {
	b := append(make([]byte, 0, 256), progressVersion)
	b = binary.AppendUvarint(b, uint64(end-p.first))
	newest := slices.SortedFunc(maps.Keys(p.before), func(x, y uint64) int {
		return cmp.Or(cmp.Compare(p.before[y].at, p.before[x].at), cmp.Compare(x, y))
	})
	for _, instance := range newest {
		if len(b) > maxSeen {
			forgotten = append(forgotten, instance)
			continue
		}
		b = binary.LittleEndian.AppendUint64(b, instance)
		b = binary.AppendUvarint(b, p.before[instance].next)
	}
	return base64.RawStdEncoding.EncodeToString(b), forgotten // brokers take text alone
}

var errProgress = errors.New("invalid offset metadata")

// decodeProgress reads what was committed with an offset. Whatever the text is, it ends with a
// result or an error.
func decodeProgress(text string, end int64) (progress, error) {
	b, err := base64.RawStdEncoding.DecodeString(text)
	if err != nil || len(b) == 0 || b[0] != progressVersion {
		return progress{}, errProgress
	}
	size, n := binary.Uvarint(b[1:])
	if n <= 0 || size > uint64(end) {
		return progress{}, errProgress
	}
	p := progress{first: end - int64(size), before: seen{}}
	for b = b[1+n:]; len(b) > 0; {
		if len(b) < 9 {
			return progress{}, errProgress
		}
		next, n := binary.Uvarint(b[8:])
		if n <= 0 {
			return progress{}, errProgress
		}
		// In the order in which they were heard of, newest first, and before all that come.
		p.before[binary.LittleEndian.Uint64(b)] = sighting{next, -1 - int64(len(p.before))}
		b = b[8+n:]
	}
	return p, nil
}
