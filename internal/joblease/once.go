package joblease

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"curt/internal/background"
	"curt/internal/repeatlog"
)

// TTL is how long a server that was killed keeps a job from the others.
const TTL = 15 * time.Second

// Once runs a job on one server of a fleet at a time.
type Once struct {
	Store  Store
	Name   string        // of the job
	Holder string        // this server; no other process has the name
	TTL    time.Duration // 0 = TTL
	Log    *slog.Logger
}

// Run waits for the job, runs f with the fence of its lease, and renews that. When the lease is
// lost, or could not be renewed for as long as it lasts, the context of f ends, and Run waits for
// f and then for the job again. It returns what f returned, or when ctx ends its cause.
func (o *Once) Run(ctx context.Context, f func(ctx context.Context, fence uint64) error) error {
	if o.TTL == 0 {
		o.TTL = TTL
	}
	for {
		l, began, err := o.acquire(ctx)
		if err != nil {
			return err
		}
		if err := Hold(ctx, o.Store, l, began, o.TTL, f); !errors.Is(err, ErrLost) {
			return err
		}
		o.Log.WarnContext(ctx, "lost a job lease to another server", slog.String("job", o.Name))
	}
}

// acquire waits until this server has the job. The lease lasts from began at least.
func (o *Once) acquire(ctx context.Context) (l Lease, began time.Time, err error) {
	var failing repeatlog.Condition
	for range background.Every(ctx, o.TTL/3) {
		began = time.Now()
		if l, err = o.Store.Acquire(ctx, o.Name, o.Holder, o.TTL); err == nil {
			return l, began, nil
		}
		if !errors.Is(err, ErrHeld) && ctx.Err() == nil {
			failing.Log(ctx, began, o.Log, slog.LevelWarn, "acquiring a job lease failed, retrying", err, slog.String("job", o.Name))
		}
	}
	return l, began, context.Cause(ctx)
}

// Hold runs f while a lease that lasts for ttl from began is renewed, and releases it. When the lease
// is lost the context of f ends, and Hold waits for f and returns ErrLost.
func Hold(ctx context.Context, s Holder, l Lease, began time.Time, ttl time.Duration, f func(context.Context, uint64) error) error {
	within, lose := context.WithCancelCause(ctx)
	defer lose(nil)
	done := make(chan error, 1)
	go func() { done <- f(within, l.Fence) }()
	renew := time.NewTicker(ttl / 3)
	defer renew.Stop()
	for {
		select {
		case err := <-done:
			ending, stop := context.WithTimeout(context.WithoutCancel(ctx), ttl)
			defer stop()
			_ = s.Release(ending, l) // or it runs out
			return err
		case <-renew.C:
		}
		if next, kept := renewed(within, s, l, began, ttl); kept {
			began = next
			continue
		}
		lose(ErrLost)
		if err := <-done; ctx.Err() != nil {
			return err
		}
		return ErrLost
	}
}

// renewed renews a lease that lasts from began, and returns from when it lasts now. A renewal that
// fails may be made again while the lease lasts.
func renewed(ctx context.Context, s Holder, l Lease, began time.Time, ttl time.Duration) (from time.Time, kept bool) {
	from = time.Now()
	within, stop := context.WithDeadline(ctx, began.Add(ttl))
	defer stop()
	switch err := s.Renew(within, l, ttl); {
	case err == nil:
		return from, true
	case errors.Is(err, ErrLost):
		return began, false
	}
	return began, ctx.Err() != nil || time.Since(began) < ttl
}
