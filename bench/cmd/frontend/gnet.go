package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/panjf2000/gnet/v2"
)

// gnet serves until ctx ends. The library has no HTTP: what reads heads here is the least that
// can answer the load of bench/cmd/lane, and refuses nothing that it should.
func (f *frontend) gnet(ctx context.Context, listen string) error {
	s := &events{ctx: ctx, frontend: f, booted: make(chan gnet.Engine, 1), listen: listen}
	done := make(chan error, 1)
	go func() { done <- gnet.Run(s, "tcp://"+listen, gnet.WithMulticore(false), gnet.WithTicker(true)) }()
	select {
	case err := <-done:
		return fmt.Errorf("gnet: %w", err)
	case <-ctx.Done():
	}
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	return errors.Join((<-s.booted).Stop(ending), <-done)
}

// events are called on the one loop of the engine.
type events struct {
	gnet.BuiltinEventEngine
	*frontend

	ctx    context.Context //nolint:containedctx // of the one start
	listen string
	booted chan gnet.Engine
	date   []byte
}

func (s *events) OnBoot(e gnet.Engine) gnet.Action {
	s.booted <- e
	s.tick()
	listening(s.ctx, s.listen)
	return gnet.None
}

func (s *events) tick() {
	s.date = time.Now().UTC().AppendFormat(s.date[:0], "Mon, 02 Jan 2006 15:04:05 GMT")
}

func (s *events) OnTick() (time.Duration, gnet.Action) {
	s.tick()
	return time.Second, gnet.None
}

func (s *events) OnOpen(c gnet.Conn) ([]byte, gnet.Action) {
	addr, err := netip.ParseAddrPort(c.RemoteAddr().String())
	if err != nil {
		return nil, gnet.Close
	}
	c.SetContext(&connection{addr: addr.Addr()})
	return nil, gnet.None
}

type connection struct {
	addr netip.Addr
	out  []byte
}

func (s *events) OnTraffic(c gnet.Conn) gnet.Action {
	in, err := c.Peek(-1)
	end := bytes.Index(in, []byte("\r\n\r\n"))
	if err != nil || end < 0 {
		return gnet.None
	}
	own, ok := c.Context().(*connection)
	if !ok {
		return gnet.Close
	}
	lines := in[:end]
	first, rest, _ := bytes.Cut(lines, []byte("\r\n"))
	_, target, _ := bytes.Cut(first, []byte(" /"))
	target, _, _ = bytes.Cut(target, []byte(" "))
	r := request{addr: own.addr}
	r.code, r.query, _ = bytes.Cut(target, []byte("?"))
	for len(rest) > 0 {
		var line []byte
		line, rest, _ = bytes.Cut(rest, []byte("\r\n"))
		switch name, value, _ := bytes.Cut(line, []byte(": ")); {
		case bytes.EqualFold(name, []byte("User-Agent")):
			r.userAgent = value
		case bytes.EqualFold(name, []byte("Referer")):
			r.referrer = value
		case bytes.EqualFold(name, []byte("Accept-Language")):
			r.language = value
		}
	}
	own.out = own.out[:0]
	switch found, known := s.table[string(r.code)]; {
	case known:
		own.out = append(append(append(own.out, found.head...), s.date...), found.tail...)
		s.record(&r)
	case string(r.code) == "readyz":
		own.out = append(own.out, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"...)
	default:
		own.out = append(own.out, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"...)
	}
	if _, err := c.Write(own.out); err != nil {
		return gnet.Close
	}
	if _, err := c.Discard(end + 4); err != nil {
		return gnet.Close
	}
	return gnet.None
}
