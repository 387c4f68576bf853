package exchange

import (
	"errors"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"curt/internal/link"
)

// Record is a link as an export has it, by the names of the API. In JSON it holds
// everything that a link store holds but how the store lays it out. A deleted link has
// what its tombstone keeps. Times are UTC with milliseconds.
type Record struct {
	ID           string     `json:"id,omitempty"`
	Domain       string     `json:"domain,omitempty"` // "" = the default domain
	Code         string     `json:"short_code,omitempty"`
	LongURL      string     `json:"long_url,omitempty"`
	Title        string     `json:"title,omitempty"`
	Tags         []string   `json:"tags,omitempty"`
	Workspace    string     `json:"workspace_id,omitempty"`
	CreatedBy    string     `json:"created_by,omitempty"`
	Status       string     `json:"status,omitempty"`
	Safety       string     `json:"safety,omitempty"`
	Redirect     int        `json:"redirect_status,omitempty"`
	Starts       *time.Time `json:"starts_at,omitempty"`
	Expires      *time.Time `json:"expires_at,omitempty"`
	MaxClicks    uint64     `json:"max_clicks,omitempty"`
	Spent        uint64     `json:"clicks_spent,omitempty"`
	Fallback     string     `json:"fallback_url,omitempty"`
	ForwardQuery bool       `json:"forward_query,omitempty"`
	NoIndex      bool       `json:"noindex,omitempty"`
	Cacheable    bool       `json:"cacheable,omitempty"`
	Created      *time.Time `json:"created_at,omitempty"`
	Updated      *time.Time `json:"updated_at,omitempty"`
	Version      uint64     `json:"version,omitempty"`

	Indexed bool `json:"-"` // noindex is false because the file says so; never of an export
}

// The values of Status and Safety; the index is the number of package link.
func statuses() []string { return []string{"", "active", "disabled", "deleted"} }
func safeties() []string { return []string{"", "clean", "warn", "quarantined", "blocked", "legal"} }

// RecordOf returns a link as text.
func RecordOf(l link.Link) Record {
	var r Record
	for _, m := range members() {
		switch to, from := m.of(&r), m.stored.Of(&l); from := from.(type) {
		case *link.ID:
			set(to, from.String())
		case *uint8:
			set(to, named(m.names(), int(*from)))
		case *uint16:
			set(to, int(*from))
		case *time.Time:
			set(to, optional(*from))
		case *string:
			set(to, *from)
		case *bool:
			set(to, *from)
		case *uint64:
			set(to, *from)
		case *[]string:
			set(to, *from)
		}
	}
	return r
}

// member is a field of a Record, which holds a field of a link by the same name.
type member struct {
	name   string
	at     int
	stored *link.Field
}

// members are those of a Record in order, which is that of the columns of a CSV export.
var members = sync.OnceValue(func() (all []member) {
	record, stored := reflect.TypeFor[Record](), link.Fields()
	for i := range record.NumField() {
		name, _, _ := strings.Cut(record.Field(i).Tag.Get("json"), ",")
		if at := slices.IndexFunc(stored, func(f link.Field) bool { return f.Name == name }); at >= 0 {
			all = append(all, member{name, i, &stored[at]})
		}
	}
	return all
})

// of returns a pointer to the member.
func (m member) of(r *Record) any { return reflect.ValueOf(r).Elem().Field(m.at).Addr().Interface() }

// names are the texts of a stored number; the index is the number.
func (m member) names() []string {
	if m.name == "status" {
		return statuses()
	}
	return safeties()
}

// set sets what a pointer leads to, whose type is known by that of the field.
func set[T any](to any, value T) {
	if p, ok := to.(*T); ok {
		*p = value
	}
}

func named(names []string, n int) string {
	if n < len(names) {
		return names[n]
	}
	return strconv.Itoa(n)
}

