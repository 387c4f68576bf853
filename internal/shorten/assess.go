package shorten

import (
	"context"
	"fmt"
	"io"
	"net/netip"
	"time"

	"curt/internal/abuse"
	"curt/internal/auth"
	"curt/internal/link"
	"curt/internal/ratelimit"
	"curt/internal/weburl"
)

// court judges where links lead. It is safe for many goroutines.
type court struct {
	// Set once in New.
	lists     *abuse.Blocklists // nil = none
	judge     func(context.Context, time.Time, *abuse.Facts) abuse.Decision
	moderator Moderator
	journal   Journal
	country   func(netip.Addr) string
	random    io.Reader
	metrics   *metrics
}

// judgement is what is known about where a link leads, destination and fallback, and
// what that comes to.
type judgement struct {
	abuse.Decision

	field string // the URL that it is about, by its name in the API: the graver of two
}

// where are the URLs of a link that are judged; "" = not this one.
type where struct{ destination, fallback string }

func ofLink(l *link.Link) where { return where{l.Destination, l.Fallback} }

// assess judges where a link leads, from memory alone and within microseconds. What is
// banned or would be blocked is refused, with a BannedError, a ListedError or a
// HarmfulError. It is asked behind the limit of creates, so that nobody can try many URLs
// against bans, lists and signals.
func (c *court) assess(ctx context.Context, now time.Time, f abuse.Facts, to where) (judgement, error) {
	return c.weigh(ctx, now, f, to, func(j judgement, f *abuse.Facts) error {
		if ban, barred := c.moderator.Bars(f); barred {
			c.metrics.banned.Inc()
			return &BannedError{Field: j.field, Kind: ban.Entity.Kind}
		}
		if j.Safety >= link.Blocked {
			return c.refuse(j, f.URL)
		}
		return nil
	})
}

// weigh judges one URL after the other, lets each be refused, and returns the graver
// judgement.
func (c *court) weigh(ctx context.Context, now time.Time, f abuse.Facts, to where, refuse func(judgement, *abuse.Facts) error) (judgement, error) {
	worst := judgement{Decision: abuse.Decision{Safety: link.Clean}}
	for _, one := range []struct{ field, href string }{{"long_url", to.destination}, {"fallback_url", to.fallback}} {
		if one.href == "" {
			continue
		}
		var err error
		if f.URL, err = weburl.Parse(one.href); err != nil {
			return worst, fmt.Errorf("assess a link: %w: %w", link.ErrInvalid, err)
		}
		found := judgement{c.judge(ctx, now, &f), one.field}
		if err := refuse(found, &f); err != nil {
			return found, err
		}
		if worst.field == "" || found.Safety > worst.Safety || found.Safety == worst.Safety && found.Score > worst.Score {
			worst = found
		}
		f.Fallback = true
	}
	return worst, nil
}

// refuse returns the error of a URL that no link may lead to. It says which list has the
// host, because its operator chose to; never which signals saw what.
func (c *court) refuse(j judgement, u weburl.URL) error {
	if c.lists != nil {
		if rule, listed := c.lists.Match(u); listed {
			c.metrics.listed.Inc()
			return &ListedError{Field: j.field, Rule: rule}
		}
	}
	c.metrics.harmful.Inc()
	return &HarmfulError{Field: j.field}
}

// factsOf is what is known about who asks.
func (c *court) factsOf(who auth.Principal, workspace link.WorkspaceID) abuse.Facts {
	f := abuse.Facts{Workspace: workspace, Maker: who.KeyID, Network: ratelimit.ClientNetwork(who.Addr)}
	if who.Addr.IsValid() {
		f.Country = c.country(who.Addr)
	}
	return f
}

// byLists judges by blocklists alone: what services without Judge do.
func byLists(lists *abuse.Blocklists) func(context.Context, time.Time, *abuse.Facts) abuse.Decision {
	return func(_ context.Context, _ time.Time, f *abuse.Facts) abuse.Decision {
		if lists != nil {
			if _, listed := lists.Match(f.URL); listed {
				return abuse.Decision{Safety: link.Blocked, Score: 100}
			}
		}
		return abuse.Decision{Safety: link.Clean}
	}
}
