package doctor

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"curt/internal/clicks"
)

const (
	askLimit = 5 * time.Second
	// expirySoon is when an automatic renewal should long have happened.
	expirySoon = 14 * 24 * time.Hour
)

// addresses finds out whether visitors reach the server by the name that short links
// have.
func (e *examination) addresses(ctx context.Context) {
	base, err := url.Parse(e.Config.BaseURL)
	if e.Config.BaseURL == "" {
		e.warn("addresses", "set CURT_BASE_URL to what short links shall begin with", "CURT_BASE_URL is not set: short links work on this machine only")
		return
	}
	if err != nil || base.Hostname() == "" {
		return // settings has said so
	}
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	if _, err := net.DefaultResolver.LookupNetIP(ctx, "ip", base.Hostname()); err != nil {
		e.fail("addresses", "let the name lead to this server, or set CURT_BASE_URL", "%s cannot be found: %v", base.Hostname(), err)
		return
	}
	if !e.held {
		e.ok("addresses", "%s can be found; whether it leads here is seen while the server runs", base.Hostname())
		return
	}
	e.visit(ctx, base)
}

const (
	// aloneFor is how long all clicks must have come from one address to be remarkable;
	// shorter where the log holds no more. fewestAlone clicks of fewestAgents user agents
	// are not one person's, who tries out what was installed.
	aloneFor     = 24 * time.Hour
	fewestAlone  = 100
	fewestAgents = 10
)

// oneVisitor finds out whether visitors are told apart: behind a proxy that is not
// trusted they all have its address, and share its limits.
func (e *examination) oneVisitor(r *clicks.Recount) {
	a := r.Alone
	long := a.Clicks == r.Events || r.Latest.Sub(a.Since) >= aloneFor
	if !long || a.Clicks < fewestAlone || a.Agents < fewestAgents {
		return
	}
	advice := "if a proxy stands in front, name its addresses in CURT_TRUSTED_PROXIES; if not, all visitors share one way to the Internet"
	if len(e.Config.TrustedProxies) > 0 {
		advice = "let the proxy in front send X-Forwarded-For or a PROXY header, and CURT_TRUSTED_PROXIES hold the address that it comes from"
	}
	e.warn("addresses", advice, "all clicks since %s came from one address, with %d or more user agents: visitors are not told apart, and share its limits",
		a.Since.Format("2006-01-02 15:04"), a.Agents)
}

// visit asks for the health of the server as a visitor would.
func (e *examination) visit(ctx context.Context, base *url.URL) {
	const advice = "let the name lead to this server or to the proxy in front of it; a machine behind its own proxy may be unable to ask itself"
	check := base.JoinPath("healthz").String()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, check, nil)
	if err != nil {
		return // settings has said so
	}
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	answer, err := client.Do(req)
	if err != nil {
		if wrong := new(tls.CertificateVerificationError); errors.As(err, &wrong) {
			e.fail("addresses", "renew the certificate, or name its host in CURT_BASE_URL", "browsers refuse %s: %v", base.Host, wrong.Err)
			return
		}
		e.warn("addresses", advice, "%v", err)
		return
	}
	defer answer.Body.Close() //nolint:errcheck // only read
	var said struct{ Status string }
	text, err := io.ReadAll(io.LimitReader(answer.Body, 1<<10))
	if err == nil {
		err = json.Unmarshal(text, &said)
	}
	if err != nil || answer.StatusCode != http.StatusOK || said.Status != "ok" {
		e.warn("addresses", advice, "%s is answered %s, and not by a curt", check, fmt.Sprint(answer.StatusCode))
		return
	}
	if answer.TLS != nil && len(answer.TLS.PeerCertificates) > 0 {
		if until := answer.TLS.PeerCertificates[0].NotAfter; until.Sub(e.Now) < expirySoon {
			e.warn("addresses", "renew the certificate", "that of %s ends at %s", base.Host, until.Format(time.DateOnly))
			return
		}
	}
	e.ok("addresses", "%s is answered by a curt", base)
}
