package connlimit

import (
	"errors"
	"io"
	"net/http"
	"time"
)

// body is a body whose client must keep up BodyRate. It bounds the time that reads wait,
// so that a client is not punished for a server that is slow to read.
//
// HTTP/1 has deadlines that can be moved, and the one of the last read holds while net/http
// throws away what its handler left unread. HTTP/2 cannot be read on after a deadline has
// passed, whoever waited for whom; so there a timer that runs during a read sets it.
type body struct {
	io.ReadCloser
	of       *Progress
	control  *http.ResponseController
	left     time.Duration // of waiting
	deadline time.Time     // as it was set; HTTP/1
	timer    *time.Timer   // nil = HTTP/1
	read     bool          // it was read before
	over     bool
}

func newBody(p *Progress, w http.ResponseWriter, r *http.Request, multiplexed bool) *body {
	b := &body{ReadCloser: r.Body, of: p, control: http.NewResponseController(w), left: BodyGrace}
	if multiplexed {
		b.timer = time.AfterFunc(time.Hour, func() { b.until(time.Unix(1, 0)) })
		b.timer.Stop()
	} else {
		b.until(time.Now().Add(b.left))
	}
	return b
}

// until sets the deadline. It fails where the stream is over, or a test has no connection.
func (b *body) until(t time.Time) {
	b.deadline = t
	_ = b.control.SetReadDeadline(t)
}

// Read waits for the client.
func (b *body) Read(p []byte) (int, error) {
	if b.over {
		return b.ReadCloser.Read(p)
	}
	began := time.Now()
	b.wait(began)
	n, err := b.ReadCloser.Read(p)
	b.resume()
	b.left = min(b.left-time.Since(began)+time.Duration(n)*time.Second/BodyRate, bodySaved)
	b.of.earn(n)
	if err != nil {
		b.end(errors.Is(err, io.EOF))
	}
	return n, err
}

func (b *body) wait(now time.Time) {
	if b.timer == nil {
		until := now.Add(b.left)
		if d := until.Sub(b.deadline); d > time.Second || d < 0 || b.left < 2*time.Second {
			b.until(until)
		}
		return
	}
	if !b.read {
		b.read = true
		_ = b.control.SetReadDeadline(time.Time{}) // the server's own, for the whole body
	}
	b.of.waits()
	b.timer.Reset(max(b.left, 0))
}

func (b *body) resume() {
	if b.timer != nil {
		b.timer.Stop()
		b.of.Resume()
	}
}

// end follows the last read; what was bounded is no longer, once all has come.
func (b *body) end(whole bool) {
	b.over = true
	if whole && b.timer == nil {
		b.of.body.Store(false)
		b.until(time.Time{})
	}
}

// leave follows the handler.
func (b *body) leave() {
	if b.timer != nil {
		b.timer.Stop()
	}
}
