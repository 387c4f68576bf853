package links

import (
	"fmt"
	"strconv"
	"strings"

	"curt.example/client"
	"curt/internal/cli"
	"curt/internal/config"
)

// createFlags has a flag for each field of a new link.
type createFlags struct {
	Alias        *string      `help:"Alias, 3 to 64 characters of A-Z a-z 0-9 - _ (with one URL)."`
	Domain       string       `help:"Domain of the links."`
	ExpiresIn    *config.Days `help:"Lifetime of the links, such as 30d or 12h, at least 1s. Default: unlimited."`
	StartsAt     string       `help:"When the links become active: 2026-01-31 (UTC) or 2026-01-31T12:00:00Z."`
	MaxClicks    *uint64      `help:"Click limit of each link, at least 1. Default: unlimited. Known bots, HEAD requests and prefetches do not count."`
	FallbackURL  string       `name:"fallback-url" help:"Destination of links that have expired or are exhausted."`
	Redirect     *int         `help:"301, 302, 307 or 308; default 302."`
	ForwardQuery bool         `help:"Append the visitor's query parameters to the long URL."`
	NoIndex      *bool        `name:"noindex" negatable:"" help:"Ask search engines not to index the links. Default: on."`
	Cacheable    bool         `help:"Allow a CDN to cache the redirect for 60 s; cached clicks are not counted."`
	Title        string       `help:"Title of the links."`
	Tag          []string     `help:"Tags, separated by commas."`
	Dedupe       *bool        `negatable:"" help:"Return an existing equivalent link, which makes retries after a failure safe. Default: set by the server."`
}

// changeFlags has a flag for each field that can change. nil: not given; "": clear.
type changeFlags struct {
	LongURL      *string      `name:"long-url" help:"Destination URL."`
	Title        *string      `help:"Title of the link."`
	Tag          *string      `help:"Tags, separated by commas; replaces all."`
	StartsAt     *string      `help:"When the link becomes active."`
	ExpiresAt    *string      `xor:"expiry" help:"When the link expires."`
	ExpiresIn    *config.Days `xor:"expiry" help:"Lifetime from now, such as 30d or 12h."`
	MaxClicks    *string      `help:"Click limit; known bots, HEAD requests and prefetches do not count."`
	FallbackURL  *string      `name:"fallback-url" help:"Destination when the link has expired or is exhausted."`
	Redirect     *string      `help:"301, 302, 307 or 308."`
	ForwardQuery *bool        `negatable:"" help:"Append the visitor's query parameters to the long URL."`
	NoIndex      *bool        `name:"noindex" negatable:"" help:"Ask search engines not to index the link."`
	Cacheable    *bool        `negatable:"" help:"Allow a CDN to cache the redirect for 60 s; cached clicks are not counted."`
	Disable      bool         `xor:"status" help:"Disable the link."`
	Enable       bool         `xor:"status" help:"Enable the link."`
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
		at, err := cli.ParseTime(c.StartsAt)
		if err != nil {
			return client.NewLink{}, cli.UsageError(fmt.Sprintf("--starts-at: %v", err))
		}
		l.StartsAt = &at
	}
	return l, nil
}

// given reads the flags whose empty value is an error: an empty variable of a script must not
// create another link than intended.
func (c *createFlags) given(urls []string, l *client.NewLink) (err error) {
	if c.Alias != nil {
		switch {
		case len(urls) != 1 || urls[0] == "-":
			return cli.UsageError(fmt.Sprintf("--alias requires exactly one URL, %d given; on standard input use URL, tab, alias", len(urls)))
		case *c.Alias == "":
			return cli.UsageError("--alias: must not be empty; omit the flag to generate a code")
		}
		l.CustomAlias = *c.Alias
	}
	if c.ExpiresIn != nil {
		if l.ExpiresIn, err = cli.Seconds("--expires-in", *c.ExpiresIn); err != nil {
			return err
		}
	}
	if c.MaxClicks != nil {
		if l.MaxClicks = *c.MaxClicks; l.MaxClicks == 0 {
			return cli.UsageError("--max-clicks 0: expected 1 or more; omit the flag for no limit")
		}
	}
	if c.Redirect != nil {
		if l.RedirectStatus = *c.Redirect; l.RedirectStatus == 0 {
			return cli.UsageError("--redirect 0: expected 301, 302, 307 or 308")
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
				return nil, cli.UsageError(fmt.Sprintf("%s: %v", f.flag, err))
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
		return nil, cli.UsageError("nothing to change; see curt links update --help")
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
	s, err := cli.Seconds("--expires-in", *c.ExpiresIn)
	patch["expires_in"] = s
	return err
}

func asText(v string) (any, error) { return v, nil }

func asCount(v string) (any, error) {
	n, err := strconv.ParseUint(v, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("%q is not a whole number", v)
	}
	return n, nil
}

func asMoment(v string) (any, error) { return cli.ParseTime(v) }
