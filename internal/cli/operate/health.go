package operate

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"curt/internal/cli"
	"curt/internal/config"
)

// Health is for supervisors that can only run a command, as Docker does: the image
// holds no other program.
type Health struct {
	config.Flags
}

// healthBound is shorter than the timeout of any supervisor.
const healthBound = 3 * time.Second

// Run queries /readyz of the server with these settings on this machine. It prints nothing if
// the server is ready.
func (c *Health) Run(ctx context.Context) error {
	address := c.AdminListen // without TLS in any case
	if address == "" {
		if address = c.Listen; c.TLSCert != "" {
			return &config.Error{Setting: "CURT_ADMIN_LISTEN", Value: "", Want: "required here: curt health does not support TLS"}
		}
	}
	ctx, cancel := context.WithTimeout(ctx, healthBound)
	defer cancel()
	return askReady(ctx, address)
}

// askReady queries the address of a listen setting.
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
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // a redirect is not that server
	}).Do(q)
	if err != nil {
		return fmt.Errorf("%w: %w", cli.ErrNotReady, errors.Unwrap(err))
	}
	defer func() { _ = answer.Body.Close() }() // the status is enough
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%w: /readyz says %s", cli.ErrNotReady, answer.Status)
	}
	return nil
}
