package shorten

import (
	"fmt"

	"curt/internal/link"
	"curt/internal/weburl"
)

// assess refuses a link that leads to where a blocklist says that none may, with a
// ListedError. It is asked behind the limit of creates, so that nobody can try many
// hosts against the lists, and about what a request sets or brings back to life: a link
// whose destination was listed later may still be changed in other respects.
func (c *Creator) assess(destination, fallback string) error {
	if c.lists == nil {
		return nil
	}
	for _, f := range []struct{ field, href string }{{"long_url", destination}, {"fallback_url", fallback}} {
		if f.href == "" {
			continue
		}
		u, err := weburl.Parse(f.href)
		if err != nil {
			return fmt.Errorf("assess a link: %w: %w", link.ErrInvalid, err)
		}
		if rule, listed := c.lists.Match(u); listed {
			c.metrics.listed.Inc()
			return &ListedError{Field: f.field, Rule: rule}
		}
	}
	return nil
}

// assessChange is assess for a change of before to after.
func (c *Creator) assessChange(before, after *link.Link) error {
	destination, fallback := after.Destination, after.Fallback
	if before.Status == after.Status || after.Status != link.Active { // it is not switched on
		if before.Destination == destination {
			destination = ""
		}
		if before.Fallback == fallback {
			fallback = ""
		}
	}
	return c.assess(destination, fallback)
}
