package doctor

import (
	"context"
	"time"

	"curt/internal/clicks/recount"
)

// addresses tells of a name that nobody has given the server; one that is given was tried
// among the settings.
func (e *examination) addresses(context.Context) {
	if e.Config.BaseURL == "" {
		e.warn("addresses", "set CURT_BASE_URL to the base URL of short links", "CURT_BASE_URL is not set: short links only work on this machine")
	}
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
func (c *countsCheck) oneVisitor(r *recount.Result) {
	a := r.OneAddress
	long := a.Clicks == r.Events || r.Latest.Sub(a.Since) >= aloneFor
	if !long || a.Clicks < fewestAlone || a.Agents < fewestAgents {
		return
	}
	advice := "if there is a proxy, add its addresses to CURT_TRUSTED_PROXIES; if not, all visitors share one Internet gateway"
	if len(c.Config.TrustedProxies) > 0 {
		advice = "configure the proxy to send X-Forwarded-For or a PROXY header, and add its address to CURT_TRUSTED_PROXIES"
	}
	c.warn("addresses", advice, "all clicks since %s came from one address, with %d or more user agents: visitors cannot be distinguished and share its limits",
		a.Since.Format("2006-01-02 15:04"), a.Agents)
}
