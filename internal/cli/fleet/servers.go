package fleet

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// addressesOf resolves names, each of which may stand for several servers. A name that cannot be
// resolved stays: its server will be unavailable.
func addressesOf(ctx context.Context, servers []string) (all []string) {
	for _, s := range servers {
		host, port, err := net.SplitHostPort(s)
		if err != nil {
			all = append(all, s)
			continue
		}
		found, err := net.DefaultResolver.LookupHost(ctx, host)
		if err != nil || len(found) < 2 {
			all = append(all, s)
			continue
		}
		for _, one := range found {
			all = append(all, net.JoinHostPort(one, port))
		}
	}
	return all
}

// balancer requests the public address, as visitors do.
func (c *Status) balancer(ctx context.Context) []part {
	if c.BaseURL == "" {
		return nil
	}
	p := newPart("balancer", c.BaseURL, "public address")
	status, _, err := get(ctx, strings.TrimSuffix(c.BaseURL, "/")+"/readyz")
	switch {
	case err != nil:
		p.fail(oneLine(err))
	case status != http.StatusOK:
		p.fail(fmt.Sprintf("/readyz answers %d", status))
	}
	return []part{p}
}

// server reads health and metrics of one curt server.
func server(ctx context.Context, address string) part {
	p := newPart("server", address, "")
	status, body, err := get(ctx, "http://"+address+"/readyz")
	if err != nil {
		p.fail(oneLine(err))
		return p
	}
	var ready struct {
		Status string
		Role   []string
		Checks map[string]struct {
			Status, Detail string
			Required       bool
		}
	}
	if err := json.Unmarshal(body, &ready); err != nil {
		p.fail(fmt.Sprintf("/readyz answers %d: not a curt server", status))
		return p
	}
	p.Role = strings.Join(ready.Role, ",")
	if ready.Status != ok {
		p.fail("not ready: " + ready.Status)
	}
	for _, name := range slices.Sorted(maps.Keys(ready.Checks)) {
		switch check := ready.Checks[name]; {
		case check.Status == ok:
		case check.Required:
			p.fail(strings.TrimSpace(name + " " + check.Status + " " + check.Detail))
		default:
			p.warn(strings.TrimSpace(name + " " + check.Status + " " + check.Detail))
		}
	}
	if _, body, err = get(ctx, "http://"+address+"/metrics"); err != nil {
		p.fail(oneLine(err))
		return p
	}
	p.measure(string(body))
	return p
}

// shortRunway is what the alert CurtKeysRunOut says, in seconds.
const shortRunway = 30

// measure reads version and lag out of a server's metrics.
func (p *part) measure(metrics string) {
	for lines := bufio.NewScanner(strings.NewReader(metrics)); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), " ")
		number, _ := strconv.ParseFloat(value, 64) // NaN and what is no number are no lag
		age := time.Duration(number * float64(time.Second)).Round(time.Second)
		switch {
		case strings.HasPrefix(name, "curt_build_info{"):
			_, rest, _ := strings.Cut(name, `version="`)
			p.Version, _, _ = strings.Cut(rest, `"`)
		case name == "curt_worker_lag_events":
			p.Lag = fmt.Sprintf("%.0f clicks", number)
		case name == "curt_events_unsent_seconds":
			if p.Lag = age.String(); age > behind {
				p.warn("clicks were not sent for " + p.Lag)
			}
		case name == "curt_key_pool_runway_seconds" && number < shortRunway:
			p.warn("the pool of keys lasts " + age.String())
		case name == "curt_clicks_dropped_total" && number > 0:
			p.warn(fmt.Sprintf("%.0f clicks were dropped", number))
		}
	}
}

// maxBody is more than any server's metrics.
const maxBody = 4 << 20

// get sends one request on a connection of its own.
func get(ctx context.Context, address string) (status int, body []byte, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return 0, nil, err
	}
	answer, err := (&http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true, ResponseHeaderTimeout: limit / 2},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}).Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = answer.Body.Close() }()
	body, err = io.ReadAll(io.LimitReader(answer.Body, maxBody))
	return answer.StatusCode, body, err
}
