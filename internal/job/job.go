// Package job is long work of a workspace that outlives requests and servers: imports, exports.
//
// A job is created, gets its input in chunks, is claimed by one server at a time, and leaves a
// result in chunks. Read this file for the contract, runner.go for the server that does the work;
// jobtest proves stores.
//
//	uploading ─► queued ─► running ─► done
//	    │           │      │  ▲  └──► failed
//	    │           │      ▼  │
//	    └───────────┴─► canceled (from running by way of canceling)
//
// A claim has a fence that grows from claim to claim. Everything that a runner writes (progress,
// a part of the result, the end) is one transaction, [Store.Save], which is refused when the job
// was claimed again: a paused runner changes nothing. What a runner does elsewhere between two
// saves is done again by its successor, from the same progress, so it is idempotent.
//
// Whatever state a job is in, it expires a day after its last change, with input and result.
//
// The package imports background, joblease, link, repeatlog and the standard library.
package job

import (
	"context"
	"errors"
	"fmt"
	"time"

	"curt/internal/joblease"
	"curt/internal/link"
)

// Kind is what a job does.
type Kind string

// The kinds.
const (
	Import Kind = "import" // has input
	Export Kind = "export" // is queued when it is created
)

// State is how far a job is.
type State string

// The states.
const (
	Uploading State = "uploading" // its input is incomplete
	Queued    State = "queued"
	Running   State = "running"
	Canceling State = "canceling" // whoever runs it is asked to stop
	Done      State = "done"
	Failed    State = "failed"
	Canceled  State = "canceled"
)

// Ended reports whether nothing more happens to the job.
func (s State) Ended() bool { return s == Done || s == Failed || s == Canceled }

// Part is what chunks are of.
type Part int

// The parts.
const (
	Input  Part = 1
	Result Part = 2
)

// The bounds of one job. Chunks are what is sent and stored at once.
const (
	MaxChunk    = 1 << 20
	MaxOptions  = 16 << 10
	MaxProgress = 64 << 10
)

// Bounds are what all jobs together may take. Stored bytes are compressed; so many callers at
// once may exceed those by a chunk each.
type Bounds struct {
	Input           int64 // bytes of one job
	Result          int64 // bytes of one job
	Unfinished      int   // jobs of a workspace
	Jobs            int   // of a workspace, with those that ended
	Stored          int64 // bytes of all jobs
	WorkspaceStored int64 // bytes of the jobs of a workspace

	Retention time.Duration // how long a job stays after its last change
	// RetainInput is how long the input of an ended job stays. For half of it a new job may take the
	// input over; the rest outlasts every transaction that began before, so that no input is swept
	// from under its new job.
	RetainInput time.Duration
}

// DefaultBounds are those of servers.
func DefaultBounds() Bounds {
	return Bounds{
		Input: 256 << 20, Result: 1 << 30, Unfinished: 5, Jobs: 1000, Stored: 2 << 30, WorkspaceStored: 512 << 20,
		RetainInput: 2 * time.Hour,
		Retention:   24*time.Hour - 10*time.Minute, // as long as idempotency keys, less what clocks may be apart
	}
}

// Job is a piece of long work. Times are the store's.
type Job struct {
	ID        link.ID
	Kind      Kind
	Workspace link.WorkspaceID
	CreatedBy string  // the KeyID whose rights the job has
	Options   []byte  // of the kind; at most MaxOptions
	Input     link.ID // of Create: the ended job whose input is taken over; zero = it is uploaded
	Size      int64   // of the input, as its sender said; 0 = unknown
	Uploaded  int64   // bytes of the input so far
	State     State
	Progress  Progress
	Error     string // why it failed
	Result    int64  // bytes
	Fence     uint64
	Waits     time.Time // a running job is claimed then; zero = it does not wait
	Created   time.Time
	Updated   time.Time
	Expires   time.Time
}

// Progress is the checkpoint of a job: all that a successor needs, and what people are shown.
type Progress struct {
	Bytes   int64 `json:"bytes,omitempty"` // of the input that are done
	Rows    int64 `json:"rows,omitempty"`
	Created int64 `json:"created,omitempty"`
	Skipped int64 `json:"skipped,omitempty"`
	Failed  int64 `json:"failed,omitempty"`

	Columns []Column `json:"columns,omitempty"` // of a table that is imported
	Header  []string `json:"header,omitempty"`  // how columns were understood
	Ignored []string `json:"ignored,omitempty"` // names of the other columns

	WaitsUntil time.Time `json:"waits_until,omitzero"` // of a limit; until then only the key is checked

	Batch int    `json:"batch,omitempty"` // the most rows of the next batch; 0 = the default
	Next  []byte `json:"next,omitempty"`  // the cursor of an export
}

// Column is a column of a table.
type Column struct {
	Name   string `json:"name,omitempty"`   // "" = the table has no names
	Field  string `json:"field,omitempty"`  // of a link; "" = none
	Sample string `json:"sample,omitempty"` // the cell of a row
}

// Step is what a runner saves at once.
type Step struct {
	Progress Progress
	Result   []byte // is appended to the result

	State State  // Done, Failed or Canceled ends the job; "" = it goes on
	Error string // of Failed

	// Release lets any server claim the job again, after Wait.
	Release bool
	Wait    time.Duration
}

