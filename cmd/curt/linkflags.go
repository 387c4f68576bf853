package main

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"curt.example/client"
	"curt/internal/config"
	"curt/internal/exchange"
)

// createFlags has a flag for each field of a new link.
type createFlags struct {
	Alias        *string      `help:"Code of your choice, 3 to 64 of A-Z a-z 0-9 - _ (with one URL)."`
	Domain       string       `help:"Host to have the links on."`
	ExpiresIn    *config.Days `help:"How long the links live, such as 30d or 12h, 1s or more; default: for ever."`
	StartsAt     string       `help:"Before this date visitors do not find the links: 2026-01-31 (UTC) or 2026-01-31T12:00:00Z."`
	MaxClicks    *uint64      `help:"How many clicks a link redirects, 1 or more; default: any. Known bots, HEAD requests and prefetches spend none."`
	FallbackURL  string       `name:"fallback-url" help:"Where they lead when they are expired or exhausted."`
	Redirect     *int         `help:"301, 302, 307 or 308; default 302."`
	ForwardQuery bool         `help:"Add the visitor's query to the long URL."`
	NoIndex      *bool        `name:"noindex" negatable:"" help:"Ask search engines not to list the links; on unless switched off."`
	Cacheable    bool         `help:"Let a CDN answer for 60 s, uncounted."`
	Title        string       `help:"Title of the links."`
	Tag          []string     `help:"Tags, separated by commas."`
	Dedupe       *bool        `negatable:"" help:"Take an existing link that does the same. Input may then be sent again after a failure. Default: as the server does."`
}

// changeFlags has a flag for each field that can change. nil: not given; "": clear.
type changeFlags struct {
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
}

// template returns what all links of the command have in common.
func (c *createFlags) template(urls []string) (client.NewLink, error) {
	l := client.NewLink{
		Domain: c.Domain, Title: c.Title, Tags: c.Tag, Dedupe: c.Dedupe,
		FallbackURL: c.FallbackURL, ForwardQuery: c.ForwardQuery, NoIndex: c.NoIndex, Cacheable: c.Cacheable,
	}
	if err := c.given(urls, &l); err != nil {
		return client.NewLink{}, err
	}
	if c.StartsAt != "" {
		at, err := moment(c.StartsAt)
		if err != nil {
			return client.NewLink{}, usageError(fmt.Sprintf("--starts-at: %v", err))
		}
		l.StartsAt = &at
	}
	return l, nil
}

// given reads the flags that nobody gives to say nothing: an empty variable of a script
// must not make another link than was meant.
func (c *createFlags) given(urls []string, l *client.NewLink) (err error) {
	if c.Alias != nil {
		switch {
		case len(urls) != 1 || urls[0] == "-":
			return usageError(fmt.Sprintf("--alias goes with one URL, %d given; on standard input write URL, tab, alias", len(urls)))
		case *c.Alias == "":
			return usageError("--alias: want a code, this one is empty; without the flag the server makes one")
		}
		l.CustomAlias = *c.Alias
	}
	if c.ExpiresIn != nil {
		if l.ExpiresIn, err = seconds("--expires-in", *c.ExpiresIn); err != nil {
			return err
		}
	}
	if c.MaxClicks != nil {
		if l.MaxClicks = *c.MaxClicks; l.MaxClicks == 0 {
			return usageError("--max-clicks 0: want 1 or more; without the flag a link redirects as often as it is clicked")
		}
	}
	if c.Redirect != nil {
		if l.RedirectStatus = *c.Redirect; l.RedirectStatus == 0 {
			return usageError("--redirect 0: want 301, 302, 307 or 308")
		}
	}
	return nil
}

// patch returns the fields to change by their JSON names.
func (c *changeFlags) patch() (map[string]any, error) {
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
	for name, value := range map[string]*bool{
		"forward_query": c.ForwardQuery,
		"noindex":       c.NoIndex,
		"cacheable":     c.Cacheable,
	} {
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

func (c *changeFlags) life(patch map[string]any) error {
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

// newLinkOf asks for the link of a file, whose members have the names of the API.
func newLinkOf(record *exchange.Record) (l client.NewLink, err error) {
	text, err := json.Marshal(record)
	if err == nil {
		err = json.Unmarshal(text, &l)
	}
	l.CustomAlias, l.NoIndex = record.Code, nil
	if record.NoIndex || record.Indexed || record.IsWhole() { // elsewhere, what is not said is the server's choice
		l.NoIndex = new(record.NoIndex)
	}
	return l, err
}
