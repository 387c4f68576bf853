package pending_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"curt/internal/link"
	"curt/internal/link/linktest"
	"curt/internal/pending"
)

// memoryShared is a Shared that remembers for how long it was to keep each record.
type memoryShared struct {
	mu      sync.Mutex
	records map[link.Key][]byte // guarded by mu, as all
	life    map[link.Key]time.Duration
	err     error
}

func newShared() *memoryShared {
	return &memoryShared{records: map[link.Key][]byte{}, life: map[link.Key]time.Duration{}}
}

func (m *memoryShared) Share(_ context.Context, k link.Key, record []byte, life time.Duration) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.records[k], m.life[k] = record, life
	return m.err
}

func (m *memoryShared) Shared(_ context.Context, k link.Key) ([]byte, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	record, found := m.records[k]
	return record, found && m.err == nil, m.err
}

// TestOthersSeeAPendingLinkWhole: with what bans want of it, and as unknown only while nobody can be asked.
func TestOthersSeeAPendingLinkWhole(t *testing.T) {
	t.Parallel()
	store, shared := linktest.NewMemory(), newShared()
	here := pending.New(pending.Config{Log: &memoryLog{}, Store: store, Shared: shared})
	l := some(t, "code001")
	l.Safety = link.Clean
	put(t, here, l)
	safety := link.Clean
	there := &pending.View{
		Shared: shared, Perhaps: func(c link.Code) bool { return strings.HasPrefix(string(c), "code") },
		Safety: func(banned *link.Link) link.Safety {
			if banned.Workspace != l.Workspace || banned.CreatedBy != l.CreatedBy {
				t.Errorf("judged as %+v", banned)
			}
			return safety
		},
	}
	source := there.Over(store)
	for _, want := range []link.Safety{link.Clean, link.Blocked, link.Clean} {
		safety = want
		target, err := source.Lookup(t.Context(), l.Key)
		got, errGet := source.Get(t.Context(), l.Key)
		if err != nil || errGet != nil || target.Safety != want || target.Version != 0 || target.Destination != l.Destination || got.Title != l.Title || got.ID != l.ID || got.Safety != want {
			t.Errorf("%v: %+v, %v; %+v, %v", want, target, err, got, errGet)
		}
	}
	never, unknown := link.Key{Code: "never"}, link.Key{Code: "code002"}
	if err := there.Refuse(t.Context(), l.Key, link.ErrNotFound); !errors.Is(err, link.ErrPending) {
		t.Errorf("a change: %v", err)
	}
	for name, k := range map[string]link.Key{"never issued": never, "not pending": unknown} {
		if _, err := source.Lookup(t.Context(), k); !errors.Is(err, link.ErrNotFound) {
			t.Errorf("%s: %v", name, err)
		}
	}
	shared.mu.Lock()
	shared.err = errors.New("away")
	shared.mu.Unlock()
	for _, k := range []link.Key{l.Key, unknown} {
		if _, err := source.Lookup(t.Context(), k); !errors.Is(err, link.ErrUnavailable) || errors.Is(err, link.ErrNotFound) {
			t.Errorf("nobody can be asked for %s: %v", k, err)
		}
		if err := there.Refuse(t.Context(), k, link.ErrNotFound); !errors.Is(err, link.ErrUnavailable) {
			t.Errorf("a change of %s while nobody can be asked: %v", k, err)
		}
	}
	if _, err := source.Lookup(t.Context(), never); !errors.Is(err, link.ErrNotFound) {
		t.Errorf("never issued, while nobody can be asked: %v", err)
	}
}

func TestALinkIsSharedForAMomentOnceItIsWritten(t *testing.T) {
	t.Parallel()
	store, shared, log := linktest.NewMemory(), newShared(), &memoryLog{}
	p := pending.New(pending.Config{Log: log, Store: store, Shared: shared})
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = p.Run(ctx) })
	defer running.Wait()
	defer cancel()
	l := some(t, "code001")
	put(t, p, l)
	life := func() time.Duration {
		shared.mu.Lock()
		defer shared.mu.Unlock()
		return shared.life[l.Key]
	}
	if life() != 24*time.Hour {
		t.Errorf("while it is pending it is shared for %s", life())
	}
	log.write(t, store, 1)
	for end := time.Now().Add(3 * time.Minute); life() != 10*time.Second; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("once it is written it is shared for %s", life())
		}
	}
}

func TestAChangeIsToBeTriedAgainAfterWhatALinkHasWaited(t *testing.T) {
	t.Parallel()
	for age, want := range map[time.Duration]time.Duration{0: time.Second, 20 * time.Second: 20 * time.Second, time.Hour: time.Minute} {
		created := time.Now().Add(-age)
		err, ok := errors.AsType[*link.PendingError]((&pending.View{}).Refused(&link.Link{Created: created}))
		if !ok || err.After < want || err.After > max(want, time.Since(created)) {
			t.Errorf("of a link that waited for %s: %v", age, err)
		}
	}
}
