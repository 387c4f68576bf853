package httpapi

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

// maxLinkBody bounds the body of one link in bytes: two URLs of 8,192, 32 tags
// and a title fit three times, even when JSON escapes each byte.
const maxLinkBody = 64 << 10

// firstBuffer is the size that a create of an ordinary URL fits.
const firstBuffer = 2 << 10

// newBuffers returns a pool of body buffers.
func newBuffers() *sync.Pool {
	return &sync.Pool{New: func() any {
		b := make([]byte, 0, firstBuffer)
		return &b
	}}
}

// withBody reads the request's body, which must be JSON of a bounded size, and
// runs f while the buffer is lent.
func (c *call) withBody(f func(*call) error) error {
	if err := c.checkMedia(); err != nil {
		return err
	}
	limit := c.op.MaxBodyBytes
	if c.r.ContentLength > limit {
		return tooBig(limit)
	}
	if err := c.afford(); err != nil {
		return err
	}
	body := c.api.bodies.Request(c.w, c.r, limit)
	defer body.Close() // after the buffer went back
	lent, ok := c.api.buffers.Get().(*[]byte)
	if !ok {
		return errors.New("the pool of buffers holds something else")
	}
	defer func() {
		if cap(*lent) <= maxLinkBody { // what grew beyond is not worth keeping
			c.api.buffers.Put(lent)
		}
	}()
	var err error
	if *lent, err = readAll(body, (*lent)[:0], limit); err != nil {
		return err
	}
	c.body = *lent
	return f(c)
}

// afford asks for the limits of the operation.
func (c *call) afford() error {
	if c.op.affords == nil {
		return nil
	}
	return c.op.affords(c)
}

func (c *call) affordCreate() error {
	key, err := idempotencyKey(c.r.Header)
	if err != nil {
		return err
	}
	return c.api.links.Afford(c.r.Context(), c.now, c.who, key)
}

func (c *call) affordReport() error { return c.api.review.MayReport(c.r.Context(), c.now, c.who) }

func (c *call) affordAppeal() error { return c.api.review.MayAppeal(c.r.Context(), c.now, c.who) }

// held is what an error of a body's budget is to the client; else the error.
func held(err error) error {
	switch {
	case errors.Is(err, bodies.ErrFull):
		return &refusal{kind: kindCrowded(), detail: "other requests send as much as the server can hold, try again as Retry-After says"}
	case errors.Is(err, bodies.ErrSlow):
		return &refusal{kind: kindSlow(), detail: "the body came slowly, and others waited for its room"}
	}
	return err
}

func tooBig(limit int64) error {
	return &refusal{kind: kindTooBig(), detail: fmt.Sprintf("the body may have at most %d bytes", limit)}
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
			return buf, tooBig(limit)
		}
		switch {
		case err == nil:
		case errors.Is(err, io.EOF):
			return buf, nil
		case errors.Is(err, os.ErrDeadlineExceeded):
			return buf, &refusal{kind: kindSlow(), detail: "the body did not arrive in time"}
		case isTooLarge(err):
			return buf, tooBig(limit)
		case errors.Is(err, bodies.ErrFull), errors.Is(err, bodies.ErrSlow):
			return buf, held(err)
		default:
			return buf, badField("", "the body ended early or is badly framed")
		}
	}
}

func isTooLarge(err error) bool {
	_, ok := errors.AsType[*http.MaxBytesError](err)
	return ok
}

// checkMedia wants JSON, as it is, in UTF-8. A browser sends that type to another
// site only after asking, and we never allow it.
func (c *call) checkMedia() error {
	refuse := func(detail string) error { return &refusal{kind: kindMedia(), detail: detail} }
	types := c.r.Header["Content-Type"]
	if len(types) != 1 {
		return refuse("send one Content-Type: application/json")
	}
	if types[0] != "application/json" {
		media, params, err := mime.ParseMediaType(types[0])
		if err != nil || (media != "application/json" && c.op.RequestBody.Content[media] == nil) {
			return refuse("send Content-Type: application/json")
		}
		if charset := params["charset"]; charset != "" && !strings.EqualFold(charset, "utf-8") {
			return refuse("send UTF-8")
		}
	}
	if e := c.r.Header.Get("Content-Encoding"); e != "" && !strings.EqualFold(e, "identity") {
		return refuse("send the body without Content-Encoding")
	}
	return nil
}
