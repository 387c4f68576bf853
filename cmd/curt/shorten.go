package main

import (
	"context"
	"fmt"
	"slices"

	"curt.example/client"
	"curt/internal/config"
)

type shortenCmd struct {
	api

	URL          []string     `arg:"" optional:"" name:"url" help:"Long URLs. Without them, or with -, they are read from standard input: a URL on each line, or URL, tab, alias."`
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
	JSON         bool         `name:"json" help:"Print each link as JSON."`
}

// Run makes a link of each row. One line of output stands for each, in order: empty
// where none was made, which the error stream explains.
func (c *shortenCmd) Run(ctx context.Context, t terminal) error {
	template, err := c.template()
	if err != nil {
		return err
	}
	api, err := c.client()
	if err != nil {
		return err
	}
	fromInput := len(c.URL) == 0 || slices.Equal(c.URL, []string{"-"})
	if len(c.URL) == 0 && isTerminal(t.in) {
		return usageError("expected a URL, or - to type one on each line")
	}
	b := &bulk{api: api, template: template, json: c.JSON, t: t, patient: fromInput}
	if !fromInput {
		b.progress = &progress{}
		return b.run(ctx, given(c.URL, b.template.CustomAlias))
	}
	b.progress = newProgress(t, size(t.in))
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // the reader ends with the command
	return b.run(ctx, input(ctx, t.in))
}

// template returns what all links of the command have in common.
func (c *shortenCmd) template() (client.NewLink, error) {
	l := client.NewLink{
		Domain: c.Domain, Title: c.Title, Tags: c.Tag, Dedupe: c.Dedupe,
		FallbackURL: c.FallbackURL, ForwardQuery: c.ForwardQuery, NoIndex: c.NoIndex, Cacheable: c.Cacheable,
	}
	if err := c.given(&l); err != nil {
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
func (c *shortenCmd) given(l *client.NewLink) (err error) {
	if c.Alias != nil {
		switch {
		case len(c.URL) != 1 || c.URL[0] == "-":
			return usageError(fmt.Sprintf("--alias goes with one URL, %d given; on standard input write URL, tab, alias", len(c.URL)))
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
