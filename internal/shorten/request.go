package shorten

import (
	"context"
	"reflect"
	"slices"
	"sync"
	"time"

	"curt/internal/auth"
	"curt/internal/link"
	"curt/internal/ratelimit"
)

// Field is one field of a request. A field may be absent (the zero Field), null
// (the caller wants none) or hold a value: PATCH tells the three apart.
type Field[T any] struct {
	Value T
	Given bool // null or a value
	Null  bool
}

// Value returns a given field.
func Value[T any](v T) Field[T] { return Field[T]{Value: v, Given: true} }

// Null returns a field that asks for none.
func Null[T any]() Field[T] { return Field[T]{Given: true, Null: true} }

// Some reports whether the field holds a value.
func (f Field[T]) Some() bool { return f.Given && !f.Null }

// Fields are what a create sets and a change may change, as the caller wrote
// them: nothing is checked yet. The tag is the name in the API. A flag, and a text of one line,
// has no rule of its own: the table of link.Fields says its default and its bound.
//
// The names in Go are part of what an idempotency key remembers a request by.
type Fields struct {
	LongURL      Field[string]    `field:"long_url"`
	StartsAt     Field[time.Time] `field:"starts_at"`
	ExpiresAt    Field[time.Time] `field:"expires_at"`
	ExpiresIn    Field[int64]     `field:"expires_in"`      // seconds from now
	Redirect     Field[int64]     `field:"redirect_status"` // HTTP status
	Title        Field[string]    `field:"title"`
	Tags         Field[[]string]  `field:"tags"`
	MaxClicks    Field[int64]     `field:"max_clicks"`
	Fallback     Field[string]    `field:"fallback_url"`
	ForwardQuery Field[bool]      `field:"forward_query"`
	NoIndex      Field[bool]      `field:"noindex"`
	Cacheable    Field[bool]      `field:"cacheable"`
}

// Set gives a field of a name a value, and reports whether there is one that takes it: whole
// numbers of any type, else the type of the field.
func (f *Fields) Set(name string, value any) bool {
	v := reflect.ValueOf(f).Elem()
	for i := range v.NumField() {
		if v.Type().Field(i).Tag.Get("field") != name {
			continue
		}
		to, ok := reflect.TypeAssert[interface{ set(value any) bool }](v.Field(i).Addr())
		return ok && to.set(value)
	}
	return false
}

func (f *Field[T]) set(value any) bool {
	n := reflect.ValueOf(value)
	if t := reflect.TypeFor[T](); n.Kind() != t.Kind() && n.CanConvert(t) && t.Kind() == reflect.Int64 {
		value = n.Convert(t).Interface()
	}
	given, ok := value.(T)
	if ok {
		*f = Value(given)
	}
	return ok
}

// plain is a flag or a text of a request, and the field of a link that it sets.
type plain struct {
	member int
	stored *link.Field
}

var plains = sync.OnceValue(func() (all []plain) {
	members, stored := reflect.TypeFor[Fields](), link.Fields()
	for i := range members.NumField() {
		name := members.Field(i).Tag.Get("field")
		at := slices.IndexFunc(stored, func(f link.Field) bool { return f.Name == name })
		if at < 0 {
			continue
		}
		_, flag := stored[at].Of(new(link.Link)).(*bool)
		if flag || stored[at].Max > 0 {
			all = append(all, plain{i, &stored[at]})
		}
	}
	return all
})

// of returns a pointer to the member.
func (p plain) of(f *Fields) any { return reflect.ValueOf(f).Elem().Field(p.member).Addr().Interface() }

// Request asks for a new link.
type Request struct {
	Fields
	Alias  Field[string] // absent or null: a code is generated
	Domain Field[string] // absent or null: the default domain

	// Dedupe takes an existing link of the workspace that stands in for the one asked
	// for, if there is one (link.Link.Equivalent says which). With an alias only the
	// link of that alias can. Absent or null: as Config.Dedupe says.
	Dedupe Field[bool]

	// Limit is set by Create: how much is left of the tightest limit of the caller,
	// this create included; nil when none applies.
	Limit *ratelimit.Verdict
}

// Cause is why a link is written.
type Cause struct {
	Principal auth.Principal // who asks

	// IdempotencyKey names the request, which may then be sent again without creating a
	// second link; "" = it has no name. At most idempotency.MaxKey bytes. Changes take none.
	IdempotencyKey string

	// Written has new links written before the answer, also where others wait in a queue: a job works in its own time.
	Written bool
}

// Result is what became of a Request.
type Result struct {
	Link  link.Link
	Found bool // Link was there before: the request asked to dedupe
}

// Queue takes new links that a writer stores later; pending.View is one.
type Queue interface {
	// Put accepts links, each under a generated code, and returns what became of each, in order. nil means that they are durable
	// outside the store: those with version 0 are pending. link.ErrExists in a result: the code is taken. An
	// error is for the whole call, which may be made again.
	Put(ctx context.Context, links []link.Link) ([]link.Result, error)

	// Find returns a link that was accepted here and is pending, with version 0. It is asked before the store, whose answer
	// counts where it has the link: it may be written, and not pending any more, a moment later.
	Find(k link.Key) (link.Link, bool)

	// Elsewhere is Find for links that another server accepted and shares. It is asked after the store. link.ErrUnavailable: nobody knows whether
	// there is one.
	Elsewhere(ctx context.Context, k link.Key) (link.Link, bool, error)

	// Refused returns the link.PendingError of a change of a link that Find or Elsewhere returned.
	Refused(l *link.Link) error

	// Await returns once a link is not pending here any more, or with the error of ctx.
	Await(ctx context.Context, k link.Key) error
}

// Synchronous is the Queue of a service that writes every link before it answers. Put must not be called.
type Synchronous struct{}

// Put implements Queue.
func (Synchronous) Put(context.Context, []link.Link) ([]link.Result, error) {
	return nil, link.ErrUnavailable
}

// Find implements Queue.
func (Synchronous) Find(link.Key) (link.Link, bool) { return link.Link{}, false }

// Elsewhere implements Queue.
func (Synchronous) Elsewhere(context.Context, link.Key) (link.Link, bool, error) {
	return link.Link{}, false, nil
}

// Refused implements Queue.
func (Synchronous) Refused(*link.Link) error { return link.ErrPending }

// Await implements Queue.
func (Synchronous) Await(context.Context, link.Key) error { return nil }

// Change asks to change a link. Absent fields stay as they are.
type Change struct {
	Fields
	Status Field[link.Status] // Active or Disabled
}

// Empty reports whether nothing is asked for.
func (c Change) Empty() bool { return reflect.ValueOf(c).IsZero() }

// Match is the versions of a link that a caller accepts: the If-Match of HTTP.
// The zero Match accepts any.
type Match struct {
	Versions []link.Version
	Only     bool // accept nothing but Versions
}

func (m Match) Accepts(v link.Version) bool {
	return !m.Only || slices.Contains(m.Versions, v)
}

// Visible reports whether a link exists for the caller: tombstones do for nobody.
func Visible(who auth.Principal, l link.Link) bool {
	return l.Status != link.Deleted && auth.May(who, auth.Unrestricted, auth.In(l.Workspace)) == nil
}
