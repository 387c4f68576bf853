package exchange

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
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
	return Record{
		ID: l.ID.String(), Domain: string(l.Key.Domain), Code: string(l.Key.Code), LongURL: l.Destination,
		Title: l.Title, Tags: l.Tags, Workspace: string(l.Workspace), CreatedBy: l.CreatedBy,
		Status: named(statuses(), int(l.Status)), Safety: named(safeties(), int(l.Safety)), Redirect: int(l.Redirect),
		Starts: optional(l.Starts), Expires: optional(l.Expires), MaxClicks: l.MaxClicks, Spent: l.Spent, Fallback: l.Fallback,
		ForwardQuery: l.ForwardQuery, NoIndex: l.NoIndex, Cacheable: l.Cacheable,
		Created: optional(l.Created), Updated: optional(l.Updated), Version: uint64(l.Version),
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

// Link returns the link of an exported record. It is not Minted: which codes a
// permutation made, another installation cannot know.
func (r *Record) Link() (link.Link, error) {
	id, err := link.ParseID(r.ID)
	if err != nil {
		return link.Link{}, fmt.Errorf("id: %w", err)
	}
	status, known := numbered(statuses(), r.Status)
	safety, safe := numbered(safeties(), r.Safety)
	if !known || !safe {
		return link.Link{}, fmt.Errorf("status or safety: %w", link.ErrInvalid)
	}
	if r.Redirect < 0 || r.Redirect > 999 || r.Version == 0 {
		return link.Link{}, fmt.Errorf("redirect_status or version: %w", link.ErrInvalid)
	}
	l := link.Link{
		ID: id, Key: link.Key{Domain: link.Domain(r.Domain), Code: link.Code(r.Code)}, Destination: r.LongURL,
		Title: r.Title, Tags: r.Tags, Workspace: link.WorkspaceID(r.Workspace), CreatedBy: r.CreatedBy,
		Status: link.Status(status), Safety: link.Safety(safety), Redirect: link.Redirect(r.Redirect),
		Starts: given(r.Starts), Expires: given(r.Expires), MaxClicks: r.MaxClicks, Spent: r.Spent, Fallback: r.Fallback,
		ForwardQuery: r.ForwardQuery, NoIndex: r.NoIndex, Cacheable: r.Cacheable,
		Created: given(r.Created), Updated: given(r.Updated), Version: link.Version(r.Version),
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
func Columns() []string {
	return []string{
		"id", "domain", "short_code", "long_url", "title", "tags", "workspace_id", "created_by", "status", "safety",
		"redirect_status", "starts_at", "expires_at", "max_clicks", "clicks_spent", "fallback_url", "forward_query",
		"noindex", "cacheable", "created_at", "updated_at", "version",
	}
}

// Cells are the values of Columns, made harmless for spreadsheets, which reading takes back.
func (r *Record) Cells() []string {
	cells := []string{
		r.ID, r.Domain, r.Code, r.LongURL, r.Title, strings.Join(r.Tags, ","), r.Workspace, r.CreatedBy, r.Status, r.Safety,
		strconv.Itoa(r.Redirect), stamp(r.Starts), stamp(r.Expires), number(r.MaxClicks), number(r.Spent), r.Fallback,
		flag(r.ForwardQuery), flag(r.NoIndex), flag(r.Cacheable), stamp(r.Created), stamp(r.Updated), number(r.Version),
	}
	for i, c := range cells {
		cells[i] = Harmless(c)
	}
	return cells
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

// set puts the text of a cell into the field that a column stands for.
func (r *Record) set(field, cell string) (err error) {
	switch field {
	case "id":
		r.ID = cell
	case "domain":
		r.Domain = cell
	case "short_code":
		r.Code = cell
	case "long_url":
		r.LongURL = cell
	case "title":
		r.Title = cell
	case "tags":
		r.Tags = splitTags(cell)
	case "workspace_id":
		r.Workspace = cell
	case "created_by":
		r.CreatedBy = cell
	case "status":
		r.Status = cell
	case "safety":
		r.Safety = cell
	case "fallback_url":
		r.Fallback = cell
	default:
		err = r.setParsed(field, cell)
	}
	return err
}

func (r *Record) setParsed(field, cell string) (err error) {
	if cell == "" {
		return nil
	}
	switch field {
	case "redirect_status":
		r.Redirect, err = strconv.Atoi(cell)
	case "max_clicks":
		r.MaxClicks, err = strconv.ParseUint(cell, 10, 64)
	case "clicks_spent":
		r.Spent, err = strconv.ParseUint(cell, 10, 64)
	case "version":
		r.Version, err = strconv.ParseUint(cell, 10, 64)
	case "forward_query":
		r.ForwardQuery, err = strconv.ParseBool(cell)
	case "noindex":
		r.NoIndex, err = strconv.ParseBool(cell)
		r.Indexed = err == nil && !r.NoIndex
	case "cacheable":
		r.Cacheable, err = strconv.ParseBool(cell)
	case "starts_at":
		r.Starts, err = parseTime(cell)
	case "expires_at":
		r.Expires, err = parseTime(cell)
	case "created_at":
		r.Created, err = parseTime(cell)
	case "updated_at":
		r.Updated, err = parseTime(cell)
	default:
		return fmt.Errorf("%s is no field of a link", field)
	}
	if err != nil {
		return fmt.Errorf("%s: cannot read %q", field, shown(cell))
	}
	return nil
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

var errTime = errors.New("no time that is understood")

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
