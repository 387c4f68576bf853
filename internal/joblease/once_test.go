package joblease_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"curt/internal/joblease"
	"curt/internal/joblease/jobleasetest"
	"curt/internal/link"
)

func TestMemory(t *testing.T) {
	jobleasetest.Run(t, func(testing.TB) [2]joblease.Store {
		s := jobleasetest.NewMemory()
		return [2]joblease.Store{s, s}
	})
}

// fleet is two servers that run one job.
type fleet struct {
	store *jobleasetest.Memory
	runs  chan run
}

type run struct {
	holder string
	fence  uint64
	ctx    context.Context //nolint:containedctx // looked at by the test
}

func (f *fleet) start(ctx context.Context, store joblease.Store, holder string) <-chan error {
	ended := make(chan error, 1)
	once := joblease.Once{Store: store, Name: "job", Holder: holder, Log: slog.New(slog.DiscardHandler)}
	go func() {
		ended <- once.Run(ctx, func(ctx context.Context, fence uint64) error {
			f.runs <- run{holder, fence, ctx}
			<-ctx.Done()
			return context.Cause(ctx)
		})
	}()
	return ended
}

// One server runs the job until it ends; then the other does, with a higher fence.
func TestOneServerRunsAJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fleet{jobleasetest.NewMemory(), make(chan run, 10)}
		first, stop := context.WithCancel(t.Context())
		ended := f.start(first, f.store, "a")
		synctest.Wait()
		second, stopSecond := context.WithCancel(t.Context())
		endedSecond := f.start(second, f.store, "b")
		time.Sleep(time.Hour)
		if one := <-f.runs; one.holder != "a" || one.fence != 1 || len(f.runs) != 0 {
			t.Fatalf("%+v, and %d more", one, len(f.runs))
		}
		stop()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if two := <-f.runs; two.holder != "b" || two.fence != 2 {
			t.Errorf("%+v", two)
		}
		stopSecond()
		if err := <-endedSecond; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

// away is a store that one server cannot reach for a while.
type away struct {
	joblease.Store

	err error
}

func (a *away) Renew(ctx context.Context, l joblease.Lease, ttl time.Duration) error {
	if a.err != nil {
		return a.err
	}
	return a.Store.Renew(ctx, l, ttl)
}

func (a *away) Acquire(ctx context.Context, name, holder string, ttl time.Duration) (joblease.Lease, error) {
	if a.err != nil {
		return joblease.Lease{}, a.err
	}
	return a.Store.Acquire(ctx, name, holder, ttl)
}

// A server that cannot renew its lease stops the job before another may begin it.
func TestAServerThatIsCutOffStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fleet{jobleasetest.NewMemory(), make(chan run, 10)}
		wire := &away{Store: f.store}
		ctx, stop := context.WithCancel(t.Context())
		ended := f.start(ctx, wire, "a")
		one := <-f.runs
		time.Sleep(time.Minute)
		if one.ctx.Err() != nil {
			t.Fatal("the job ended although its lease was renewed")
		}
		wire.err = link.ErrUnavailable
		cut := time.Now()
		<-one.ctx.Done()
		if after := time.Since(cut); !errors.Is(context.Cause(one.ctx), joblease.ErrLost) || after > joblease.TTL {
			t.Errorf("%v after %s", context.Cause(one.ctx), after)
		}
		endedSecond := f.start(ctx, f.store, "b")
		two := <-f.runs
		if two.holder != "b" || two.fence != 2 {
			t.Errorf("%+v", two)
		}
		wire.err = nil
		time.Sleep(time.Hour)
		if two.ctx.Err() != nil || len(f.runs) != 0 {
			t.Error("the job was taken from a server that renews its lease")
		}
		stop()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if err := <-endedSecond; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}
