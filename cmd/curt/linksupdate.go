package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"curt.example/client"
	"curt/internal/config"
)

// linksUpdateCmd has a flag for each field that can change. nil: not given; "": clear.
type linksUpdateCmd struct {
	api
	oneLink

	LongURL      *string      `name:"long-url" help:"Where the link leads."`
	Title        *string      `help:"Title of the link."`
	Tag          *string      `help:"All its tags, separated by commas."`
	StartsAt     *string      `help:"Before this date visitors do not find it."`
	ExpiresAt    *string      `xor:"expiry" help:"From this date on it is dead."`
	ExpiresIn    *config.Days `xor:"expiry" help:"How long it lives from now, such as 30d or 12h."`
	MaxClicks    *string      `help:"How many clicks it redirects; known bots, HEAD requests and prefetches spend none."`
	FallbackURL  *string      `name:"fallback-url" help:"Where it leads when it is expired or exhausted."`
	Redirect     *string      `help:"301, 302, 307 or 308."`
	ForwardQuery *bool        `negatable:"" help:"Add the visitor's query to the long URL."`
	NoIndex      *bool        `name:"noindex" negatable:"" help:"Ask search engines not to list it."`
	Cacheable    *bool        `negatable:"" help:"Let a CDN answer for 60 s, uncounted."`
	Disable      bool         `xor:"status" help:"Switch it off."`
	Enable       bool         `xor:"status" help:"Switch it on."`
	IfVersion    *uint64      `help:"Only while it has this version."`
	JSON         bool         `name:"json" help:"Print the link as JSON."`
}

// Run changes what is named and prints the link as it is then.
func (c *linksUpdateCmd) Run(ctx context.Context, t terminal) error {
	code, domain, err := target(c.Code)
	if err != nil {
		return err
	}
	patch, err := c.patch()
	if err != nil {
		return err
	}
	api, err := c.client()
	if err != nil {
		return err
	}
	options := []client.LinkOption{client.OnDomain(domain)}
	if c.IfVersion != nil {
		options = append(options, client.IfVersion(*c.IfVersion))
	}
	l, err := api.Update(ctx, code, patch, options...)
	if err != nil {
		return fmt.Errorf("update %s: %w", code, err)
	}
	return printLink(t, c.JSON, &l)
}

// patch returns the fields to change by their JSON names.
func (c *linksUpdateCmd) patch() (map[string]any, error) {
	patch := map[string]any{}
	for _, f := range []struct {
		name, flag string
		value      *string
		read       func(string) (any, error)
	}{
		{"long_url", "--long-url", c.LongURL, asText},
		{"title", "--title", c.Title, asText},
		{"tags", "--tag", c.Tag, func(v string) (any, error) { return strings.Split(v, ","), nil }},
		{"starts_at", "--starts-at", c.StartsAt, asMoment},
		{"expires_at", "--expires-at", c.ExpiresAt, asMoment},
		{"max_clicks", "--max-clicks", c.MaxClicks, asCount},
		{"fallback_url", "--fallback-url", c.FallbackURL, asText},
		{"redirect_status", "--redirect", c.Redirect, asCount},
	} {
		switch {
		case f.value == nil:
		case *f.value == "":
			patch[f.name] = nil
		default:
			value, err := f.read(*f.value)
			if err != nil {
				return nil, usageError(fmt.Sprintf("%s: %v", f.flag, err))
			}
			patch[f.name] = value
		}
	}
	for name, value := range map[string]*bool{"forward_query": c.ForwardQuery, "noindex": c.NoIndex, "cacheable": c.Cacheable} {
		if value != nil {
			patch[name] = *value
		}
	}
	if err := c.life(patch); err != nil {
		return nil, err
	}
	if len(patch) == 0 {
		return nil, usageError("nothing to change; curt links update --help lists what can be")
	}
	return patch, nil
}

func (c *linksUpdateCmd) life(patch map[string]any) error {
	switch {
	case c.Disable:
		patch["status"] = "disabled"
	case c.Enable:
		patch["status"] = "active"
	}
	if c.ExpiresIn == nil {
		return nil
	}
	s, err := seconds("--expires-in", *c.ExpiresIn)
	patch["expires_in"] = s
	return err
}

func asText(v string) (any, error) { return v, nil }

func asCount(v string) (any, error) {
	n, err := strconv.ParseUint(v, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("%q is no whole number", v)
	}
	return n, nil
}

func asMoment(v string) (any, error) { return moment(v) }

// moment reads a date of a flag: RFC 3339, or a day, which is meant in UTC.
func moment(text string) (time.Time, error) {
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04Z07:00", time.DateOnly} {
		if at, err := time.Parse(layout, text); err == nil {
			return at, nil
		}
	}
	return time.Time{}, fmt.Errorf("%q is no date; want 2026-01-31 or 2026-01-31T12:00:00Z", text)
}

// seconds reads how long something lives, which the API takes in whole seconds.
func seconds(flag string, lifetime config.Days) (int64, error) {
	d := time.Duration(lifetime)
	if d%time.Second != 0 || d <= 0 {
		return 0, usageError(fmt.Sprintf("%s %s: want whole seconds, 1s or more", flag, d))
	}
	return int64(d / time.Second), nil
}
