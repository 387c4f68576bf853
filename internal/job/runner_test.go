package job_test

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"curt/internal/job"
	"curt/internal/job/jobtest"
	"curt/internal/link"
)

func TestMemory(t *testing.T) {
	jobtest.Run(t, func(_ testing.TB, b job.Bounds) [2]job.Store {
		s := jobtest.NewMemory(b)
		return [2]job.Store{s, s}
	})
}

func submit(t *testing.T, s job.Store) link.ID {
	t.Helper()
	id, err := link.NewID(time.Now(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Create(t.Context(), job.Job{ID: id, Kind: job.Export, Workspace: "acme", CreatedBy: "key", State: job.Queued}); err != nil {
		t.Fatal(err)
	}
	return id
}

// runs starts a runner and returns what ends it, as a kill that leaves the claim would not.
func runs(t *testing.T, s job.Store, holder string, do job.Do) (end func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r := job.Runner{Store: s, Holder: holder, Kinds: map[job.Kind]job.Do{job.Export: do}, Log: slog.New(slog.DiscardHandler)}
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	return func() {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
}

func state(t *testing.T, s job.Store, id link.ID) job.Job {
	t.Helper()
	j, err := s.Get(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// tens saves ten rows, a row each step.
func tens(ctx context.Context, t *job.Turn) error {
	for t.Job.Progress.Rows < 10 {
		p := t.Job.Progress
		p.Rows++
		if err := t.Save(ctx, p, []byte("x")); err != nil {
			return err
		}
	}
	return nil
}

// How work ends says what becomes of the job.
func TestTheEndOfWorkIsTheEndOfTheJob(t *testing.T) {
	for name, tt := range map[string]struct {
		err   error
		state job.State
		said  string
	}{
		"done":     {nil, job.Done, ""},
		"a reason": {&job.FailError{Reason: "why"}, job.Failed, "why"},
		"a fault":  {io.ErrUnexpectedEOF, job.Failed, "its log says more"},
		"a bound":  {job.ErrTooBig, job.Failed, "larger"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := jobtest.NewMemory(job.DefaultBounds())
				id := submit(t, s)
				end := runs(t, s, "a", func(context.Context, *job.Turn) error { return tt.err })
				time.Sleep(2 * time.Second)
				if j := state(t, s, id); j.State != tt.state || !strings.Contains(j.Error, tt.said) {
					t.Errorf("%+v", j)
				}
				end()
			})
		})
	}
}

// What is unavailable is tried again, also after hours.
func TestWorkWaitsForWhatIsUnavailable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := jobtest.NewMemory(job.DefaultBounds())
		id := submit(t, s)
		back := time.Now().Add(3 * time.Hour)
		tries := 0
		end := runs(t, s, "a", func(ctx context.Context, turn *job.Turn) error {
			if tries++; time.Now().Before(back) {
				return link.ErrUnavailable
			}
			return tens(ctx, turn)
		})
		time.Sleep(4 * time.Hour)
		if j := state(t, s, id); j.State != job.Done || j.Progress.Rows != 10 || tries > 2000 {
			t.Errorf("%+v after %d tries", j, tries)
		}
		end()
	})
}

// A job that waits lets others go on, and is canceled while it waits.
func TestAJobThatWaitsLetsOthersGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := jobtest.NewMemory(job.DefaultBounds())
		limited := submit(t, s)
		other := submit(t, s)
		end := runs(t, s, "a", func(ctx context.Context, turn *job.Turn) error {
			if turn.Job.ID == limited {
				return &job.WaitError{For: time.Hour, Err: errors.New("a limit")}
			}
			return tens(ctx, turn)
		})
		time.Sleep(30 * time.Second)
		if j := state(t, s, other); j.State != job.Done {
			t.Errorf("%+v", j)
		}
		if j := state(t, s, limited); j.State != job.Running || j.Waits.IsZero() {
			t.Errorf("%+v", j)
		}
		if j, err := s.Cancel(t.Context(), limited); err != nil || j.State != job.Canceled {
			t.Errorf("%+v, %v", j, err)
		}
		end()
	})
}

// Jobs take turns, and a canceled one stops at its next save.
func TestJobsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := jobtest.NewMemory(job.DefaultBounds())
		endless, short := submit(t, s), submit(t, s)
		end := runs(t, s, "a", func(ctx context.Context, turn *job.Turn) error {
			for turn.Job.ID == endless {
				time.Sleep(time.Second)
				if err := turn.Save(ctx, turn.Job.Progress, nil); err != nil {
					return err
				}
			}
			return tens(ctx, turn)
		})
		time.Sleep(2 * time.Minute)
		if j := state(t, s, short); j.State != job.Done {
			t.Errorf("%+v", j)
		}
		if j, err := s.Cancel(t.Context(), endless); err != nil || j.State != job.Canceling {
			t.Errorf("%+v, %v", j, err)
		}
		time.Sleep(5 * time.Second)
		if j := state(t, s, endless); j.State != job.Canceled {
			t.Errorf("%+v", j)
		}
		end()
	})
}

// A server that ends leaves its job to another, which goes on from what was saved.
func TestAnotherServerGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := jobtest.NewMemory(job.DefaultBounds())
		id := submit(t, s)
		end := runs(t, s, "a", func(ctx context.Context, turn *job.Turn) error {
			p := turn.Job.Progress
			p.Rows = 4
			if err := turn.Save(ctx, p, []byte("xxxx")); err != nil {
				return err
			}
			<-ctx.Done()
			return context.Cause(ctx)
		})
		time.Sleep(time.Hour) // its claim is renewed
		end2 := runs(t, s, "b", tens)
		time.Sleep(time.Hour)
		if j := state(t, s, id); j.State != job.Running || j.Progress.Rows != 4 {
			t.Errorf("%+v", j)
		}
		end()
		time.Sleep(2 * time.Second)
		if j := state(t, s, id); j.State != job.Done || j.Progress.Rows != 10 || j.Result != 10 {
			t.Errorf("%+v", j)
		}
		end2()
	})
}
