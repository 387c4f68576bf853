package server

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
	"os"
	"time"

	"curt/internal/config"
	"curt/internal/telemetry"
)

const (
	askLimit = 5 * time.Second // beyond it nobody waits for another machine
	// expirySoon is when an automatic renewal should long have happened.
	expirySoon = 14 * 24 * time.Hour
)

// collector sends the receiver of traces a batch without a span.
func (c *checker) collector(ctx context.Context) {
	if on, err := telemetry.CheckTraces(os.Getenv); err != nil || !on {
		return // values has said so
	}
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	setting, err := telemetry.Probe(ctx, os.Getenv)
	switch {
	case err == nil:
		c.add(setting+": the receiver of traces takes them", nil)
	case errors.Is(err, telemetry.ErrRefused):
		c.add("", &config.Error{Setting: setting, Value: config.Hidden, Want: err.Error()})
	default:
		c.doubt(aboutSettings, setting+": the receiver of traces does not answer: "+err.Error(), "start it, or correct its address: until then traces are lost")
	}
}

// baseURL finds out whether visitors reach the server by the name that short links have.
func (c *checker) baseURL(ctx context.Context, cfg config.Config, held bool, now time.Time) {
	base, err := url.Parse(cfg.BaseURL)
	if err != nil || base.Hostname() == "" || c.told("CURT_BASE_URL") {
		return // it is unset, or values has said so
	}
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	_, err = net.DefaultResolver.LookupNetIP(ctx, "ip", base.Hostname())
	unknown, asked := errors.AsType[*net.DNSError](err)
	switch {
	case asked && unknown.IsNotFound:
		c.address("", "", &config.Error{Setting: "CURT_BASE_URL", Value: cfg.BaseURL, Want: base.Hostname() + " cannot be found: let the name lead to this server"})
	case err != nil:
		c.address(base.Hostname()+" cannot be looked for: "+err.Error(), "mend the resolver of this machine (/etc/resolv.conf); visitors may not be concerned", nil)
	case !held:
		c.address(base.Hostname()+" can be found; whether it leads here is seen while the server runs", "", nil)
	default:
		c.visit(ctx, cfg, base, now)
	}
}

func (c *checker) address(what, advice string, err error) {
	c.all = append(c.all, Checked{aboutAddresses, what, advice, err})
}

// visit asks for the health of the server as a visitor would.
func (c *checker) visit(ctx context.Context, cfg config.Config, base *url.URL, now time.Time) {
	const advice = "let the name lead to this server or to the proxy in front of it; a machine behind its own proxy may be unable to ask itself"
	check := base.JoinPath("healthz").String()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, check, nil)
	if err != nil {
		return // values has said so
	}
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	answer, err := client.Do(req)
	if err != nil {
		if wrong := new(tls.CertificateVerificationError); errors.As(err, &wrong) {
			c.address("", "", &config.Error{
				Setting: "CURT_BASE_URL", Value: cfg.BaseURL,
				Want: fmt.Sprintf("browsers refuse %s: %v: renew the certificate, or name its host in CURT_BASE_URL", base.Host, wrong.Err),
			})
			return
		}
		c.address(err.Error(), advice, nil)
		return
	}
	defer answer.Body.Close() //nolint:errcheck // only read
	var said report
	text, err := io.ReadAll(io.LimitReader(answer.Body, 1<<10))
	if err == nil {
		err = json.Unmarshal(text, &said)
	}
	if err != nil || answer.StatusCode != http.StatusOK || said.Status != healthy {
		c.address(fmt.Sprintf("%s is answered %d, and not by a curt", check, answer.StatusCode), advice, nil)
		return
	}
	if answer.TLS != nil && len(answer.TLS.PeerCertificates) > 0 {
		if until := answer.TLS.PeerCertificates[0].NotAfter; until.Sub(now) < expirySoon {
			c.address("the certificate of "+base.Host+" ends at "+until.Format(time.DateOnly), "renew the certificate", nil)
			return
		}
	}
	c.address(base.String()+" is answered by a curt", "", nil)
}
