package redis

import (
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestWhatArrivedIsHandedOut: in a process that is busy, who waits for an answer has it before
// handOut returns. Without it many have not, which is the control.
func TestWhatArrivedIsHandedOut(t *testing.T) {
	a, err := newArrivals()
	if err != nil {
		t.Fatal(err)
	}
	defer a.close()
	stop := busy()
	defer stop()
	// A reader may have been told, and stopped by the system before it said so: where that is
	// busy, one of many rounds has to show the difference.
	const tries = 30
	for end := time.Now().Add(3 * time.Minute); ; {
		late, control := lateAnswers(t, tries, a.handOut), lateAnswers(t, tries, runtime.Gosched)
		if late <= tries/10 && control > late {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%d of %d answers were not handed out, %d without it", late, tries, control)
		}
	}
}

// busy has goroutines wait to be run all the time, until what it returns is called.
func busy() (stop func()) {
	var over atomic.Bool
	var wg sync.WaitGroup
	for range 4 * runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for n := 0; !over.Load(); n++ {
				if n%1000 == 0 {
					runtime.Gosched()
				}
			}
		})
	}
	return func() { over.Store(true); wg.Wait() }
}

// lateAnswers counts the answers that had not reached their reader after then.
func lateAnswers(t *testing.T, tries int, then func()) (late int) {
	t.Helper()
	reader, writer := connected(t)
	for range tries {
		heard := make(chan struct{})
		ready := make(chan struct{})
		go func() {
			defer close(heard)
			close(ready)
			if _, err := reader.Read(make([]byte, 1)); err != nil {
				t.Error(err)
			}
		}()
		<-ready
		for range 10 { // until it waits, most likely
			runtime.Gosched()
		}
		if _, err := writer.Write([]byte{1}); err != nil {
			t.Fatal(err)
		}
		then()
		select {
		case <-heard:
		default:
			late++
			<-heard
		}
	}
	return late
}

// connected returns both ends of a connection.
func connected(t *testing.T) (reader, writer net.Conn) {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	if writer, err = (&net.Dialer{}).DialContext(t.Context(), "tcp", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if reader, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = reader.Close(), writer.Close() })
	return reader, writer
}
