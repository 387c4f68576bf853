package link

import (
	"encoding/json"
	"fmt"
)

// extraVersion is that of the JSON in the column extra: of another one every member is a later
// release's.
const extraVersion = "1"

// Later is what a later release stored with a link and this one does not know. It is kept as
// it is, but for a tombstone, and nothing else is done with it.
type Later struct {
	Needs   uint64 // bits of fields that change the answer
	Members string // a JSON object of fields; "" = none
}

// Needs returns the bits of the fields of l that change the answer and have no column of their own.
func (l *Link) Needs() uint64 {
	needs := l.Later.Needs
	for i := range fields {
		if f := &fields[i]; f.Needs != 0 && !f.zero(l) {
			needs |= f.Needs
		}
	}
	return needs
}

// Unknown returns the bits of needs that this release does not know.
func Unknown(needs uint64) uint64 {
	for i := range fields {
		needs &^= fields[i].Needs
	}
	return needs
}

// Extra returns the fields without a column of their own as the versioned JSON object that
// stores keep, those of a later release among them; "" = there are none.
func (l *Link) Extra() (string, error) {
	if l.Later.Members == "" && !hasExtra(l) {
		return "", nil
	}
	members := map[string]json.RawMessage{}
	if l.Later.Members != "" {
		if err := json.Unmarshal([]byte(l.Later.Members), &members); err != nil {
			return "", fmt.Errorf("%w: fields of a later release: %w", ErrInvalid, err)
		}
	}
	for i := range fields {
		f := &fields[i]
		if f.Column != "" || f.zero(l) {
			continue
		}
		value, err := json.Marshal(f.Of(l))
		if err != nil {
			return "", fmt.Errorf("%w: %s: %w", ErrInvalid, f.Name, err)
		}
		members[f.Name] = value
	}
	if _, later := members["v"]; !later {
		members["v"] = json.RawMessage(extraVersion)
	}
	text, err := json.Marshal(members)
	return string(text), err
}

func hasExtra(l *Link) bool {
	for i := range fields {
		if f := &fields[i]; f.Column == "" && !f.zero(l) {
			return true
		}
	}
	return false
}

// SetExtra sets what Extra returned, of this release or of another, and the bits that were
// stored beside it.
func (l *Link) SetExtra(text string, needs uint64) error {
	l.Later = Later{Needs: Unknown(needs)}
	if text == "" {
		return nil
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &members); err != nil {
		return fmt.Errorf("read the fields of a link: %w", err)
	}
	ours := string(members["v"]) == extraVersion
	if ours {
		delete(members, "v")
	}
	for i := range fields {
		f := &fields[i]
		value, there := members[f.Name]
		if f.Column != "" || !there || !ours {
			continue
		}
		if err := json.Unmarshal(value, f.Of(l)); err != nil {
			return fmt.Errorf("read the field %s of a link: %w", f.Name, err)
		}
		delete(members, f.Name)
	}
	if len(members) == 0 {
		return nil
	}
	rest, err := json.Marshal(members)
	l.Later.Members = string(rest)
	return err
}
