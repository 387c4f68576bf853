// Package idempotency is the memory of requests that a client may send twice: what a
// caller's Idempotency-Key (draft-ietf-httpapi-idempotency-key) stands for.
//
// A [Record] is written before the link that it promises. It names the link's id and
// code, so that whoever sends the request again, after any crash, asks the link store
// for the very same link; of a batch it names the id from which those of all links
// follow, and their codes. Read this file for the contract; idempotencytest proves stores, sweep.go
// forgets. What a request may do with a key is package shorten's.
//
// The package imports link and the standard library.
package idempotency

import (
	"context"
	"time"

	"curt/internal/link"
)

const (
	// Retention is how long a record stands after it was claimed. A retry after that is a
	// new request.
	Retention = 24 * time.Hour
	// MaxKey is the longest key of a client in bytes.
	MaxKey = 255
)

// Name is what a record is filed under. Keys of different callers never meet.
type Name struct {
	Caller string // id of the API key; 1 to link.MaxName bytes
	Key    string // as the client chose it; 1 to MaxKey bytes
}

// Record is what a name stands for.
type Record struct {
	Request  [32]byte      // SHA-256 of the request: another request may not use the name
	ID       link.ID       // of the link; of the first one of a batch
	Link     link.Key      // of the link; the zero Key of a batch
	Codes    string        // of a batch: a comma in front of what each row is promised; "" = of no batch, or of one before codes were kept
	CodeKind link.CodeKind // of the code of the link
	Found    bool          // the link was there before: the request asked to dedupe
	Created  time.Time     // when it was claimed; UTC, whole milliseconds
}

// Store keeps records. All methods may be called by many goroutines and processes at
// once, and end within a bound when ctx does. A write that returned nil is durable.
// Errors are those of package link: ErrUnavailable, ErrFull and what each method
// names; link.ErrUncertain and any other error of a write mean "may have happened", and every write here
// may be repeated.
type Store interface {
	// Find returns the record of a name, however old. ErrNotFound when there is none.
	Find(ctx context.Context, n Name) (Record, error)

	// Claim files r under the name unless a record stands there that was created at or
	// after since, and returns the record that then stands: of many callers at once,
	// all are told the same one. ErrInvalid for a name out of bounds.
	Claim(ctx context.Context, n Name, r Record, since time.Time) (Record, error)

	// Change files to in the place of from. ErrConflict when neither of them stands
	// under the name.
	Change(ctx context.Context, n Name, from, to Record) error

	// Release takes the record off the name; nil also when another stands there.
	Release(ctx context.Context, n Name, r Record) error

	// Forget removes up to limit records that were created before the given time,
	// the oldest first, and returns how many.
	Forget(ctx context.Context, before time.Time, limit int) (int, error)
}
