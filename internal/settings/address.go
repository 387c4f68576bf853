package settings

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
	askLimit = 5 * time.Second // for the answer of another machine
	// expirySoon is when an automatic renewal should long have happened.
	expirySoon = 14 * 24 * time.Hour
)

// collector sends the receiver of traces a batch without a span.
func (r *reader) collector(ctx context.Context) {
	if on, err := telemetry.CheckTraces(os.Getenv); err != nil || !on {
		return // values has said so
	}
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	setting, err := telemetry.Probe(ctx, os.Getenv)
	switch {
	case err == nil:
		r.add(setting+": the trace receiver accepts traces", nil)
	case errors.Is(err, telemetry.ErrRefused):
		r.add("", &config.Error{Setting: setting, Value: config.Hidden, Want: err.Error()})
	default:
		r.doubt(aboutSettings, setting+": the trace receiver is unavailable: "+err.Error(), "start it or correct its address; until then traces are lost")
	}
}

// baseURL finds out whether visitors reach the server by the name that short links have.
func (r *reader) baseURL(ctx context.Context, cfg config.Config, held bool, now time.Time) {
	base, err := url.Parse(cfg.BaseURL)
	if err != nil || base.Hostname() == "" || r.told("CURT_BASE_URL") {
		return // it is unset, or values has said so
	}
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	_, err = net.DefaultResolver.LookupNetIP(ctx, "ip", base.Hostname())
	unknown, asked := errors.AsType[*net.DNSError](err)
	switch {
	case asked && unknown.IsNotFound:
		r.address("", "", &config.Error{Setting: "CURT_BASE_URL", Value: cfg.BaseURL, Want: base.Hostname() + " does not resolve: create a DNS record for this server"})
	case err != nil:
		r.address(base.Hostname()+" cannot be resolved: "+err.Error(), "fix the DNS resolver of this machine (/etc/resolv.conf); visitors may not be affected", nil)
	case !held:
		r.address(base.Hostname()+" resolves; whether it points here is checked while the server runs", "", nil)
	default:
		r.visit(ctx, cfg, base, now)
	}
}

func (r *reader) address(what, advice string, err error) {
	r.findings = append(r.findings, Checked{About: aboutAddresses, What: what, Advice: advice, Err: err})
}

// visit asks for the health of the server as a visitor would.
func (r *reader) visit(ctx context.Context, cfg config.Config, base *url.URL, now time.Time) {
	const advice = "point the name to this server or to its proxy; a machine behind its own proxy may be unable to reach itself"
	check := base.JoinPath("healthz").String()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, check, nil)
	if err != nil {
		return // values has said so
	}
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	answer, err := client.Do(req)
	if err != nil {
		if wrong := new(tls.CertificateVerificationError); errors.As(err, &wrong) {
			r.address("", "", &config.Error{
				Setting: "CURT_BASE_URL", Value: cfg.BaseURL,
				Want: fmt.Sprintf("browsers reject %s: %v: renew the certificate, or use its host in CURT_BASE_URL", base.Host, wrong.Err),
			})
			return
		}
		r.address(err.Error(), advice, nil)
		return
	}
	defer answer.Body.Close()        //nolint:errcheck // only read
	var said struct{ Status string } // the report of server/health.go
	text, err := io.ReadAll(io.LimitReader(answer.Body, 1<<10))
	if err == nil {
		err = json.Unmarshal(text, &said)
	}
	if err != nil || answer.StatusCode != http.StatusOK || said.Status != "ok" {
		r.address(fmt.Sprintf("%s returns %d, and not from curt", check, answer.StatusCode), advice, nil)
		return
	}
	if answer.TLS != nil && len(answer.TLS.PeerCertificates) > 0 {
		if until := answer.TLS.PeerCertificates[0].NotAfter; until.Sub(now) < expirySoon {
			r.address("the certificate of "+base.Host+" expires at "+until.Format(time.DateOnly), "renew the certificate", nil)
			return
		}
	}
	r.address(base.String()+" is served by curt", "", nil)
}
