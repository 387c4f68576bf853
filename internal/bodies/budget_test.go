package bodies_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"curt/internal/bodies"
)

const kib = 1 << 10

// small is a budget of a few kibibytes, in which bodies of up to 256 KiB meet soon.
func small() *bodies.Budget {
	return bodies.New(bodies.Config{Small: 8 * kib, Large: 256 * kib, SmallShare: 32 * kib, FirstShare: 128 * kib, LargeShare: 384 * kib, WorkShare: 256 * kib})
}

// client sends a body in pieces: each send waits until the piece was read.
type client struct {
	*io.PipeWriter

	body  *bodies.Body
	ended chan error // what Read ended with
	close chan struct{}
}

// begin has a goroutine read a body and holds what it has until leave is called, or
// the reading failed.
func begin(ctx context.Context, b *bodies.Budget, limit int64) *client {
	r, w := io.Pipe()
	stop := func() { _ = r.CloseWithError(os.ErrDeadlineExceeded) }
	c := &client{PipeWriter: w, body: b.Open(ctx, r, limit, stop), ended: make(chan error, 1), close: make(chan struct{})}
	go func() {
		_, err := io.Copy(io.Discard, c.body)
		_ = r.CloseWithError(errors.New("nobody reads")) // a send ends, too
		if err != nil {
			c.body.Close()
		}
		c.ended <- err
		<-c.close
		c.body.Close()
	}()
	return c
}

func (c *client) leave() { close(c.close) }

// send sends n bytes without waiting.
func (c *client) send(n int) {
	go func() { _, _ = c.Write(make([]byte, n)) }()
}

func TestABodyTakesWhatItHasSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := small()
		c := begin(t.Context(), b, 256*kib)
		synctest.Wait()
		if s, l := b.Taken(); s != 2*kib || l != 0 {
			t.Errorf("%d and %d bytes are taken before anything was sent", s, l)
		}
		c.send(5 * kib)
		synctest.Wait()
		if s, l := b.Taken(); s < 5*kib || s > 8*kib || l != 0 {
			t.Errorf("%d and %d bytes are taken by 5 KiB", s, l)
		}
		c.send(95 * kib)
		synctest.Wait()
		if s, l := b.Taken(); s != 0 || l < 100*kib || l > 164*kib {
			t.Errorf("%d and %d bytes are taken by 100 KiB", s, l)
		}
		_ = c.Close()
		if err := <-c.ended; err != nil {
			t.Error(err)
		}
		c.leave()
		synctest.Wait()
		if s, l := b.Taken(); s != 0 || l != 0 {
			t.Errorf("%d and %d bytes are taken by nobody", s, l)
		}
	})
}

// Who sends nearly all of a large body and then nothing keeps no small ones waiting, and large
// ones no longer than Slow: then the slowest are stopped, and no more than are in the way.
func TestUnfinishedBodiesGiveWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := small()
		var stuck []*client
		for range 40 {
			c := begin(t.Context(), b, 256*kib)
			c.send(256*kib - 1)
			stuck = append(stuck, c)
			synctest.Wait()
		}
		if _, l := b.Taken(); l > 384*kib || b.Waiting() == 0 {
			t.Errorf("%d bytes are taken of 384 KiB, %d wait", l, b.Waiting())
		}
		for range 100 {
			began := time.Now()
			body := b.Open(t.Context(), bytes.NewReader(make([]byte, 6*kib)), 8*kib, nil)
			if n, err := io.Copy(io.Discard, body); err != nil || n != 6*kib || time.Since(began) > 0 {
				t.Fatalf("a small body: %d bytes, %v, after %s", n, err, time.Since(began))
			}
			body.Close()
		}
		ended, slow := 0, 0
		for range 3600 {
			time.Sleep(time.Second)
			for _, c := range stuck {
				select {
				case err := <-c.ended:
					ended++
					if errors.Is(err, bodies.ErrSlow) {
						slow++
					} else if !errors.Is(err, bodies.ErrFull) {
						t.Errorf("ended with %v", err)
					}
					c.leave()
				default:
				}
			}
		}
		if slow == 0 || ended > 39 { // the last that is in nobody's way may go on
			t.Errorf("%d of 40 ended, %d of them because they were slow", ended, slow)
		}
		for _, c := range stuck {
			_ = c.Close()
		}
		synctest.Wait()
		for _, c := range stuck {
			select {
			case _ = <-c.ended: //nolint:staticcheck // whichever it is
				c.leave()
			default:
			}
		}
		synctest.Wait()
		if s, l := b.Taken(); s != 0 || l != 0 {
			t.Errorf("%d and %d bytes are taken by nobody", s, l)
		}
	})
}

