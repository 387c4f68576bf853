package linktest

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"testing"
	"time"

	"curt/internal/link"
)

// Harness is what a driver gives to the suite.
type Harness struct {
	// Open returns a store without links, closed by the test's clean-up. It may be a part of
	// one that others write to, as a prefix in a table: the change log may begin anywhere and
	// have gaps.
	Open func(t testing.TB) link.Store

	// Again returns a second handle on the data of s, as another process would have
	// it; nil = the driver is for a single process. It is closed as Open's is.
	Again func(t testing.TB, s link.Store) link.Store

	Features Features
}

// Features are what a driver declares. What it implements must be the same.
type Features struct {
	Spender, Deduper, Batcher, ManyGetter, Reserver bool

	MaxLag time.Duration // how long Lookup may lag behind; 0 = never
}

// Run proves a driver: every case is a subtest on a store of its own.
func Run(t *testing.T, h Harness) {
	t.Run("features are declared", func(t *testing.T) { features(t, h) })
	for _, c := range []struct {
		name string
		run  func(t *testing.T, h Harness)
	}{
		{"1 contract", contract},
		{"2 one winner", func(t *testing.T, h Harness) {
			oneWinner(t, h)
			t.Run("in turns", func(t *testing.T) { takeTurns(t, h) })
		}},
		{"3 compare and swap", swaps},
		{"4 lost acknowledgement", lostAcknowledgement},
		{"5 tombstones", tombstones},
		{"6 pages", pages},
		{"7 time", exactExpiry},
		{"8 context", contexts},
		{"9 model", modelRuns},
		{"10 size", size},
		{"11 later releases", later},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t, h) })
	}
	if _, ok := h.Open(t).(link.EventLog); ok {
		t.Run("12 events", func(t *testing.T) { events(t, h) })
	}
	optional(t, h)
}

func features(t *testing.T, h Harness) {
	s := h.Open(t)
	_, spender := s.(link.Spender)
	_, deduper := s.(link.Deduper)
	_, batcher := s.(link.Batcher)
	_, many := s.(link.ManyGetter)
	_, reserver := s.(link.Reserver)
	got := Features{Spender: spender, Deduper: deduper, Batcher: batcher, ManyGetter: many, Reserver: reserver, MaxLag: h.Features.MaxLag}
	if got != h.Features {
		t.Errorf("implemented %+v, declared %+v", got, h.Features)
	}
}

// handles returns a store and, where the driver has it, a second handle.
func handles(t testing.TB, h Harness) []link.Store {
	s := h.Open(t)
	if h.Again == nil {
		return []link.Store{s, s}
	}
	return []link.Store{s, h.Again(t, s)}
}

// epoch is the time of the suite's links; nothing here asks the clock.
var epoch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// idAt returns an id whose time is n milliseconds after epoch.
func idAt(n int) link.ID {
	var id link.ID
	var ms [8]byte
	binary.BigEndian.PutUint64(ms[:], uint64(epoch.UnixMilli()+int64(n))<<16)
	copy(id[:6], ms[:6])
	sum := sha256.Sum256(binary.BigEndian.AppendUint64(nil, uint64(n)))
	copy(id[6:], sum[:])
	id[6], id[8] = id[6]&0x0f|0x70, id[8]&0x3f|0x80
	return id
}

// sample returns a plain link; n tells links apart.
func sample(n int, code link.Code) link.Link {
	at := epoch.Add(time.Duration(n) * time.Millisecond)
	return link.Link{
		ID: idAt(n), Key: link.Key{Code: code}, Destination: "https://example.com/" + string(code),
		Workspace: link.WorkspaceDefault, Status: link.Active, Safety: link.Clean, Redirect: 302,
		Created: at, Updated: at,
	}
}

// Chosen returns a link with a chosen code, which is in the change log from its creation on. Links
// of other n have other ids.
func Chosen(n int, code link.Code) link.Link { return sample(n, code) }

func mustCreate(t testing.TB, s link.Store, l link.Link) link.Link {
	t.Helper()
	stored, err := s.Create(t.Context(), l)
	if err != nil {
		t.Fatalf("create %s: %v", l.Key, err)
	}
	return stored
}

func mustGet(t testing.TB, s link.Store, k link.Key) link.Link {
	t.Helper()
	l, err := s.Get(t.Context(), k)
	if err != nil {
		t.Fatalf("get %s: %v", k, err)
	}
	return l
}

func mustReplace(t testing.TB, s link.Store, l link.Link) link.Link {
	t.Helper()
	stored, err := s.Replace(t.Context(), l, link.Edit{})
	if err != nil {
		t.Fatalf("replace %s: %v", l.Key, err)
	}
	return stored
}

func want(t testing.TB, op string, err, sentinel error) {
	t.Helper()
	if !errors.Is(err, sentinel) {
		t.Errorf("%s: got %v, want %v", op, err, sentinel)
	}
}

// settledLookup waits for the declared lag: it returns Lookup's answer once ok holds
// of it, or its last answer.
func settledLookup(t testing.TB, h Harness, s link.Store, k link.Key, ok func(link.Target) bool) (link.Target, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), h.Features.MaxLag)
	defer cancel()
	for {
		over := ctx.Err() != nil // before what is asked: an answer that began in time may be late
		target, err := s.Lookup(t.Context(), k)
		if err == nil && ok(target) || over {
			return target, err
		}
	}
}

// Epoch returns the time at which the suite plays.
func Epoch() time.Time { return epoch }
