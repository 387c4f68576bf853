package shorten

import (
	"slices"
	"time"

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

// set reports whether the field holds a value.
func (f Field[T]) set() bool { return f.Given && !f.Null }

// Fields are what a create sets and a change may change, as the caller wrote
// them: nothing is checked yet.
type Fields struct {
	LongURL      Field[string]
	StartsAt     Field[time.Time]
	ExpiresAt    Field[time.Time]
	ExpiresIn    Field[int64] // seconds from now
	Redirect     Field[int64] // HTTP status
	Title        Field[string]
	Tags         Field[[]string]
	MaxClicks    Field[int64]
	Fallback     Field[string]
	ForwardQuery Field[bool]
	NoIndex      Field[bool]
	Cacheable    Field[bool]
}

// Request asks for a new link.
type Request struct {
	Fields
	Alias  Field[string] // absent or null: a code is generated
	Domain Field[string] // absent or null: the default domain

	// Dedupe takes an existing link of the workspace that stands in for the one asked
	// for, if there is one (link.Link.StandsInFor says which). With an alias only the
	// link of that alias can. Absent or null: as Config.Dedupe says, which Make fills in.
	Dedupe Field[bool]

	// IdempotencyKey lets the caller send the request again without making a second
	// link; "" = none. At most idempotency.MaxKey bytes.
	IdempotencyKey string

	// Limit is set by Make: how much is left of the tightest limit of the caller,
	// this create included; nil when none applies.
	Limit *ratelimit.Verdict
}

// Made is what became of a Request.
type Made struct {
	Link  link.Link
	Found bool // Link was there before: the request asked to dedupe
}

// Change asks to change a link. Absent fields stay as they are.
type Change struct {
	Fields
	Status Field[link.Status] // Active or Disabled
}

// empty reports whether nothing is asked for.
func (c Change) empty() bool {
	f := c.Fields
	return !c.Status.Given && !f.LongURL.Given && !f.StartsAt.Given && !f.ExpiresAt.Given &&
		!f.ExpiresIn.Given && !f.Redirect.Given && !f.Title.Given && !f.Tags.Given &&
		!f.MaxClicks.Given && !f.Fallback.Given && !f.ForwardQuery.Given &&
		!f.NoIndex.Given && !f.Cacheable.Given
}

// Match is the versions of a link that a caller accepts: the If-Match of HTTP.
// The zero Match accepts any.
type Match struct {
	Versions []link.Version
	Only     bool // accept nothing but Versions
}

func (m Match) accepts(v link.Version) bool {
	return !m.Only || slices.Contains(m.Versions, v)
}
