package main

import (
	"context"
	"errors"
	"net"

	"github.com/valyala/fasthttp"
)

// fasthttp serves until ctx ends. The settings are those that the library's documentation gives
// for least work: header names as they are, no default Content-Type and no Server.
func (f *frontend) fasthttp(ctx context.Context, listener net.Listener) error {
	server := &fasthttp.Server{
		Handler: f.answer, NoDefaultServerHeader: true, NoDefaultContentType: true,
		DisableHeaderNamesNormalizing: true, DisablePreParseMultipartForm: true, Logger: silent{},
	}
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	listening(ctx, listener.Addr().String())
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return errors.Join(server.Shutdown(), <-done)
	}
}

func (f *frontend) answer(c *fasthttp.RequestCtx) {
	path := c.URI().PathOriginal()
	if len(path) > 1 && string(path[1:]) == "readyz" {
		return
	}
	found, known := f.table[string(path[min(1, len(path)):])]
	if !known {
		c.SetStatusCode(fasthttp.StatusNotFound)
		return
	}
	h := &c.Response.Header
	c.SetStatusCode(fasthttp.StatusFound)
	h.Set("Cache-Control", "private, max-age=0")
	h.Set("Location", found.destination)
	h.Set("X-Robots-Tag", "noindex")
	of := &c.Request.Header
	r := request{
		code: path[1:], query: c.URI().QueryString(), userAgent: of.Peek("User-Agent"), referrer: of.Peek("Referer"), language: of.Peek("Accept-Language"),
	}
	if tcp, ok := c.RemoteAddr().(*net.TCPAddr); ok {
		r.addr = tcp.AddrPort().Addr()
	}
	f.record(&r)
}

// silent keeps what the library says of bad requests out of the log of a bench.
type silent struct{}

func (silent) Printf(string, ...any) {}
