package job

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"curt/internal/background"
	"curt/internal/joblease"
	"curt/internal/link"
	"curt/internal/repeatlog"
)

const (
	// turn is how long a job is worked on before another that waits gets its turn.
	turn = 30 * time.Second
	// look is how often a runner looks for jobs that other servers took the input of.
	look = time.Second
	// retryFirst and retryMost are how long a job waits for what is unavailable.
	retryFirst, retryMost = time.Second, time.Minute
	// checkEvery is how often the key of a job that waits for a limit is checked.
	checkEvery = time.Minute
	// sweepEvery is how often expired jobs are removed.
	sweepEvery = time.Minute
)

// Do is the work of one kind: it goes on from t.Job.Progress and saves each part of what it did.
// Nil ends the job. A [WaitError] lets it wait and goes on later; a [FailError] says why it failed;
// link.ErrUnavailable and such are tried again.
type Do func(ctx context.Context, t *Turn) error

// WaitError lets a job go on later.
type WaitError struct {
	For time.Duration
	Err error // why
}

func (e *WaitError) Error() string { return fmt.Sprintf("wait %s: %v", e.For, e.Err) }
func (e *WaitError) Unwrap() error { return e.Err }

// FailError fails a job. Its text is for the one who created it.
type FailError struct{ Reason string }

func (e *FailError) Error() string { return e.Reason }

// The ways in which a turn ends before its job does.
var (
	errCanceled = errors.New("the job was canceled")
	errReleased = errors.New("it is the turn of another job")
)

// Runner works on jobs, one at a time.
type Runner struct {
	Store  Store
	Holder string // this server; no other process has the name
	Kinds  map[Kind]Do
	TTL    time.Duration   // of a claim; 0 = joblease.TTL
	Wake   <-chan struct{} // a job was queued by this server
	Log    *slog.Logger

	failing repeatlog.Condition
}

// Run works until ctx ends. A job under way stops at its next save, and another server goes on.
func (r *Runner) Run(ctx context.Context) error {
	if r.TTL == 0 {
		r.TTL = joblease.TTL
	}
	tick := time.NewTicker(look)
	defer tick.Stop()
	for {
		began := time.Now()
		j, err := r.Store.Claim(ctx, r.Holder, r.TTL)
		if err == nil {
			r.work(ctx, j, began)
			if ctx.Err() == nil {
				continue
			}
		}
		if err != nil && !errors.Is(err, ErrNoJob) && ctx.Err() == nil {
			r.failing.Log(ctx, began, r.Log, slog.LevelWarn, "claiming jobs failed, retrying", err)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		case <-r.Wake:
		}
	}
}

// work works on a job until it ends, its turn is over, or another server has it.
func (r *Runner) work(ctx context.Context, j Job, began time.Time) {
	claim := Claim(&j, r.Holder)
	t := &Turn{Job: j, runner: r, claim: claim, until: began.Add(turn)}
	err := joblease.Hold(ctx, r.Store, claim, began, r.TTL, func(ctx context.Context, _ uint64) error {
		return t.do(ctx)
	})
	if err != nil && ctx.Err() == nil {
		r.Log.WarnContext(ctx, "job interrupted, this or another server continues it", slog.String("job", claim.Name), slog.Any("err", err))
	}
}

// Turn is a job in the hands of a runner, for a while.
type Turn struct {
	Job Job // as it was saved last

	runner *Runner
	claim  joblease.Lease
	until  time.Time
	waited time.Duration
}

// Input reads the input from its beginning.
func (t *Turn) Input(ctx context.Context) io.Reader {
	return NewReader(ctx, t.runner.Store, t.Job.ID, Input, 0, t.Job.Uploaded)
}

// Save stores the progress, with what is appended to the result. An error ends the turn.
func (t *Turn) Save(ctx context.Context, p Progress, result []byte) error {
	release := time.Now().After(t.until)
	if err := t.save(ctx, Step{Progress: p, Result: result, Release: release}); err != nil {
		return err
	}
	switch {
	case t.Job.State == Canceling:
		return errCanceled
	case release:
		return errReleased
	}
	t.waited = 0
	return nil
}

func (t *Turn) save(ctx context.Context, s Step) (err error) {
	j, err := t.runner.Store.Save(ctx, t.claim, s)
	if err == nil {
		t.Job = j
	}
	return err
}

// do does the work of the job's kind and saves how it ended. What is unavailable is retried.
func (t *Turn) do(ctx context.Context) error {
	do := t.runner.Kinds[t.Job.Kind]
	if do == nil {
		return t.save(ctx, Step{Progress: t.Job.Progress, State: Failed, Error: "no server of this release knows this kind of job"})
	}
	for {
		// Of a job that was canceled while a server ran it, the step that was in flight when that
		// server ended is repeated, so that the progress covers its effect: its save ends the job.
		err := do(ctx, t)
		if t.Job.State == Canceling && err != nil && !passing(err) {
			err = errCanceled
		}
		if ctx.Err() != nil || errors.Is(err, errReleased) || errors.Is(err, joblease.ErrLost) {
			return ignore(err, errReleased)
		}
		s, ends := t.outcome(ctx, err)
		switch {
		case ends:
			return t.save(ctx, s)
		case !background.Sleep(ctx, t.waited):
			return context.Cause(ctx)
		}
	}
}

// outcome is what to save of how the work ended; ends = false: it is tried again after a while.
func (t *Turn) outcome(ctx context.Context, err error) (s Step, ends bool) {
	s.Progress = t.Job.Progress
	wait, waits := errors.AsType[*WaitError](err)
	fail, fails := errors.AsType[*FailError](err)
	switch {
	case err == nil:
		s.State = Done
	case errors.Is(err, errCanceled):
		s.State = Canceled
	case fails:
		s.State, s.Error = Failed, fail.Reason
	case errors.Is(err, ErrTooBig):
		s.State, s.Error = Failed, "the result is larger than jobs may be"
	case waits:
		s.Progress.WaitsUntil = time.Now().Add(wait.For)
		s.Release, s.Wait = true, min(wait.For, checkEvery)
	case passing(err) && t.waited < retryMost/2:
		t.waited = max(retryFirst, 2*t.waited)
		return s, false
	case passing(err):
		t.runner.Log.WarnContext(ctx, "a job waits for what is unavailable", slog.String("job", t.claim.Name), slog.Any("err", err))
		s.Release, s.Wait = true, retryMost
	default:
		t.runner.Log.ErrorContext(ctx, "a job failed", slog.String("job", t.claim.Name), slog.Any("err", err))
		s.State, s.Error = Failed, "the server failed; its log says more under job "+t.claim.Name
	}
	return s, true
}

// passing reports whether work that failed so may succeed later.
func passing(err error) bool {
	return errors.Is(err, link.ErrUnavailable) || errors.Is(err, link.ErrUncertain) || errors.Is(err, link.ErrFull) || errors.Is(err, context.DeadlineExceeded)
}

func ignore(err, expected error) error {
	if errors.Is(err, expected) {
		return nil
	}
	return err
}

// Sweep removes expired jobs until ctx ends.
func (r *Runner) Sweep(ctx context.Context) error {
	for range background.Every(ctx, sweepEvery) {
		more, err := true, error(nil)
		for more && err == nil {
			more, err = r.Store.Sweep(ctx)
		}
		if err != nil && ctx.Err() == nil {
			r.Log.WarnContext(ctx, "removing expired jobs failed, retrying", slog.Any("err", err))
		}
	}
	return context.Cause(ctx)
}
