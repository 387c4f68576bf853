package link

import (
	"slices"
	"time"
)

// Kind says what a field of a link is for, and with that who may see it and what follows from
// a change of it.
type Kind uint8

// The kinds of fields.
const (
	Record Kind = iota + 1 // what curt itself keeps of a link: whose it is, when it was created
	Text                   // the owner's text, of no consequence for visitors
	Answer                 // changes what visitors are answered
	Secret                 // like Answer, and never read back nor exported, but by a move and a backup
)

// Field is one field of a link. What stores, comparisons and files do with each field follows
// from the table of them, so that none is forgotten in one of these places.
type Field struct {
	Name string // in JSON, in CSV and, with hyphens, as a flag; "" = nobody outside sees it

	// Column is that of the stores. Only what an index or a statement needs has one of its
	// own; "" = a member of the column extra, by Name.
	Column string
	Kind   Kind

	Fixed   bool // stays as Create stored it
	Remains bool // in a tombstone
	Counter bool // clicks change it, without a new version

	On  bool // a flag that is on unless a request says otherwise
	Max int  // of a text, in bytes

	// Needs is the bit of a field of kind Answer or Secret without a column of its own. A release
	// that does not know the bit answers 503 for a link that bears it.
	Needs uint64

	// Of returns a pointer to the field: *ID, *string, *bool, *uint8, *uint16, *uint64,
	// *time.Time or *[]string.
	Of func(*Link) any
}

// fields is the table. The checksums of SQLite's rows are made in the order of those that have
// a column.
var fields = []Field{
	{Name: "id", Column: "id", Kind: Record, Fixed: true, Remains: true, Of: func(l *Link) any { return &l.ID }},
	{Name: "workspace_id", Column: "workspace", Kind: Record, Remains: true, Of: func(l *Link) any { return (*string)(&l.Workspace) }},
	{Name: "domain", Column: "domain", Kind: Record, Fixed: true, Remains: true, Of: func(l *Link) any { return (*string)(&l.Key.Domain) }},
	{Name: "short_code", Column: "code", Kind: Record, Fixed: true, Remains: true, Of: func(l *Link) any { return (*string)(&l.Key.Code) }},
	{Column: "minted", Kind: Record, Fixed: true, Remains: true, Of: func(l *Link) any { return (*uint8)(&l.CodeKind) }},
	{Name: "long_url", Column: "destination", Kind: Answer, Of: func(l *Link) any { return &l.Destination }},
	{Name: "status", Column: "status", Kind: Answer, Remains: true, Of: func(l *Link) any { return (*uint8)(&l.Status) }},
	{Name: "safety", Column: "safety", Kind: Answer, Remains: true, Of: func(l *Link) any { return (*uint8)(&l.Safety) }},
	{Name: "redirect_status", Column: "redirect", Kind: Answer, Remains: true, Of: func(l *Link) any { return (*uint16)(&l.Redirect) }},
	{Name: "starts_at", Column: "starts", Kind: Answer, Of: func(l *Link) any { return &l.Starts }},
	{Name: "expires_at", Column: "expires", Kind: Answer, Remains: true, Of: func(l *Link) any { return &l.Expires }},
	{Name: "created_at", Column: "created", Kind: Record, Fixed: true, Remains: true, Of: func(l *Link) any { return &l.Created }},
	{Name: "updated_at", Column: "updated", Kind: Record, Remains: true, Of: func(l *Link) any { return &l.Updated }},
	{Name: "max_clicks", Column: "max_clicks", Kind: Answer, Of: func(l *Link) any { return &l.MaxClicks }},
	{Name: "clicks_spent", Column: "spent", Kind: Record, Counter: true, Of: func(l *Link) any { return &l.Spent }},
	{Name: "fallback_url", Column: "fallback", Kind: Answer, Of: func(l *Link) any { return &l.Fallback }},
	{Name: "forward_query", Column: "forward_query", Kind: Answer, Of: func(l *Link) any { return &l.ForwardQuery }},
	{Name: "noindex", Column: "no_index", Kind: Answer, On: true, Of: func(l *Link) any { return &l.NoIndex }},
	{Name: "cacheable", Column: "cacheable", Kind: Answer, Of: func(l *Link) any { return &l.Cacheable }},
	{Name: "created_by", Column: "created_by", Kind: Record, Of: func(l *Link) any { return &l.CreatedBy }},
	{Name: "title", Column: "title", Kind: Text, Max: MaxTitle, Of: func(l *Link) any { return &l.Title }},
	{Name: "tags", Column: "tags", Kind: Text, Of: func(l *Link) any { return &l.Tags }},
	{Name: "version", Column: "version", Kind: Record, Remains: true, Of: func(l *Link) any { return (*uint64)(&l.Version) }},
}

// Fields returns the table of all fields; nobody may change it.
func Fields() []Field { return fields }

// equal reports whether a field of two links has one value.
func (f *Field) equal(a, b *Link) bool {
	switch x := f.Of(a).(type) {
	case *time.Time:
		other, ok := f.Of(b).(*time.Time)
		return ok && x.Equal(*other) // == would compare their locations too
	case *[]string:
		other, ok := f.Of(b).(*[]string)
		return ok && slices.Equal(*x, *other)
	case *ID:
		return equalAt(x, f.Of(b))
	case *string:
		return equalAt(x, f.Of(b))
	case *bool:
		return equalAt(x, f.Of(b))
	case *uint8:
		return equalAt(x, f.Of(b))
	case *uint16:
		return equalAt(x, f.Of(b))
	case *uint64:
		return equalAt(x, f.Of(b))
	}
	return false
}

func equalAt[T comparable](a *T, b any) bool {
	other, ok := b.(*T)
	return ok && *a == *other
}

// copy sets a field of to as it is in from.
func (f *Field) copy(to, from *Link) {
	switch x := f.Of(to).(type) {
	case *time.Time:
		copyAt(x, f.Of(from))
	case *[]string:
		copyAt(x, f.Of(from))
	case *ID:
		copyAt(x, f.Of(from))
	case *string:
		copyAt(x, f.Of(from))
	case *bool:
		copyAt(x, f.Of(from))
	case *uint8:
		copyAt(x, f.Of(from))
	case *uint16:
		copyAt(x, f.Of(from))
	case *uint64:
		copyAt(x, f.Of(from))
	}
}

func copyAt[T any](to *T, from any) {
	if other, ok := from.(*T); ok {
		*to = *other
	}
}

// zero reports whether a field holds nothing.
func (f *Field) zero(l *Link) bool { return f.equal(l, new(Link)) }
