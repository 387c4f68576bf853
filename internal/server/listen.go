package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"curt/internal/config"
	"curt/internal/lane"
)

// Bounds of one connection. The head's 12 KiB become 16 KiB, because net/http adds
// 4 KiB of its own.
const (
	headTimeout = 10 * time.Second
	idleTimeout = 75 * time.Second
	bodyTimeout = 60 * time.Second // where internal/connlimit does not bound the body itself
	maxHead     = 12 << 10
)

// lookupBound is how long the name of an address may take to look up: a start ends
// within a second.
const lookupBound = 500 * time.Millisecond

// listen binds an address. A name that cannot be found is a wrong setting; an address
// that is taken, or not this machine's yet, is not: it may be right a moment later.
func listen(ctx context.Context, setting, address string) (net.Listener, error) {
	ctx, cancel := context.WithTimeout(ctx, lookupBound)
	defer cancel()
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if errors.As(err, new(*net.DNSError)) || errors.As(err, new(*net.AddrError)) {
		return nil, &config.Error{Setting: setting, Value: address, Want: err.Error()}
	}
	if err != nil {
		return nil, fmt.Errorf("%s=%s: %w", setting, address, err)
	}
	return l, nil
}

// httpServer bounds what a client may do to a listener.
func httpServer(h http.Handler, log *slog.Logger, certs *tls.Config) *http.Server {
	return &http.Server{
		Handler:           h,
		TLSConfig:         certs,
		ReadHeaderTimeout: headTimeout,
		ReadTimeout:       bodyTimeout,
		WriteTimeout:      idleTimeout, // a client that reads slower than this has gone
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHead,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug), // what clients do wrong is no news
	}
}

// serve runs one listener until the server is shut down. Whether the lane is in front of it or
// not, requests of HTTP/1.x are refused alike.
func serve(h *http.Server, l net.Listener) error {
	strict := lane.Strict(l)
	if h.TLSConfig != nil {
		certs := h.TLSConfig.Clone()
		certs.NextProtos = []string{"h2", "http/1.1"}
		h.TLSConfig = certs // net/http speaks h2 where this names it
		strict = lane.StrictTLS(l, certs)
	}
	return fmt.Errorf("serve %s: %w", l.Addr(), h.Serve(strict))
}