// While large bodies hold all of the large share, small ones do not wait at all.
func TestSmallBodiesDoNotWaitForLargeOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := small()
		var large []*client
		for range 2 {
			c := begin(t.Context(), b, 256*kib)
			c.send(256*kib - 1)
			large = append(large, c)
			synctest.Wait()
		}
		if b.Waiting() != 1 {
			t.Errorf("%d wait", b.Waiting())
		}
		for range 100 {
			began := time.Now()
			body := b.Open(t.Context(), bytes.NewReader(make([]byte, 6*kib)), 8*kib, nil)
			if n, err := io.Copy(io.Discard, body); err != nil || n != 6*kib || time.Since(began) > 0 {
				t.Fatalf("a small body: %d bytes, %v, after %s", n, err, time.Since(began))
			}
			body.Close()
		}
		for _, c := range large {
			_ = c.Close()
			_ = <-c.ended //nolint:staticcheck // whichever it is
			c.leave()
			synctest.Wait()
		}
	})
}

// Forty bodies come at the same pace, each holding a part and waiting for more: all of them
// end, none after its patience.
func TestBodiesThatWaitForEachOtherEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := small()
		all := make([]*client, 40)
		for i := range all {
			all[i] = begin(t.Context(), b, 256*kib)
			go func(c *client) {
				for range 64 {
					if _, err := c.Write(make([]byte, 4*kib)); err != nil {
						return
					}
					time.Sleep(time.Millisecond)
				}
				_ = c.Close()
			}(all[i])
		}
		for i, c := range all {
			go func() {
				if err := <-c.ended; err != nil {
					t.Errorf("body %d: %v", i, err)
				}
				c.leave()
			}()
		}
		for range 100 * 40 {
			time.Sleep(time.Millisecond)
			if s, l := b.Taken(); s > 160*kib || l > 384*kib {
				t.Fatalf("%d and %d bytes are taken", s, l)
			}
		}
		synctest.Wait()
		if s, l := b.Taken(); s != 0 || l != 0 || b.Waiting() != 0 {
			t.Errorf("%d and %d bytes are taken, %d wait", s, l, b.Waiting())
		}
	})
}

// Bodies that announce much and send little take little, and are stopped when others need even
// that; those that send are not.
func TestWhatIsOnlyAnnouncedTakesNoRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := small()
		var idle []*client
		for range 20 {
			c := begin(t.Context(), b, 256*kib)
			c.send(10 * kib)
			idle = append(idle, c)
		}
		synctest.Wait()
		for range 5 {
			body := b.Open(t.Context(), bytes.NewReader(make([]byte, 256*kib)), 256*kib, nil)
			if n, err := io.Copy(io.Discard, body); err != nil || n != 256*kib {
				t.Fatalf("%d bytes, %v", n, err)
			}
			body.Close()
		}
		for _, c := range idle {
			_ = c.Close()
			_ = <-c.ended //nolint:staticcheck // whichever it is
			c.leave()
		}
		synctest.Wait()
		if s, l := b.Taken(); s != 0 || l != 0 || b.Waiting() != 0 {
			t.Errorf("%d and %d bytes are taken, %d wait", s, l, b.Waiting())
		}
	})
}

