package link

import (
	"fmt"
	"strconv"
	"strings"
)

// Position is where a reader of a log stands; "" is before the first entry. Only the log can
// compare positions. In the change log it holds [Heads].
type Position string

// Heads is what a position of the change log holds: the sequence of the last entry by partition. A
// partition beyond its end is at 0.
type Heads []Sequence

// MaxPartitions bounds the partitions of a change log.
const MaxPartitions = 1 << 12

// vector begins the text of heads of several partitions; the form has number 1. Heads of one
// partition are its sequence alone, as they were before a log had partitions.
const vector = "1:"

// Position returns h as text. Heads that mean the same have the same text.
func (h Heads) Position() Position {
	for len(h) > 0 && h[len(h)-1] == 0 {
		h = h[:len(h)-1]
	}
	switch len(h) {
	case 0:
		return ""
	case 1:
		return Position(strconv.FormatUint(uint64(h[0]), 10))
	}
	text := []byte(vector)
	for i, s := range h {
		if i > 0 {
			text = append(text, ',')
		}
		text = strconv.AppendUint(text, uint64(s), 10)
	}
	return Position(text)
}

// Heads reads what Heads.Position wrote; ErrInvalid for anything else.
func (p Position) Heads() (h Heads, err error) {
	if p == "" {
		return nil, nil
	}
	text, several := strings.CutPrefix(string(p), vector)
	for part := range strings.SplitSeq(text, ",") {
		s, err := strconv.ParseUint(part, 10, 63)
		if err != nil || len(h) == MaxPartitions || len(h) == 1 && !several {
			return nil, fmt.Errorf("position %q of the change log: %w", p, ErrInvalid)
		}
		h = append(h, Sequence(s))
	}
	return h, nil
}

// Sequence returns the position in a log of one partition; ErrConflict for one of another log.
func (p Position) Sequence() (Sequence, error) {
	h, err := p.Heads()
	if err == nil && len(h) > 1 {
		err = fmt.Errorf("position %q of a log with one partition: %w", p, ErrConflict)
	}
	if err != nil {
		return 0, err
	}
	return h.At(0), nil
}

// Position is behind an entry of a log of one partition.
func (s Sequence) Position() Position { return Heads{s}.Position() }

// At returns the head of a partition.
func (h Heads) At(partition uint16) Sequence {
	if int(partition) >= len(h) {
		return 0
	}
	return h[partition]
}

// Set returns h, which it may change, with another head of a partition.
func (h Heads) Set(partition uint16, s Sequence) Heads {
	for len(h) <= int(partition) {
		h = append(h, 0)
	}
	h[partition] = s
	return h
}

// Covers reports whether h is behind no head of another position.
func (h Heads) Covers(of Heads) bool {
	for i, s := range of {
		if s > 0 && (i >= len(h) || s > h[i]) {
			return false
		}
	}
	return true
}

// Continues returns ErrConflict where what follows a position of a log of one partition is not
// there: first, the sequence that was found behind it, is not the next one, or, without any, the
// log ends before it. A standby that lacked its end has become the primary, or an older copy was
// restored; sequences are given out again with another meaning.
func (s Sequence) Continues(first, head Sequence) error {
	switch {
	case first > s+1:
		return fmt.Errorf("changes up to %d were trimmed: %w", first-1, ErrConflict)
	case first == 0 && head < s:
		return fmt.Errorf("the log ends at %d and was read to %d: %w", head, s, ErrConflict)
	}
	return nil
}
