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
)

// Bounds of one connection. The head's 12 KiB become 16 KiB, because net/http adds
// 4 KiB of its own.
const (
	headTimeout = 10 * time.Second
	idleTimeout = 75 * time.Second
	bodyTimeout = 60 * time.Second // for the whole request: the largest body is small
	maxHead     = 12 << 10
)

// listen binds an address.
func listen(ctx context.Context, setting, address string) (net.Listener, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("%s=%s: %w", setting, address, err)
	}
	return l, nil
}

// closeOnce closes a listener that whoever served it may have closed before.
func closeOnce(l net.Listener) func() error {
	return func() error {
		if err := l.Close(); !errors.Is(err, net.ErrClosed) {
			return err
		}
		return nil
	}
}

// certificate reads the listener's certificate; nil without one.
func certificate(cfg config.Config) (*tls.Config, error) {
	if cfg.TLSCert == "" {
		return nil, nil
	}
	pair, err := tls.LoadX509KeyPair(cfg.TLSCert, cfg.TLSKey)
	if err != nil {
		return nil, &config.Error{Setting: "CURT_TLS_CERT", Value: cfg.TLSCert, Want: err.Error()}
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}, nil
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

// serve runs one listener until the server is shut down.
func serve(h *http.Server, l net.Listener) error {
	var err error
	if h.TLSConfig != nil {
		err = h.ServeTLS(l, "", "")
	} else {
		err = h.Serve(l)
	}
	return fmt.Errorf("serve %s: %w", l.Addr(), err)
}
