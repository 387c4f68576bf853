package load

import (
	"bytes"
	"fmt"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// send sends the stream's next request on an idle connection. An error ends both
// directions, so that the connection becomes readable and is replaced there.
func (e *engine) send(c *conn, due time.Duration) {
	c.busy, c.due = true, due
	if e.open(c.stream) {
		c.measured = e.phase != warming && due >= e.began
	} else if c.measured = e.phase == measuring; c.measured {
		e.unanswered++
	}
	c.out = e.plan.Streams[c.stream].Next(c.out[:0])
	if c.want = e.plan.Streams[c.stream].Want; e.plan.Streams[c.stream].Wants != nil {
		c.want = e.plan.Streams[c.stream].Wants()
	}
	if c.measured && e.open(c.stream) {
		e.results[c.stream].Late.Record(e.now() - due)
	}
	if c.failed = c.write(); c.failed != nil {
		_ = unix.Shutdown(c.fd, unix.SHUT_RDWR) // it may have ended already
	}
}

// readable takes what has come on a connection. Its error ends the run.
func (e *engine) readable(id int) error {
	c := e.conns[id]
	if !c.busy {
		return e.again(c, id, "the server closed an idle connection")
	}
	whole, err := false, c.failed
	if err == nil {
		whole, err = c.read()
	}
	if err != nil && c.mayRepeat() {
		return e.repeat(c, id)
	}
	if err != nil {
		return e.again(c, id, err.Error())
	}
	if !whole {
		return nil
	}
	c.kept = true
	e.answered(c, e.now())
	if c.head.closes {
		if err := e.reconnect(c, id); err != nil {
			return err
		}
	}
	e.next(c)
	return nil
}

// answered counts a whole answer.
func (e *engine) answered(c *conn, now time.Duration) {
	r := &e.results[c.stream]
	if c.head.status != c.want {
		if r.Example == "" {
			r.Example = string(c.in[:c.n])
		}
		e.wrong(c, "status "+strconv.Itoa(c.head.status))
		return
	}
	if e.phase == measuring {
		r.Answered++
	}
	if c.measured {
		r.Latency.Record(now - c.due)
		e.unanswered--
	}
}

// wrong counts what was not a right answer; the request ends with it.
func (e *engine) wrong(c *conn, what string) {
	e.results[c.stream].Wrong[what]++
	if c.measured {
		e.unanswered--
		c.measured = false
	}
}

// again replaces a connection that broke, and goes on.
func (e *engine) again(c *conn, id int, why string) error {
	if c.busy {
		e.wrong(c, why)
	}
	if err := e.reconnect(c, id); err != nil {
		return fmt.Errorf("after %s: %w", why, err)
	}
	if c.busy {
		e.next(c)
	}
	return nil
}

// mayRepeat reports whether a request that got no byte of an answer may be sent again on
// another connection, as browsers do: it changes nothing, and a server may close a kept
// connection just when a request comes (RFC 9112, 9.3.1). The second time is an error.
func (c *conn) mayRepeat() bool {
	return c.kept && c.n == 0 && bytes.HasPrefix(c.out, []byte("GET "))
}

func (e *engine) repeat(c *conn, id int) error {
	e.results[c.stream].Repeated++
	if err := e.reconnect(c, id); err != nil {
		return err
	}
	if c.failed = c.write(); c.failed != nil {
		_ = unix.Shutdown(c.fd, unix.SHUT_RDWR) // it may have ended already
	}
	return nil
}

func (e *engine) reconnect(c *conn, id int) error {
	if err := unix.Close(c.fd); err != nil {
		return fmt.Errorf("close a socket: %w", err)
	}
	c.fd, c.kept = -1, false
	return e.connect(c, id)
}

// next gives a connection that has its answer the request that comes next.
func (e *engine) next(c *conn) {
	c.busy = false
	s := &e.streams[c.stream]
	switch {
	case !e.open(c.stream) && e.phase != draining:
		e.send(c, e.now())
	case len(s.waiting) > 0:
		due := s.waiting[0]
		s.waiting = s.waiting[1:] // append moves what is left once it has grown
		e.send(c, due)
	default:
		s.idle = append(s.idle, c)
	}
}

// giveUp counts the requests of the window that nobody answered in time: those
// that wait for a connection, and those on their way.
func (e *engine) giveUp() {
	for i := range e.streams {
		for _, due := range e.streams[i].waiting {
			if due >= e.began {
				e.results[i].Wrong["never sent: no connection was free in time"]++
			}
		}
	}
	for _, c := range e.conns {
		if c.busy && c.measured {
			e.wrong(c, "no answer in time")
		}
	}
}
