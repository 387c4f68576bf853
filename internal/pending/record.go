package pending

import (
	"encoding/json"
	"errors"
	"fmt"

	"curt/internal/link"
)

// recordVersion is that of a record which this release reads. A release that adds a field which an older
// one must not lose raises it.
const recordVersion = 1

// ErrUnreadable says that a record is no link of any release.
var ErrUnreadable = errors.New("unreadable record of a pending link")

// ErrNewer says that a record was written by a newer release. That it is read needs an update of the writer,
// so that it waits.
var ErrNewer = errors.New("the pending link was written by a newer release; update the writer")

// envelope is a record, as JSON. The fields of a link go by their columns, like in stores, those without
// one are in Extra. What is zero is left out.
type envelope struct {
	Version int                        `json:"v"`
	Fields  map[string]json.RawMessage `json:"link"`
	Extra   string                     `json:"extra,omitempty"`
	Needs   uint64                     `json:"needs,omitempty"`
}

// Encode returns a link as the log keeps it. The error wraps link.ErrInvalid.
func Encode(l *link.Link) ([]byte, error) {
	e := envelope{Version: recordVersion, Fields: map[string]json.RawMessage{}, Needs: l.Needs()}
	zero := new(link.Link)
	for _, f := range link.Fields() {
		if f.Column == "" {
			continue
		}
		value, err := json.Marshal(f.Of(l))
		if err != nil {
			return nil, fmt.Errorf("%w: %s: %w", link.ErrInvalid, f.Column, err)
		}
		if none, err := json.Marshal(f.Of(zero)); err == nil && string(none) == string(value) {
			continue
		}
		e.Fields[f.Column] = value
	}
	var err error
	if e.Extra, err = l.Extra(); err != nil {
		return nil, err
	}
	text, err := json.Marshal(e)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", link.ErrInvalid, err)
	}
	return text, nil
}

// Decode returns the link of a record. ErrUnreadable, and link.ErrInvalid of an id of another length, come with as much of the link as could
// be read: its key may be known.
func Decode(text []byte) (l link.Link, err error) {
	var e envelope
	if err := json.Unmarshal(text, &e); err != nil {
		return l, fmt.Errorf("%w: %w", ErrUnreadable, err)
	}
	if e.Version > recordVersion {
		return l, ErrNewer
	}
	for _, f := range link.Fields() {
		value, given := e.Fields[f.Column]
		if f.Column == "" || !given {
			continue
		}
		if wrong := json.Unmarshal(value, f.Of(&l)); wrong != nil && err == nil {
			err = fmt.Errorf("%w: %s: %w", ErrUnreadable, f.Column, wrong)
		}
	}
	if wrong := l.SetExtra(e.Extra, e.Needs); wrong != nil && err == nil {
		err = fmt.Errorf("%w: %w", ErrUnreadable, wrong)
	}
	if err != nil {
		return l, err
	}
	if l.Key.Code == "" || l.ID.IsZero() {
		return l, fmt.Errorf("%w: no code or no id", ErrUnreadable)
	}
	// Of an array that is too short or too long json makes another id.
	var id []int
	if err := json.Unmarshal(e.Fields["id"], &id); err != nil || len(id) != len(l.ID) {
		l.ID = link.ID{}
		return l, fmt.Errorf("%w: an id of %d bytes, expected %d", link.ErrInvalid, len(id), len(l.ID))
	}
	return l, nil
}
