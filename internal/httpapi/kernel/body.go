package kernel

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"strings"
	"sync"

	"curt/internal/bodies"
)

const (
	// firstBuffer is the size that a create of an ordinary URL fits.
	firstBuffer = 2 << 10
	// mostBuffer is the size that a request for any link fits.
	mostBuffer = 64 << 10
)

// newBuffers returns a pool of body buffers.
func newBuffers() *sync.Pool {
	return &sync.Pool{New: func() any {
		b := make([]byte, 0, firstBuffer)
		return &b
	}}
}

// withBody reads the request's body, which must be JSON of a bounded size, and
// runs f while the buffer is lent.
func (c *Call) withBody(f func(*Call) error) error {
	if err := c.AdmitBody(); err != nil {
		return err
	}
	limit := c.op.MaxBodyBytes
	body := c.OpenBody()
	defer body.Close() // after the buffer went back
	lent, ok := c.kernel.buffers.Get().(*[]byte)
	if !ok {
		return errors.New("the pool of buffers holds something else")
	}
	defer func() {
		if cap(*lent) <= mostBuffer { // what grew beyond is not worth keeping
			c.kernel.buffers.Put(lent)
		}
	}()
	var err error
	if *lent, err = readAll(body, (*lent)[:0], limit); err != nil {
		return err
	}
	c.Body = *lent
	return f(c)
}

// AdmitBody is what is checked before a byte of the body is read.
func (c *Call) AdmitBody() error {
	if err := c.checkMedia(); err != nil {
		return err
	}
	if c.R.ContentLength > c.op.MaxBodyBytes {
		return TooBig(c.op.MaxBodyBytes)
	}
	if c.op.Affords == nil {
		return nil
	}
	return c.op.Affords(c)
}

// OpenBody returns the body, which counts towards the memory of all bodies until it is closed.
func (c *Call) OpenBody() *bodies.Body {
	return c.kernel.cfg.Bodies.Request(c.W, c.R, c.op.MaxBodyBytes)
}

// BodyError is what an error of a body's budget is to the client; else the error.
func BodyError(err error) error {
	switch {
	case errors.Is(err, bodies.ErrFull):
		return Refuse(kindBusy(), "request bodies use all of their memory; retry after as many seconds as the Retry-After header says")
	case errors.Is(err, bodies.ErrSlow):
		return Refuse(KindSlow(), "the body was sent too slowly while the server is busy")
	}
	return err
}

// TooBig refuses a body of more than limit bytes.
func TooBig(limit int64) error {
	return Refuse(kindTooBig(), fmt.Sprintf("the body must not exceed %d bytes", limit))
}

// readAll appends the body to buf, up to limit bytes.
func readAll(body io.Reader, buf []byte, limit int64) ([]byte, error) {
	for {
		if len(buf) == cap(buf) {
			buf = append(buf, 0)[:len(buf)]
		}
		n, err := body.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		if int64(len(buf)) > limit {
			return buf, TooBig(limit)
		}
		switch {
		case err == nil:
		case errors.Is(err, io.EOF):
			return buf, nil
		case errors.Is(err, os.ErrDeadlineExceeded):
			return buf, Refuse(KindSlow(), "timed out reading the body")
		case IsTooLarge(err):
			return buf, TooBig(limit)
		case errors.Is(err, bodies.ErrFull), errors.Is(err, bodies.ErrSlow):
			return buf, BodyError(err)
		default:
			return buf, BadField("", "the body is truncated or malformed")
		}
	}
}

// IsTooLarge reports whether a body ended because of its size.
func IsTooLarge(err error) bool {
	_, ok := errors.AsType[*http.MaxBytesError](err)
	return ok
}

// checkMedia wants JSON, as it is, in UTF-8. A browser sends that type to another
// site only after asking, and we never allow it.
func (c *Call) checkMedia() error {
	refuse := func(detail string) error { return Refuse(kindMedia(), detail) }
	types := c.R.Header["Content-Type"]
	if len(types) != 1 {
		return refuse("expected exactly one Content-Type: application/json")
	}
	if types[0] != "application/json" {
		media, params, err := mime.ParseMediaType(types[0])
		if err != nil || (media != "application/json" && c.op.RequestBody.Content[media] == nil) {
			return refuse("expected Content-Type: application/json")
		}
		if charset := params["charset"]; charset != "" && !strings.EqualFold(charset, "utf-8") {
			return refuse("expected UTF-8")
		}
	}
	if e := c.R.Header.Get("Content-Encoding"); e != "" && !strings.EqualFold(e, "identity") {
		return refuse("Content-Encoding is not supported")
	}
	return nil
}
