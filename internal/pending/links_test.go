package pending_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"curt/internal/link"
	"curt/internal/link/linktest"
	"curt/internal/pending"
)

// memoryLog is a Log of one partition.
type memoryLog struct {
	mu      sync.Mutex
	records []pending.Record // guarded by mu, as all
	written int64
	err     error // of Append
}

func (m *memoryLog) Append(_ context.Context, records []pending.Record) (at []pending.Location, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err != nil {
		return nil, m.err
	}
	for _, r := range records {
		at = append(at, pending.Location{Offset: int64(len(m.records))})
		m.records = append(m.records, r)
	}
	return at, nil
}

func (m *memoryLog) Written(context.Context) (map[int32]int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return map[int32]int64{0: m.written}, nil
}

// write brings the next records into a store.
func (m *memoryLog) write(t *testing.T, to link.Store, n int) {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	for range n {
		l, err := pending.Decode(m.records[m.written].Value)
		if err == nil {
			_, err = to.Create(t.Context(), l)
		}
		if err != nil {
			t.Fatal(err)
		}
		m.written++
	}
}

// some returns a link with a code.
func some(t *testing.T, code link.Code) link.Link {
	t.Helper()
	l := whole(t)
	id, err := link.NewID(l.Created, strings.NewReader(string(code)+strings.Repeat(".", 16)))
	if err != nil {
		t.Fatal(err)
	}
	l.ID, l.Key.Code, l.Version, l.Spent, l.MaxClicks = id, code, 0, 0, 0
	return l
}

// put puts one link.
func put(t *testing.T, p *pending.Links, l link.Link) link.Result {
	t.Helper()
	results, err := p.Put(t.Context(), []link.Link{l})
	if err != nil {
		t.Fatal(err)
	}
	return results[0]
}

func TestALinkIsPendingUntilItIsWritten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store, log := linktest.NewMemory(), &memoryLog{}
		var ended []link.Key
		p := pending.New(pending.Config{Log: log, Store: store, Ended: func(k link.Key) { ended = append(ended, k) }})
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { _ = p.Run(ctx) })
		defer running.Wait()
		defer cancel()

		l := some(t, "code001")
		if r := put(t, p, l); r.Err != nil || r.Link.Version != 0 || r.Link.ID != l.ID {
			t.Fatalf("put: %+v", r)
		}
		found, is := p.Find(l.Key)
		source := (&pending.View{Own: p}).Over(store)
		target, err := source.Lookup(t.Context(), l.Key)
		got, errGet := source.Get(t.Context(), l.Key)
		if !is || !found.IsPending() || err != nil || target.Destination != l.Destination || target.Version != 0 || errGet != nil || got.ID != l.ID {
			t.Errorf("pending: %v %+v %+v %v %+v %v", is, found, target, err, got, errGet)
		}
		// The same again is the same link, and needs no second record.
		if r := put(t, p, l); r.Err != nil || r.Link.Version != 0 || len(log.records) != 1 {
			t.Errorf("put again: %+v, %d records", r, len(log.records))
		}
		waited := make(chan error, 1)
		running.Go(func() { waited <- p.Await(ctx, l.Key) })
		time.Sleep(time.Second)
		synctest.Wait()
		if len(waited) > 0 {
			t.Error("Await returned before the link was written")
		}
		log.write(t, store, 1)
		time.Sleep(time.Second)
		synctest.Wait()
		if err := <-waited; err != nil {
			t.Errorf("Await: %v", err)
		}
		if _, is := p.Find(l.Key); is || len(ended) != 1 || ended[0] != l.Key || p.Stats().Bytes != 0 {
			t.Errorf("after the write: found %v, ended %v, %+v", is, ended, p.Stats())
		}
		if target, err := source.Lookup(t.Context(), l.Key); err != nil || target.Version != 1 {
			t.Errorf("after the write: %+v, %v", target, err)
		}
		// A late retry of the same create finds what it stored.
		if r := put(t, p, l); r.Err != nil || r.Link.Version != 1 || len(log.records) != 1 {
			t.Errorf("put after the write: %+v, %d records", r, len(log.records))
		}
	})
}

func TestATakenCodeIsNotAccepted(t *testing.T) {
	t.Parallel()
	store, log := linktest.NewMemory(), &memoryLog{}
	p := pending.New(pending.Config{Log: log, Store: store})
	other := some(t, "taken01")
	other.CodeKind = link.Chosen
	if _, err := store.Create(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	mine := some(t, "taken01")
	mine.ID[15]++
	invalid := some(t, "invalid")
	invalid.Destination = ""
	results, err := p.Put(t.Context(), []link.Link{mine, some(t, "free001"), invalid})
	if err != nil || !errors.Is(results[0].Err, link.ErrExists) || results[1].Err != nil || !errors.Is(results[2].Err, link.ErrInvalid) || len(log.records) != 1 {
		t.Errorf("%+v, %v; %d records", results, err, len(log.records))
	}
}

func TestAFailedAppendLeavesNothingPending(t *testing.T) {
	t.Parallel()
	log := &memoryLog{err: errors.New("lost")}
	p := pending.New(pending.Config{Log: log, Store: linktest.NewMemory()})
	l := some(t, "code001")
	if _, err := p.Put(t.Context(), []link.Link{l}); err == nil || errors.Is(err, link.ErrUnavailable) {
		t.Errorf("Put: %v, want an error that leaves open whether it happened", err)
	}
	if _, is := p.Find(l.Key); is || p.Stats().Bytes != 0 {
		t.Errorf("%+v", p.Stats())
	}
}

func TestMemoryIsBounded(t *testing.T) {
	t.Parallel()
	store, log := linktest.NewMemory(), &memoryLog{}
	p := pending.New(pending.Config{Log: log, Store: store, MaxBytes: 2000})
	put(t, p, some(t, "code001"))
	put(t, p, some(t, "code002"))
	if _, err := p.Put(t.Context(), []link.Link{some(t, "code003")}); !errors.Is(err, pending.ErrFull) || !errors.Is(err, link.ErrUnavailable) || strings.Contains(err.Error(), "link store") || len(log.records) != 2 {
		t.Errorf("beyond the bound: %v, %d records", err, len(log.records))
	}
	if s := p.Stats(); s.Pending != 2 || s.Refused != 1 || s.Accepted != 2 || s.Bytes > 2000 || s.Oldest.IsZero() {
		t.Errorf("%+v", s)
	}
}

func TestAwaitEndsWithItsContext(t *testing.T) {
	t.Parallel()
	p := pending.New(pending.Config{Log: &memoryLog{}, Store: linktest.NewMemory()})
	l := some(t, "code001")
	put(t, p, l)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.Await(ctx, l.Key); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if err := p.Await(ctx, link.Key{Code: "unknown"}); err != nil {
		t.Errorf("of a link that is not pending: %v", err)
	}
}