// A body that is slow is left alone while nobody waits.
func TestASlowBodyMayTakeItsTimeAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := small()
		c := begin(t.Context(), b, 256*kib)
		for range 20 {
			c.send(10 * kib)
			time.Sleep(time.Minute)
		}
		_ = c.Close()
		if err := <-c.ended; err != nil {
			t.Error(err)
		}
		c.leave()
	})
}

// Large bodies are worked on one after the other, small ones at any time.
func TestLargeBodiesAreWorkedOnInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := bodies.New(bodies.Config{Small: 8 * kib, Large: 256 * kib, SmallShare: 32 * kib, FirstShare: 128 * kib, LargeShare: 2048 * kib, WorkShare: 256 * kib})
		var bodiesRead []*bodies.Body
		for range 3 {
			body := b.Open(t.Context(), bytes.NewReader(make([]byte, 200*kib)), 256*kib, nil)
			if _, err := io.Copy(io.Discard, body); err != nil {
				t.Fatal(err)
			}
			bodiesRead = append(bodiesRead, body)
		}
		first, err := bodiesRead[0].Work()
		if err != nil {
			t.Fatal(err)
		}
		second := make(chan func(), 1)
		go func() {
			done, err := bodiesRead[1].Work()
			if err != nil {
				t.Error(err)
			}
			second <- done
		}()
		synctest.Wait()
		if len(second) != 0 || b.Waiting() != 1 {
			t.Errorf("two are worked on at once, %d wait", b.Waiting())
		}
		little := b.Open(t.Context(), bytes.NewReader(make([]byte, kib)), 256*kib, nil)
		_, _ = io.Copy(io.Discard, little)
		if done, err := little.Work(); err != nil {
			t.Error(err)
		} else {
			done()
		}
		first()
		synctest.Wait()
		if len(second) != 1 {
			t.Error("the second is not worked on after the first")
		}
		began := time.Now()
		if _, err := bodiesRead[2].Work(); !errors.Is(err, bodies.ErrFull) || time.Since(began) != bodies.DefaultPatience {
			t.Errorf("the third: %v after %s", err, time.Since(began))
		}
		for _, body := range append(bodiesRead, little) {
			body.Close()
		}
		if s, l := b.Taken(); s != 0 || l != 0 || b.Waiting() != 0 {
			t.Errorf("%d and %d bytes are taken, %d wait", s, l, b.Waiting())
		}
	})
}

// A client that goes waits no longer, and those behind it are served.
func TestWhoGoesWaitsNoLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := small()
		stuck := begin(t.Context(), b, 256*kib)
		stuck.send(256*kib - 1)
		synctest.Wait()
		another := begin(t.Context(), b, 256*kib)
		another.send(256*kib - 1)
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		gone := begin(ctx, b, 256*kib)
		gone.send(200 * kib)
		synctest.Wait()
		cancel()
		if err := <-gone.ended; !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
		gone.leave()
		for _, c := range []*client{stuck, another} {
			_ = c.CloseWithError(io.ErrUnexpectedEOF)
			if err := <-c.ended; !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("%v", err)
			}
			c.leave()
			synctest.Wait()
		}
		if s, l := b.Taken(); s != 0 || l != 0 || b.Waiting() != 0 {
			t.Errorf("%d and %d bytes are taken, %d wait", s, l, b.Waiting())
		}
	})
}

// Who reads beyond the limit sees that there is more, and takes nothing for it.
func TestTheByteBehindTheLimitIsSeen(t *testing.T) {
	b := small()
	body := b.Open(t.Context(), bytes.NewReader(make([]byte, 20*kib)), 8*kib, nil)
	defer body.Close()
	text, err := io.ReadAll(io.LimitReader(body, 8*kib+1))
	if s, l := b.Taken(); err != nil || len(text) != 8*kib+1 || s != 8*kib || l != 0 {
		t.Errorf("%d bytes, %v; %d and %d are taken", len(text), err, s, l)
	}
}
