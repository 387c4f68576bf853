package transfer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"curt/internal/auth"
	"curt/internal/background"
	"curt/internal/exchange"
	"curt/internal/job"
	"curt/internal/link"
	"curt/internal/shorten"
	"curt/internal/shorten/create"
)

// Jobs are the jobs of a server that import and export.
type Jobs struct {
	*Creator

	// Who returns the caller of a key by its id, as its rights are now.
	Who     func(ctx context.Context, keyID string, now time.Time) (auth.Principal, error)
	Yielder background.Yielder // boosts each part of the work, at low priority
}

// part runs a part of the work.
func (s *Jobs) part(work func()) {
	defer s.Yielder.Boost()()
	background.Isolate(s.Yielder, work)
}

// Kinds are what a job.Runner does.
func (s *Jobs) Kinds() map[job.Kind]job.Do {
	return map[job.Kind]job.Do{job.Import: s.imports, job.Export: s.exports}
}

// maxIgnored bounds the columns that people are told of.
const maxIgnored = 100

// patience is how long a batch waits for a limit before one of fewer rows is tried.
const patience = time.Minute

// who returns the caller whose rights a job has.
func (s *Jobs) who(j *job.Job) func(context.Context) (auth.Principal, error) {
	return func(ctx context.Context) (auth.Principal, error) {
		who, err := s.Who(ctx, j.CreatedBy, s.Now())
		if errors.Is(err, auth.ErrUnauthenticated) {
			err = &job.FailError{Reason: "the API key that created the job was revoked, or has expired"}
		}
		return who, err
	}
}

// imports creates a link of each row of the input.
func (s *Jobs) imports(ctx context.Context, t *job.Turn) error {
	var o Options
	if err := json.Unmarshal(t.Job.Options, &o); err != nil {
		return fmt.Errorf("read the options of a job: %w", err)
	}
	who := s.who(&t.Job)
	if wait := t.Job.Progress.WaitsUntil.Sub(s.Now()); wait > 0 { // the limit holds: only the key is checked
		if _, err := who(ctx); err != nil {
			return err
		}
		return &job.WaitError{For: wait, Err: errors.New("a limit")}
	}
	to := &creating{s.Creator, who, auth.Principal{KeyID: t.Job.CreatedBy, Workspace: t.Job.Workspace}, o}
	var sink Sink = to
	if o.DryRun {
		c := NewChecker(false, o.Tags, s.Now())
		c.free, sink = to.free, c
	}
	b, err := Read(t.Input(ctx), max(o.Offset, t.Job.Progress.Bytes), o)
	if none, ok := errors.AsType[*exchange.NoURLError](err); ok { // people choose among the columns
		p := t.Job.Progress
		p.Columns = columns(none.Columns)
		if err := t.Save(ctx, p, nil); err != nil {
			return err
		}
		return &job.FailError{Reason: "no column holds the long URLs; columns.long_url names it (found: " + none.Found() + ")"}
	}
	if err != nil {
		return ofFile(err)
	}
	for more := true; more && err == nil; {
		s.part(func() { more, err = s.batch(ctx, t, b, sink) })
	}
	return err
}

// batch creates the links of a batch and saves what became of it. A batch that is repeated begins
// at the same byte with the same bound, and so has the same rows and the same key.
func (s *Jobs) batch(ctx context.Context, t *job.Turn, b *Batches, sink Sink) (more bool, err error) {
	p := t.Job.Progress
	p.Header, p.Ignored = b.Used, b.Ignored[:min(len(b.Ignored), maxIgnored)]
	rows, err := b.Next(most(&p))
	if b.Columns != nil && p.Columns == nil {
		p.Columns = columns(b.Columns())
	}
	if len(rows) == 0 {
		return false, ofFile(err)
	}
	n := len(rows)
	outcomes, err := sink.Put(ctx, rows, fmt.Sprintf("job-%s-%d-%d", t.Job.ID, p.Bytes, rows[n-1].End))
	if outcomes == nil {
		wait, limited := refused(err)
		switch {
		case limited && n > 1 && wait > patience: // fewer may pass; which ones is saved before they are put
			p.Batch = n / 2
			return true, t.Save(ctx, p, nil)
		case limited:
			return false, &job.WaitError{For: wait, Err: err}
		}
		return false, denied(err)
	}
	text, encoded := Encode(outcomes)
	if encoded != nil {
		return false, encoded
	}
	Advance(&p, rows, outcomes)
	if p.Batch > 0 {
		p.Batch = min(2*p.Batch, create.MaxMany)
	}
	b.Take(n)
	if saved := t.Save(ctx, p, text); saved != nil {
		return false, saved
	}
	return err == nil, err
}

// maxColumns bounds the columns that people are shown, in bytes of JSON.
const maxColumns = 16 << 10

// columns are those of a file in the progress of its job.
func columns(of []exchange.Column) (all []job.Column) {
	size := 0
	for _, c := range of {
		text, err := json.Marshal(job.Column(c))
		if size += len(text); err != nil || size > maxColumns {
			break
		}
		all = append(all, job.Column(c))
	}
	return all
}

// refused returns how long a limit asks to wait; more than patience for a batch that it never
// lets pass at once.
func refused(err error) (wait time.Duration, limited bool) {
	if l, ok := errors.AsType[*shorten.LimitedError](err); ok {
		return max(l.Verdict.RetryAfter, time.Second), true
	}
	if i, ok := errors.AsType[*shorten.InvalidError](err); ok && i.Field == "links" {
		return patience + time.Second, true
	}
	return 0, false
}

// denied fails a job whose key lost its right.
func denied(err error) error {
	switch {
	case errors.Is(err, auth.ErrForbidden), errors.Is(err, shorten.ErrBanned):
		return &job.FailError{Reason: err.Error()}
	case errors.Is(err, shorten.ErrKeyReused):
		return &job.FailError{Reason: "the file was read in another way before; start a new import"}
	}
	return err
}

// ofFile fails a job for what is wrong with its file.
func ofFile(err error) error {
	if err == nil || errors.Is(err, io.EOF) || errors.Is(err, link.ErrUnavailable) || errors.Is(err, job.ErrNoJob) ||
		errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return &job.FailError{Reason: err.Error()}
}
