package moderation

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"

	"curt/internal/feed"
)

// chainTag begins what is hashed, so that a hash of the journal is none of anything
// else, and the next encoding another's.
const chainTag = "curt journal 1"

// Seal returns e with the hash that it has behind the entry whose hash is before, which
// is zero for the first. Journals call it for what they append.
func (e Entry) Seal(before Hash) Entry {
	e.Hash = sha256.Sum256(e.encode(nil, before))
	return e
}

// encode appends what the hash is taken of. Each part has a fixed size or its length in
// front, so that no two entries have the same bytes. Texts are in it by their commitment.
func (e Entry) encode(b []byte, before Hash) []byte {
	b = append(b, chainTag...)
	b = append(b, before[:]...)
	b = binary.BigEndian.AppendUint64(b, e.Sequence)
	b = binary.BigEndian.AppendUint64(b, uint64(e.At.UnixMilli()))
	for _, part := range []string{string(e.Entity.Kind), e.Entity.Name, string(e.Action), e.Actor} {
		b = binary.BigEndian.AppendUint32(b, uint32(len(part)))
		b = append(b, part...)
	}
	b = append(b, e.Link[:]...)
	b = append(b, byte(e.Safety), byte(e.Score))
	b = append(b, e.Reason.Commitment[:]...)
	return append(b, e.Evidence.Commitment[:]...)
}

// Reader reads a journal from one end to the other.
type Reader interface {
	// Read returns up to n entries behind a sequence, in order.
	Read(ctx context.Context, after uint64, n int) ([]Entry, error)
}

// LogOf returns a journal as a log to follow. A chain has one partition, and nothing of it is ever
// trimmed.
func LogOf(r Reader) feed.Log[uint64, Entry] {
	return feed.Log[uint64, Entry]{Short: true, Read: func(ctx context.Context, after uint64, n int) ([]Entry, uint64, error) {
		page, err := r.Read(ctx, after, n)
		if len(page) > 0 {
			after = page[len(page)-1].Sequence
		}
		return page, after, err
	}}
}

// verifyPage is how many entries Verify reads at a time.
const verifyPage = 1000

// Verify reads the whole journal and returns its last entry, the zero one where there is
// none. Each entry is given to each, unless that is nil, once it is known to be in its
// place in the chain. ErrBroken when one is missing, changed or out of order, or when a
// text that stands beside it is another than was committed to, or is gone and no later
// entry says that it was erased; then the Sequence of last is that of the entry before.
//
// Whoever can write the journal can write another from its beginning: that it is the same
// journal as before is known to those who kept a hash of it.
func Verify(ctx context.Context, r Reader, each func(*Entry)) (last Entry, err error) {
	texts := newErasures()
	for {
		page, err := r.Read(ctx, last.Sequence, verifyPage)
		if err != nil {
			return last, fmt.Errorf("verify the journal after %d: %w", last.Sequence, err)
		}
		if len(page) == 0 {
			if sequence, robbed := texts.unexplained(); robbed {
				return Entry{Sequence: sequence - 1}, fmt.Errorf("%w: the texts of entry %d are missing, without an entry that records their erasure", ErrBroken, sequence)
			}
			return last, nil
		}
		for i := range page {
			e := &page[i]
			if what := e.misfit(&last); what != "" {
				return last, fmt.Errorf("%w: %s of entry %d", ErrBroken, what, last.Sequence+1)
			}
			if texts.take(e); each != nil {
				each(e)
			}
			last = *e
		}
	}
}

// misfit says what of e cannot stand behind last; "" = it fits.
func (e *Entry) misfit(last *Entry) string {
	switch {
	case e.Sequence != last.Sequence+1:
		return "number"
	case e.At.Before(last.At):
		return "time"
	case e.Hash != e.Seal(last.Hash).Hash:
		return "hash"
	case !e.Reason.kept():
		return "reason"
	case !e.Evidence.kept():
		return "evidence"
	}
	return ""
}

// kept reports whether a stored text is what was committed to, or was erased.
func (t Text) kept() bool {
	if t.Erased {
		return t == Text{Erased: true, Commitment: t.Commitment} && t.Commitment != Hash{}
	}
	return t == Commit(t.Body, t.Salt)
}

// erasedText is how the reason of an ActionErase begins: it names the entry.
const erasedText = "entry %d: "

// ErasureReason returns the reason of an ActionErase about an entry.
func ErasureReason(sequence uint64, reason string) string {
	return fmt.Sprintf(erasedText, sequence) + reason
}

// erasedCase is how the reason of an ActionErase begins that erased a case, and no text of the journal.
const erasedCase = "case: "

// CaseErasureReason returns the reason of an ActionErase about the case of a destination.
func CaseErasureReason(reason string) string { return erasedCase + reason }

// erasures tells texts that were erased from those that somebody took away behind the
// journal's back: an erasure has an entry of its own. It remembers those it waits for.
type erasures struct {
	gone map[uint64]Entity   // entries without their texts, by number
	some map[Entity][]uint64 // erasures that do not say, or no longer, what they erased; in order
}

func newErasures() *erasures {
	return &erasures{gone: map[uint64]Entity{}, some: map[Entity][]uint64{}}
}

// take takes the next entry of the journal.
func (s *erasures) take(e *Entry) {
	if e.Reason.Erased || e.Evidence.Erased {
		s.gone[e.Sequence] = e.Entity
	}
	if e.Action != ActionErase || e.Entity.Kind == KindDestination && strings.HasPrefix(e.Reason.Body, erasedCase) {
		return
	}
	var of uint64
	if _, err := fmt.Sscanf(e.Reason.Body, erasedText, &of); err != nil {
		s.some[e.Entity] = append(s.some[e.Entity], e.Sequence)
	} else if s.gone[of] == e.Entity && of < e.Sequence {
		delete(s.gone, of)
	}
}

// unexplained returns the first entry whose texts are gone and that no later erasure can
// have meant.
func (s *erasures) unexplained() (first uint64, found bool) {
	for _, sequence := range slices.Backward(slices.Sorted(maps.Keys(s.gone))) {
		of := s.gone[sequence]
		if some := s.some[of]; len(some) > 0 && some[len(some)-1] > sequence {
			s.some[of] = some[:len(some)-1]
			continue
		}
		first, found = sequence, true
	}
	return first, found
}
