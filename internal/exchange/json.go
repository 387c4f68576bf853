package exchange

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// jsonLines reads JSON Lines.
type jsonLines struct{ lines *lines }

// NewJSON returns a Reader of JSON Lines: as an export writes them, with some of their
// fields, with custom_alias for short_code, or with the names that other shorteners give
// to the fields. r begins at the start of the file; what lies before the offset is passed
// over.
func NewJSON(r io.Reader, offset int64) (Reader, error) {
	l := newLines(r)
	if err := l.begin(); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return &jsonLines{l}, l.skip(offset)
}

// Next implements Reader. Empty lines are passed over.
func (j *jsonLines) Next() (Row, error) {
	for {
		first, err := j.lines.look(0)
		if err != nil {
			return Row{}, err
		}
		j.lines.take(1)
		row := j.lines.row(j.lines.number)
		text := bytes.TrimSpace(first.text)
		switch {
		case first.long:
			row.Err = errLong
		case len(text) == 0:
			continue
		default:
			row.Record, row.Err = parseJSON(text)
		}
		return row, nil
	}
}

// parseJSON reads a link by the names of the API or, like a row of CSV, by those that
// other shorteners give to its fields.
func parseJSON(text []byte) (Record, error) {
	if err := checkText(text); err != nil {
		return Record{}, err
	}
	r, err := parseOwn(text)
	if err == nil && r.Code != "" {
		return r, nil
	}
	var members map[string]json.RawMessage
	if err := decodeOne(text, &members); err != nil {
		return Record{}, err
	}
	if members == nil { // null
		return Record{}, errors.New("not a JSON object of a link")
	}
	lift(members, "meta")
	names := slices.Sorted(maps.Keys(members))
	h, failed := understand(names, nil)
	if failed != nil || h.inOurNames(names) {
		return r, err
	}
	return foreign(h, names, members)
}

// parseOwn reads a link by the names of the API.
func parseOwn(text []byte) (Record, error) {
	var r struct {
		Record

		Alias   string `json:"custom_alias"`
		NoIndex *bool  `json:"noindex"`
	}
	if err := decodeOne(text, &r); err != nil {
		return Record{}, err
	}
	if r.Code == "" {
		r.Code = r.Alias
	}
	if r.NoIndex != nil {
		r.Record.NoIndex, r.Indexed = *r.NoIndex, !*r.NoIndex
	}
	return r.Record, nil
}

// decodeOne reads a text that is one object.
func decodeOne(text []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	if err := d.Decode(v); err != nil {
		return fmt.Errorf("not a JSON object of a link: %s", shown(err.Error()))
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("unexpected data after the JSON object")
	}
	return nil
}

// lift puts the members of an object among those of the object around it: Shlink has
// dates and bounds in meta.
func lift(members map[string]json.RawMessage, name string) {
	var inner map[string]json.RawMessage
	if json.Unmarshal(members[name], &inner) != nil {
		return
	}
	for k, v := range inner {
		if _, there := members[k]; !there {
			members[k] = v
		}
	}
}

// foreign reads a link by the names of another shortener.
func foreign(h Header, names []string, members map[string]json.RawMessage) (Record, error) {
	cells := make([]string, len(names))
	var tags []string
	for i, name := range names {
		switch h.Fields[i] {
		case "":
		case "tags":
			tags = texts(members[name])
		default:
			cells[i] = strings.Join(texts(members[name]), ",")
		}
	}
	r, err := h.record(cells)
	r.Tags = tags
	return r, err
}

// texts is a value as cells: a list is one for each of its members, an object is its
// name, and null is none.
func texts(value json.RawMessage) (all []string) {
	var text string
	var list []json.RawMessage
	var named struct{ Name string }
	switch {
	case len(value) == 0 || value[0] == 'n':
	case json.Unmarshal(value, &text) == nil:
		if text = strings.TrimSpace(text); text != "" {
			all = append(all, text)
		}
	case value[0] == '[' && json.Unmarshal(value, &list) == nil:
		for _, v := range list {
			if len(v) > 0 && v[0] != '[' {
				all = append(all, texts(v)...)
			}
		}
	case value[0] == '{':
		if json.Unmarshal(value, &named) == nil && named.Name != "" {
			all = append(all, named.Name)
		}
	default: // a number, true or false
		all = append(all, string(value))
	}
	return all
}
