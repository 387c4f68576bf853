package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"curt/internal/config"
)

// healthCmd is for supervisors that can only run a command, as Docker does: the image
// holds no other program.
type healthCmd struct {
	config.Flags
}

// errNotReady ends the command when the server wants no traffic, or is not there.
var errNotReady = errors.New("not ready")

// healthBound is shorter than any supervisor waits.
const healthBound = 3 * time.Second

// Run asks the server of these settings, on this machine, whether it wants traffic. It
// prints nothing when it does.
func (c *healthCmd) Run(ctx context.Context) error {
	address := c.AdminListen // which never speaks TLS
	if address == "" {
		if address = c.Listen; c.TLSCert != "" {
			return &config.Error{Setting: "CURT_ADMIN_LISTEN", Value: "", Want: "set it: curt health does not speak TLS"}
		}
	}
	ctx, cancel := context.WithTimeout(ctx, healthBound)
	defer cancel()
	return askReady(ctx, address)
}

// askReady asks an address that a server was told to listen on.
func askReady(ctx context.Context, address string) error {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return &config.Error{Setting: "CURT_ADMIN_LISTEN", Value: address, Want: err.Error()}
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "localhost" // every address of this machine
	}
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+net.JoinHostPort(host, port)+"/readyz", nil)
	if err != nil {
		return err
	}
	answer, err := (&http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // what leads elsewhere is not that server
	}).Do(q)
	if err != nil {
		return fmt.Errorf("%w: %w", errNotReady, errors.Unwrap(err))
	}
	defer func() { _ = answer.Body.Close() }() // nobody reads it
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%w: /readyz says %s", errNotReady, answer.Status)
	}
	return nil
}