func optional(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// IsWhole reports whether the record has what only an export of curt has, so that Link
// gives back the link itself.
func (r *Record) IsWhole() bool {
	return r.ID != "" && r.Version > 0 && r.Status != "" && r.Workspace != ""
}

// Link returns the link of an exported record. Its code is Chosen: which codes a
// permutation made, another installation cannot know.
func (r *Record) Link() (link.Link, error) {
	id, err := link.ParseID(r.ID)
	if err != nil {
		return link.Link{}, fmt.Errorf("id: %w", err)
	}
	if r.Redirect < 0 || r.Redirect > 999 || r.Version == 0 {
		return link.Link{}, fmt.Errorf("redirect_status or version: %w", link.ErrInvalid)
	}
	var l link.Link
	for _, m := range members() {
		switch from, to := m.of(r), m.stored.Of(&l); to := to.(type) {
		case *link.ID:
			*to = id
		case *uint8:
			n, known := numbered(m.names(), *from.(*string))
			if !known {
				return link.Link{}, fmt.Errorf("%s: %w", m.name, link.ErrInvalid)
			}
			*to = uint8(n)
		case *uint16:
			*to = uint16(*from.(*int))
		case *time.Time:
			*to = given(*from.(**time.Time))
		case *string:
			*to = *from.(*string)
		case *bool:
			*to = *from.(*bool)
		case *uint64:
			*to = *from.(*uint64)
		case *[]string:
			*to = *from.(*[]string)
		}
	}
	return l, l.Validate()
}

func numbered(names []string, name string) (int, bool) {
	for i, n := range names[1:] {
		if n == name {
			return i + 1, true
		}
	}
	return 0, false
}

func given(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.UTC().Truncate(time.Millisecond)
}

// Columns are the names of the columns of a CSV export, in order.
func Columns() (names []string) {
	for _, m := range members() {
		names = append(names, m.name)
	}
	return names
}

// Cells are the values of Columns, made harmless for spreadsheets, which reading takes back.
func (r *Record) Cells() (cells []string) {
	for _, m := range members() {
		var cell string
		switch v := m.of(r).(type) {
		case *string:
			cell = *v
		case *int:
			cell = strconv.Itoa(*v)
		case **time.Time:
			cell = stamp(*v)
		case *uint64:
			cell = number(*v)
		case *bool:
			cell = flag(*v)
		case *[]string:
			cell = strings.Join(*v, ",")
		}
		cells = append(cells, Harmless(cell))
	}
	return cells
}

// Values are the members that hold something, by name: string, bool, int, uint64, []string or
// time.Time.
func (r *Record) Values() iter.Seq2[string, any] {
	return func(yield func(string, any) bool) {
		for _, m := range members() {
			v := reflect.ValueOf(r).Elem().Field(m.at)
			if v.IsZero() {
				continue
			}
			if !yield(m.name, reflect.Indirect(v).Interface()) {
				return
			}
		}
	}
}

func stamp(t *time.Time) string {
	if t == nil {
		return ""
	}
	return t.Format("2006-01-02T15:04:05.000Z07:00")
}

func number(n uint64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatUint(n, 10)
}

func flag(b bool) string {
	if b {
		return "true"
	}
	return ""
}

// read puts the text of a cell into the member that a column stands for.
func (r *Record) read(name, cell string) (err error) {
	all := members()
	at := slices.IndexFunc(all, func(m member) bool { return m.name == name })
	if at < 0 {
		return fmt.Errorf("unknown link field %s", name)
	}
	switch to := all[at].of(r).(type) {
	case *string:
		*to = cell
		return nil
	case *[]string:
		*to = splitTags(cell)
		return nil
	default:
		if cell != "" {
			err = parse(to, cell)
		}
	}
	if err != nil {
		return fmt.Errorf("%s: cannot read %q", name, shown(cell))
	}
	if name == "noindex" && cell != "" {
		r.Indexed = !r.NoIndex
	}
	return nil
}

// parse reads what is no text.
func parse(to any, cell string) (err error) {
	switch to := to.(type) {
	case *int:
		*to, err = strconv.Atoi(cell)
	case *uint64:
		*to, err = strconv.ParseUint(cell, 10, 64)
	case *bool:
		*to, err = strconv.ParseBool(cell)
	case **time.Time:
		*to, err = parseTime(cell)
	}
	return err
}

// splitTags reads "a,b", "a|b" (Shlink) and "[a, b]" (Bitly).
func splitTags(cell string) (tags []string) {
	cell = strings.TrimSuffix(strings.TrimPrefix(cell, "["), "]")
	for _, t := range strings.FieldsFunc(cell, func(c rune) bool { return c == ',' || c == '|' }) {
		if t = strings.Trim(t, ` "'`); t != "" {
			tags = append(tags, t)
		}
	}
	return tags
}

var errTime = errors.New("unknown time format")

// parseTime reads the times that databases and spreadsheets print, UTC where they say
// nothing, and Unix seconds and milliseconds.
func parseTime(cell string) (*time.Time, error) {
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02T15:04", time.DateTime, "2006-01-02 15:04", time.DateOnly, "2006-01-02 15:04:05 -0700 MST", "2006-01-02T15:04:05-0700"} {
		if t, err := time.Parse(layout, cell); err == nil {
			t = t.UTC().Truncate(time.Millisecond)
			return &t, nil
		}
	}
	n, err := strconv.ParseInt(cell, 10, 64)
	if err == nil && n > 1e8 && n < 1e11 {
		n *= 1000
	}
	if err == nil && n > 1e11 && n < 1e14 {
		t := time.UnixMilli(n).UTC()
		return &t, nil
	}
	return nil, errTime
}

// shown bounds text of strangers in an error.
func shown(s string) string {
	const most = 60
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "..."
	}
	return s
}
