package linkservice_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"curt/internal/link"
	"curt/internal/link/linktest"
	"curt/internal/shorten"
	"curt/internal/shorten/linkservice"
)

// slowReplaces returns a bench whose store takes so long for each change.
func slowReplaces(t *testing.T, took time.Duration) bench {
	return newBench(t, func(cfg *linkservice.Config) {
		cfg.Store = linktest.WithFaults(cfg.Store, func(op linktest.Op, _ link.Key) (bool, error) {
			if op == linktest.OpReplace {
				time.Sleep(took)
			}
			return true, nil
		})
	})
}

func TestChangesAtOnceAllWin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const changes = 300
		b := slowReplaces(t, time.Millisecond)
		l := b.mustCreate(t, admin(), to("http://example.com"))
		errs := make(chan error)
		for i := range changes {
			go func() {
				change := shorten.Change{Fields: shorten.Fields{Title: shorten.Value(fmt.Sprintf("t%d", i))}}
				_, err := b.Update(t.Context(), noon(), by(admin()), l.Key, shorten.Match{}, &change)
				errs <- err
			}()
		}
		for range changes {
			if err := <-errs; err != nil {
				t.Error(err)
			}
		}
		if got, err := b.Get(t.Context(), admin(), l.Key); err != nil || got.Version != l.Version+changes {
			t.Errorf("version %d, %v; want %d changes", got.Version, err, changes)
		}
	})
}

func TestAChangeDoesNotWaitForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := slowReplaces(t, time.Minute)
		l := b.mustCreate(t, admin(), to("http://example.com"))
		started, first := time.Now(), make(chan error)
		go func() { first <- b.Delete(t.Context(), noon(), by(admin()), l.Key, shorten.Match{}) }()
		synctest.Wait()
		if err := b.Delete(t.Context(), noon(), by(admin()), l.Key, shorten.Match{}); !errors.Is(err, link.ErrUnavailable) {
			t.Errorf("behind a change that hangs: %v, want ErrUnavailable", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := b.Delete(ctx, noon(), by(admin()), l.Key, shorten.Match{}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("with a deadline: %v, want that of the context", err)
		}
		if waited := time.Since(started); waited > 30*time.Second {
			t.Errorf("waited %v", waited)
		}
		if err := <-first; err != nil {
			t.Error(err)
		}
		if err := b.Delete(t.Context(), noon(), by(admin()), l.Key, shorten.Match{}); !errors.Is(err, link.ErrNotFound) {
			t.Errorf("after all that: %v, want ErrNotFound", err)
		}
	})
}