// The errors of stores, beside those of package link; link.ErrFull when a bound of stored bytes is
// reached, joblease.ErrLost for a claim that is no longer the last one.
var (
	ErrNoJob   = errors.New("there is no such job")
	ErrTooMany = errors.New("the workspace has as many jobs as it may have at once")
	ErrTooBig  = errors.New("the job is larger than jobs may be")
	ErrState   = errors.New("the state of the job does not allow this")
)

// OffsetError refuses a chunk that does not continue the input.
type OffsetError struct{ Uploaded int64 }

func (e *OffsetError) Error() string {
	return fmt.Sprintf("the input continues at offset %d", e.Uploaded)
}

// SizeError refuses an input that has another size than its job.
type SizeError struct{ Bytes, Size int64 }

func (e *SizeError) Error() string {
	return fmt.Sprintf("the input has %d bytes, and the job was created for %d", e.Bytes, e.Size)
}

// Store keeps jobs. It is safe for many goroutines and processes; what returned nil is durable.
// Time is the store's alone. Jobs that expired or were deleted do not exist.
type Store interface {
	// Create stores a job of which ID, Kind, Workspace, CreatedBy, Options, Size and State
	// (Uploading or Queued) are set, and returns it. A queued job with Input takes over the input of
	// that job, which then has none: ErrNoJob where it is no import of the workspace, ErrState where
	// it has not ended, its input is incomplete or no longer there. ErrTooMany, ErrTooBig for Size; a
	// job of that ID already is returned as it is.
	Create(ctx context.Context, j Job) (Job, error)

	Get(ctx context.Context, id link.ID) (Job, error)

	// List returns up to n jobs of a workspace ("" = all), newest first, behind a job (zero = from
	// the newest).
	List(ctx context.Context, w link.WorkspaceID, before link.ID, n int) ([]Job, error)

	// Append adds a chunk of at most MaxChunk bytes to the input; complete queues the job. What was
	// uploaded before is accepted and changes nothing, so that a call may be repeated. An
	// OffsetError for a gap; a SizeError for an input of another size than Size; ErrTooBig; ErrState
	// where the input is complete.
	Append(ctx context.Context, id link.ID, offset int64, data []byte, complete bool) (Job, error)

	// Read returns bytes of a part from an offset on, as many as one chunk has; none at the end.
	Read(ctx context.Context, id link.ID, part Part, offset int64) ([]byte, error)

	// Cancel ends a job that no server runs, and asks the server that runs it to stop. A job that
	// ended stays as it is.
	Cancel(ctx context.Context, id link.ID) (Job, error)

	// Delete removes a job that ended. ErrState for another.
	Delete(ctx context.Context, id link.ID) error

	// Claim gives the job that has waited longest to a holder for ttl: one that is queued, whose
	// claim ran out, or that the holder had before it was killed. ErrNoJob when there is none.
	Claim(ctx context.Context, holder string, ttl time.Duration) (Job, error)

	// Holder renews and releases claims, whose Name is the ID of the job.
	joblease.Holder

	// Save stores a step under a claim, all of it or nothing, and returns the job. joblease.ErrLost,
	// also for a job that was deleted; ErrTooBig for the result.
	Save(ctx context.Context, claim joblease.Lease, s Step) (Job, error)

	// Sweep removes some of what expired, was deleted or is of no more use, and reports whether
	// there is more.
	Sweep(ctx context.Context) (more bool, err error)
}

// Claim is the lease of a job in the hands of a holder.
func Claim(j *Job, holder string) joblease.Lease {
	return joblease.Lease{Name: j.ID.String(), Holder: holder, Fence: j.Fence}
}

// Check returns link.ErrInvalid for a job that may not be created, and ErrTooBig.
func (b Bounds) Check(j *Job) error {
	switch {
	case j.ID.IsZero() || j.Workspace == "" || j.CreatedBy == "" || len(j.Options) > MaxOptions || j.Size < 0,
		j.State != Uploading && j.State != Queued, !j.Input.IsZero() && j.State != Queued:
		return fmt.Errorf("create a job: %w", link.ErrInvalid)
	case j.Size > b.Input:
		return ErrTooBig
	}
	return nil
}

// Take returns nil where a new job of a workspace may take over the input of a job.
func (b Bounds) Take(from *Job, w link.WorkspaceID, now time.Time) error {
	complete := from.Fence > 0 || from.Size > 0 && from.Uploaded == from.Size
	switch {
	case from.Workspace != w || from.Kind != Import:
		return ErrNoJob
	case !from.State.Ended() || !complete || now.Sub(from.Updated) > b.RetainInput/2:
		return ErrState
	}
	return nil
}

// Next returns the bytes of a chunk that continue the input of a job, which may be none.
func (b Bounds) Next(j *Job, offset int64, data []byte, complete bool) ([]byte, error) {
	end := offset + int64(len(data))
	switch {
	case offset < 0 || len(data) > MaxChunk:
		return nil, fmt.Errorf("append to a job: %w", link.ErrInvalid)
	case j.State != Uploading && end == j.Uploaded && j.Kind == Import: // a repeated call
		return nil, nil
	case j.State != Uploading:
		return nil, ErrState
	case offset > j.Uploaded:
		return nil, &OffsetError{j.Uploaded}
	case end > b.Input:
		return nil, ErrTooBig
	case j.Size > 0 && (end > j.Size || complete && max(end, j.Uploaded) < j.Size):
		return nil, &SizeError{max(end, j.Uploaded), j.Size}
	case complete && end < j.Uploaded:
		return nil, &OffsetError{j.Uploaded}
	}
	return data[min(j.Uploaded-offset, int64(len(data))):], nil
}
