package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"curt/client"
)

type shortenCmd struct {
	api

	URL          []string      `arg:"" optional:"" name:"url" help:"Long URLs. Without them, or with -, they are read from standard input: a URL on each line, or URL, tab, alias."`
	Alias        string        `help:"Code of your choice, 3 to 64 of A-Z a-z 0-9 - _ (with one URL)."`
	Domain       string        `help:"Host to have the links on."`
	ExpiresIn    time.Duration `help:"How long the links live, such as 720h; default: for ever."`
	StartsAt     string        `help:"Before this date visitors do not find the links: 2026-01-31 (UTC) or 2026-01-31T12:00:00Z."`
	MaxClicks    uint64        `help:"How many clicks a link redirects; default: any. Known bots, HEAD requests and prefetches spend none."`
	FallbackURL  string        `name:"fallback-url" help:"Where they lead when they are expired or exhausted."`
	Redirect     int           `help:"301, 302, 307 or 308; default 302."`
	ForwardQuery bool          `help:"Add the visitor's query to the long URL."`
	NoIndex      *bool         `name:"noindex" negatable:"" help:"Ask search engines not to list the links; on unless switched off."`
	Cacheable    bool          `help:"Let a CDN answer for 60 s, uncounted."`
	Title        string        `help:"Title of the links."`
	Tag          []string      `help:"Tags, separated by commas."`
	Dedupe       *bool         `negatable:"" help:"Take an existing link that does the same. Input may then be sent again after a failure. Default: as the server does."`
	JSON         bool          `name:"json" help:"Print each link as JSON."`
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
		return b.run(ctx, given(c.URL, c.Alias))
	}
	b.progress = newProgress(t, size(t.in))
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // the reader ends with the command
	return b.run(ctx, input(ctx, t.in))
}

// template returns what all links of the command have in common.
func (c *shortenCmd) template() (client.NewLink, error) {
	if c.Alias != "" && (len(c.URL) != 1 || c.URL[0] == "-") {
		return client.NewLink{}, usageError(fmt.Sprintf("--alias goes with one URL, %d given; on standard input write URL, tab, alias", len(c.URL)))
	}
	life, err := seconds("--expires-in", c.ExpiresIn)
	if err != nil {
		return client.NewLink{}, err
	}
	l := client.NewLink{
		Domain: c.Domain, ExpiresIn: life, MaxClicks: c.MaxClicks, RedirectStatus: c.Redirect,
		Title: c.Title, Tags: c.Tag, Dedupe: c.Dedupe,
		FallbackURL: c.FallbackURL, ForwardQuery: c.ForwardQuery, NoIndex: c.NoIndex, Cacheable: c.Cacheable,
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
