package handover_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"curt/internal/handover"
)

// store remembers whether it is frozen.
type store struct {
	frozen  atomic.Bool
	freezes atomic.Int64
	refuses error
}

func (s *store) Freeze(context.Context) error {
	if s.refuses != nil {
		return s.refuses
	}
	s.freezes.Add(1)
	s.frozen.Store(true)
	return nil
}

func (s *store) Thaw() { s.frozen.Store(false) }

// serve runs the server of a folder until the test ends or stop is called.
func serve(t *testing.T, folder string, s *store) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	server := handover.Server{Folder: folder, Store: s, Log: slog.New(slog.NewTextHandler(t.Output(), nil))}
	go func() {
		defer close(ended)
		if err := server.Run(ctx); err != nil {
			t.Error(err)
		}
	}()
	stop = func() { cancel(); <-ended }
	t.Cleanup(stop)
	return stop
}

// taken is the folder's lock while a server has it; free, without one.
func taken() (io.Closer, bool, error) { return nil, false, nil }
func free() (io.Closer, bool, error)  { return closer{}, true, nil }

type closer struct{}

func (closer) Close() error { return nil }

func begin(t *testing.T, folder string, alone func() (io.Closer, bool, error)) *handover.Mover {
	t.Helper()
	m, err := handover.Begin(folder, alone)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func freeze(t *testing.T, m *handover.Mover) *handover.Frozen {
	t.Helper()
	f, err := m.Freeze(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func isMoved(t *testing.T, folder string) bool {
	t.Helper()
	m, err := handover.Moved(folder)
	if err != nil {
		t.Fatal(err)
	}
	return m != nil
}

// eventually waits until ok; in a bubble of synctest this takes no time.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for range 6000 {
		if ok() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("%s: not within a minute", what)
}

func TestAServerSwitchesForGood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		folder, s := t.TempDir(), new(store)
		stop := serve(t, folder, s)
		m := begin(t, folder, taken)
		f := freeze(t, m)
		if !s.frozen.Load() || isMoved(t, folder) {
			t.Error("the store is not frozen, or the links are elsewhere already")
		}
		if err := f.Switch(t.Context(), handover.Mark{To: "postgres://there", Links: 3}); err != nil {
			t.Fatal(err)
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Minute)
		if !s.frozen.Load() {
			t.Error("the store was thawed behind the switch")
		}
		there, err := handover.Moved(folder)
		if err != nil || there.To != "postgres://there" || there.Links != 3 {
			t.Errorf("moved %+v, %v", there, err)
		}
		stop()
	})
}

func TestAServerThaws(t *testing.T) {
	for name, end := range map[string]func(t *testing.T, m *handover.Mover, f *handover.Frozen){
		"when its mover takes its word back": func(t *testing.T, _ *handover.Mover, f *handover.Frozen) {
			if err := f.Release(); err != nil {
				t.Error(err)
			}
		},
		"when its mover is gone": func(t *testing.T, m *handover.Mover, _ *handover.Frozen) {
			handover.Abandon(m) // as the kernel does for a process that was killed
		},
		"when its mover hangs": func(*testing.T, *handover.Mover, *handover.Frozen) {
			time.Sleep(handover.Limit + time.Second)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				folder, s := t.TempDir(), new(store)
				stop := serve(t, folder, s)
				m := begin(t, folder, taken)
				f := freeze(t, m)
				end(t, m, f)
				eventually(t, "thawed", func() bool { return !s.frozen.Load() })
				if err := f.Switch(t.Context(), handover.Mark{}); name == "when its mover hangs" && !errors.Is(err, handover.ErrThawed) {
					t.Errorf("a switch that comes too late: %v", err)
				}
				if isMoved(t, folder) {
					t.Error("the links are elsewhere, and the store writes")
				}
				if err := m.Close(); err != nil && name != "when its mover is gone" {
					t.Error(err)
				}
				again := begin(t, folder, taken)
				g := freeze(t, again)
				if err := g.Switch(t.Context(), handover.Mark{}); err != nil || !isMoved(t, folder) {
					t.Errorf("the next mover: %v", err)
				}
				if err := again.Close(); err != nil {
					t.Error(err)
				}
				stop()
			})
		})
	}
}

func TestAStoreThatCannotFreezeIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		folder, s := t.TempDir(), &store{refuses: errors.New("the disk failed")}
		stop := serve(t, folder, s)
		m := begin(t, folder, taken)
		if _, err := m.Freeze(t.Context()); !errors.Is(err, handover.ErrThawed) {
			t.Errorf("freeze: %v", err)
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
		stop()
	})
}

func TestAFolderWithoutServer(t *testing.T) {
	folder := t.TempDir()
	m := begin(t, folder, free)
	f := freeze(t, m)
	if err := f.Switch(t.Context(), handover.Mark{To: "there"}); err != nil || !isMoved(t, folder) {
		t.Errorf("switch: %v", err)
	}
	if f.TakeLock() == nil {
		t.Error("the folder's lock is gone, and a server could start")
	}
	if err := m.Close(); err != nil {
		t.Error(err)
	}
}

func TestOneMoverAtATime(t *testing.T) {
	folder := t.TempDir()
	m := begin(t, folder, taken)
	if _, err := handover.Begin(folder, taken); !errors.Is(err, handover.ErrBusy) {
		t.Errorf("a second mover: %v", err)
	}
	if err := m.Close(); err != nil {
		t.Error(err)
	}
	if err := begin(t, folder, taken).Close(); err != nil {
		t.Error(err)
	}
}

// What a killed mover left behind freezes nobody.
func TestAnAskWithoutMoverIsIgnored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		folder, s := t.TempDir(), new(store)
		if err := os.WriteFile(filepath.Join(folder, "move.ask"), []byte(`{"token":"old"}`), 0o600); err != nil {
			t.Fatal(err)
		}
		stop := serve(t, folder, s)
		time.Sleep(time.Minute)
		if s.freezes.Load() != 0 {
			t.Error("the store was frozen")
		}
		stop()
	})
}

func TestAServerOfAnEarlierReleaseIsFoundOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := begin(t, t.TempDir(), taken)
		if _, err := m.Freeze(t.Context()); err == nil || errors.Is(err, handover.ErrThawed) {
			t.Errorf("nobody answered: %v", err)
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
}
