// Package joblease lets one server of a fleet do a job at a time.
//
// A [Store] gives a job to a holder for a while, with a fence that grows from holder to holder.
// [Once] runs a function while it holds a job, and lets another server run it when it no longer
// does. Read this file for the contract, once.go for the holder; jobleasetest proves stores.
//
// A lease alone does not keep a holder that was paused from writing after its lease was given to
// another. What a holder writes therefore carries its fence, and the store that takes the write
// refuses an older one; or the write is idempotent.
//
// The package imports link, repeatlog and the standard library.
package joblease

import (
	"context"
	"errors"
	"time"

	"curt/internal/link"
)

var (
	// ErrHeld means that another holder has the job.
	ErrHeld = errors.New("another server holds the lease of this job")
	// ErrLost means that a lease ended and the job was given to another holder.
	ErrLost = errors.New("the lease of this job moved to another server")
)

// MaxName is the longest name of a job and of a holder in bytes.
const MaxName = link.MaxName

// Lease is a job in the hands of a holder.
type Lease struct {
	Name   string // of the job
	Holder string
	Fence  uint64 // from 1; a later lease of the job has a higher one
}

// Store keeps leases. All methods may be called by many goroutines and processes at once, and end
// within a bound when ctx does. Time is the store's alone: the clocks of holders may be apart.
// Errors are those of package link and what each method names.
type Store interface {
	// Acquire gives the job to holder until ttl from now, which is at least a millisecond. ErrHeld
	// while another has it. A holder that has it already gets it with a new fence. ErrInvalid for
	// names and times out of bounds. After an error "may have happened" it may be called again.
	Acquire(ctx context.Context, name, holder string, ttl time.Duration) (Lease, error)

	Holder
}

// Holder is the part of a Store that whoever has a lease needs.
type Holder interface {
	// Renew lets a lease last until ttl from now, also one that has run out if nobody has the job.
	// ErrLost when it was given to another holder, released or acquired again.
	Renew(ctx context.Context, l Lease, ttl time.Duration) error

	// Release ends a lease; nil also when it was lost.
	Release(ctx context.Context, l Lease) error
}
