package ship_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"curt/internal/clicks/clicklog"
	"curt/internal/clicks/clicklog/clicklogtest"
	"curt/internal/clicks/ship"
)

// slowSink answers when the test says so.
type slowSink struct {
	mu   sync.Mutex
	sent []uint64      // guarded by mu: first sequence of each block, in the order of sending
	done []func(error) // guarded by mu
}

func (s *slowSink) Send(_ context.Context, b *clicklog.Block, done func(error)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent, s.done = append(s.sent, b.First.Sequence), append(s.done, done)
	return nil
}

func (*slowSink) SendWatermark(context.Context, uint64, int64) error { return nil }

// answer answers the i-th Send.
func (s *slowSink) answer(i int, err error) {
	s.mu.Lock()
	done := s.done[i]
	s.mu.Unlock()
	done(err)
	synctest.Wait()
}

func (s *slowSink) order() string { s.mu.Lock(); defer s.mu.Unlock(); return fmt.Sprint(s.sent) }

// A block that was not delivered is sent again by the same Shipper, with those behind it;
// late answers about what was given up change nothing.
func TestABlockThatFailedIsSentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir, sink := t.TempDir(), new(slowSink)
		log := clicklogtest.Open(t, clicklog.Config{Dir: dir})
		shipper := ship.New(ship.Config{Log: log, Sink: sink, State: filepath.Join(dir, "shipped"), Instance: 7})
		for i := range uint64(3) {
			clicklogtest.AppendOne(t, log, i, clicklogtest.SomeDay())
		}
		if err := log.Sync(); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- shipper.Run(ctx) }()
		synctest.Wait()
		sink.answer(0, nil)
		sink.answer(1, errors.New("no answer"))
		if s := shipper.Stats(); s.Events != 1 || s.Failures != 1 || s.Err == nil {
			t.Errorf("after a failure: %+v", s)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := sink.order(); got != "[0 1 2 1 2]" {
			t.Fatalf("sent %s, want [0 1 2 1 2]", got)
		}
		sink.answer(2, errors.New("no answer either")) // of the run that was given up
		sink.answer(1, nil)
		if s := shipper.Stats(); s.Events != 1 || s.Failures != 1 || s.Err != nil {
			t.Errorf("after late answers: %+v", s)
		}
		sink.answer(4, nil) // not in order: the one before may still fail
		if s := shipper.Stats(); s.Events != 1 {
			t.Errorf("acknowledged past a block that is on its way: %+v", s)
		}
		sink.answer(3, nil)
		if s := shipper.Stats(); s.Events != 3 || s.Blocks != 3 || s.Acked != log.End() {
			t.Errorf("at the end: %+v", s)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// A position that cannot be written leaves nothing beside it.
func TestAPositionThatCannotBeKeptLeavesNoFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		state := filepath.Join(dir, "shipped")
		log := clicklogtest.Open(t, clicklog.Config{})
		shipper := ship.New(ship.Config{Log: log, Sink: new(slowSink), State: state, Instance: 7})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- shipper.Run(ctx) }()
		synctest.Wait() // it has written its first position
		if err := os.Remove(state); err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Join(state, "in the way"), 0o700); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		cancel()
		if err := <-done; err == nil {
			t.Error("the position was written over a folder")
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
			t.Errorf("%v are left, %v", left, err)
		}
	})
}

// mute takes blocks, and promises until it is told not to.
type mute struct {
	slowSink

	refuses bool // guarded by mu
}

func (m *mute) SendWatermark(context.Context, uint64, int64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.refuses {
		return errors.New("not now")
	}
	return nil
}

// A promise that cannot be given is a failure like one of sending: it is told, and tried
// again.
func TestAPromiseThatFailsIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := new(mute)
		shipper := ship.New(ship.Config{
			Log: clicklogtest.Open(t, clicklog.Config{}), Sink: sink, State: filepath.Join(t.TempDir(), "shipped"), Instance: 7,
		})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- shipper.Run(ctx) }()
		refuse := func(refuses bool) {
			sink.mu.Lock()
			sink.refuses = refuses
			sink.mu.Unlock()
			time.Sleep(time.Minute)
			synctest.Wait()
			if s := shipper.Stats(); (s.Err != nil) != refuses || (s.Failures > 0) != refuses && refuses {
				t.Errorf("while promises are refused %t: %+v", refuses, s)
			}
		}
		refuse(false)
		refuse(true)
		refuse(false)
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
