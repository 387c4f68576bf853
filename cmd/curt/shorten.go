package main

import (
	"context"
	"slices"
)

type shortenCmd struct {
	api

	URL []string `arg:"" optional:"" name:"url" help:"Long URLs. Without them, or with -, they are read from standard input: a URL on each line, or URL, tab, alias."`
	createFlags
	JSON bool `name:"json" help:"Print each link as JSON."`
}

// Run makes a link of each row. One line of output stands for each, in order: empty
// where none was made, which the error stream explains.
func (c *shortenCmd) Run(ctx context.Context, t terminal) error {
	template, err := c.template(c.URL)
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
