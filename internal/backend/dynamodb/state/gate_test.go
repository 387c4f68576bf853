package state_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"

	"curt/internal/backend/dynamodb/ddb"
	"curt/internal/backend/dynamodb/state"
	"curt/internal/backend/dynamodb/tables"
	"curt/internal/link"
	"curt/internal/testkit"
)

// open returns a client of new tables.
func open(t *testing.T) *ddb.Client {
	t.Helper()
	at, err := ddb.ParseAddress(testkit.StartDynamoDB(t, false).URL("links"))
	if err != nil {
		t.Fatal(err)
	}
	db, err := ddb.Open(t.Context(), at, ddb.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	if _, err := tables.Migrate(t.Context(), db, at); err != nil {
		t.Fatal(err)
	}
	return db
}

// serve runs the gate of a server until the test ends.
func serve(t *testing.T, db *ddb.Client, name string) *state.Gate {
	t.Helper()
	g := state.NewGate(db, name, slog.New(slog.DiscardHandler))
	if err := g.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(context.WithoutCancel(t.Context()))
	var running sync.WaitGroup
	running.Go(func() { g.Run(ctx) })
	t.Cleanup(func() { end(); running.Wait() })
	return g
}

func write(ctx context.Context, g *state.Gate) error {
	return g.Write(ctx, func(context.Context) error { return nil })
}

// TestGatesFreezeAndSwitch: a freeze has come once every server refuses writes and those under way have
// ended; one that ended by a server cannot switch; behind a switch nobody writes, thaws or starts.
func TestGatesFreezeAndSwitch(t *testing.T) {
	testkit.Faults(t)
	db := open(t)
	gates := []*state.Gate{serve(t, db, "a"), serve(t, db, "b")}
	begun, end, ended := make(chan struct{}), make(chan struct{}), make(chan error)
	go func() {
		ended <- gates[0].Write(t.Context(), func(context.Context) error { close(begun); <-end; return nil })
	}()
	<-begun
	came := make(chan *state.Frozen)
	go func() {
		f, err := state.Freeze(t.Context(), db, "first", nil)
		if err != nil {
			t.Error(err)
		}
		came <- f
	}()
	for write(t.Context(), gates[0]) == nil { // until it refuses
	}
	select {
	case <-came:
		t.Error("a freeze came while a write was under way")
	default:
	}
	close(end)
	if err := <-ended; err != nil {
		t.Errorf("the write that was under way: %v", err)
	}
	f := <-came
	for _, g := range gates {
		if err := write(t.Context(), g); !errors.Is(err, link.ErrUnavailable) {
			t.Errorf("a write in a freeze: %v", err)
		}
	}
	if err := f.Release(t.Context()); err != nil { // as a server does that waited for too long
		t.Fatal(err)
	}
	if err := f.Switch(t.Context(), "elsewhere"); !errors.Is(err, state.ErrThawed) {
		t.Errorf("a switch behind the end of its freeze: %v", err)
	}
	for _, g := range gates {
		for write(t.Context(), g) != nil { // until it has looked
		}
	}
	f, err := state.Freeze(t.Context(), db, "second", nil)
	if err == nil {
		err = errors.Join(f.Switch(t.Context(), "elsewhere"), f.Release(t.Context()))
	}
	if err != nil {
		t.Fatal(err)
	}
	if to, err := state.Moved(t.Context(), db); err != nil || to != "elsewhere" {
		t.Errorf("moved to %q, %v", to, err)
	}
	for _, g := range gates {
		if err := write(t.Context(), g); !errors.Is(err, link.ErrUnavailable) {
			t.Errorf("a write behind the switch: %v", err)
		}
	}
	late := state.NewGate(db, "late", slog.New(slog.DiscardHandler))
	if err := late.Open(t.Context()); !errors.Is(err, ddb.ErrUnfit) {
		t.Errorf("a server that starts behind the switch: %v", err)
	}
	if _, err := state.Freeze(t.Context(), db, "third", nil); err == nil {
		t.Error("a freeze behind the switch")
	}
}

// TestASilentServerIsNamed: nobody can say that it will not write, until an operator does.
func TestASilentServerIsNamed(t *testing.T) {
	testkit.Faults(t)
	db := open(t)
	serve(t, db, "runs")
	if err := state.NewGate(db, "silent", slog.New(slog.DiscardHandler)).Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := state.Freeze(t.Context(), db, "first", nil); err == nil {
		t.Error("a freeze with a server that is silent")
	} else if names, bad := state.Writers(t.Context(), db); bad != nil || len(names) != 2 {
		t.Errorf("%v, %v", names, bad)
	}
	if _, err := state.Freeze(t.Context(), db, "second", map[string]bool{"silent": true}); err != nil {
		t.Error(err)
	}
}
