package main

import (
	"context"
	"fmt"
	"time"

	"curt/internal/exchange"
	"curt/internal/shorten"
)

// checker makes nothing: it finds what no server would take, as far as that can be said
// without one, or what no data folder would.
type checker struct {
	folder bool // --data
	tags   []string
	now    time.Time
	codes  map[string]int
}

func newChecker(folder bool, tags []string, now time.Time) *checker {
	return &checker{folder, tags, now, map[string]int{}}
}

func (c *checker) close() error { return nil }

func (c *checker) put(_ context.Context, rows []exchange.Row, _ string) ([]outcome, error) {
	outcomes := make([]outcome, len(rows))
	for i := range rows {
		row, o := &rows[i], &outcomes[i]
		o.Line, o.Code = row.Line, row.Record.Code
		err := row.Err
		if err == nil && row.Record.Status == "deleted" && !c.folder {
			o.Skipped = "deleted"
			continue
		}
		if err == nil {
			err = c.check(&row.Record, row.Line)
		}
		if err != nil {
			o.Error = err.Error()
		}
	}
	return outcomes, nil
}

func (c *checker) check(r *exchange.Record, line int) error {
	if c.folder {
		if _, err := whole(r); err != nil {
			return err
		}
	} else if err := c.rules(r); err != nil {
		return err
	}
	if r.Code == "" {
		return nil
	}
	key := r.Domain + "/" + r.Code
	if first, twice := c.codes[key]; twice {
		return fmt.Errorf("short_code: %s stands on line %d already", r.Code, first)
	}
	c.codes[key] = line
	return nil
}

// rules are those of a server. What a record has not is not asked for (newLink).
func (c *checker) rules(r *exchange.Record) error {
	f := shorten.Fields{LongURL: shorten.Value(r.LongURL)}
	for name, value := range r.Values() {
		f.Set(name, value)
	}
	if all := append(append([]string{}, r.Tags...), c.tags...); len(all) > 0 {
		f.Tags = shorten.Value(all)
	}
	if err := shorten.CheckFields(c.now, &f); err != nil {
		return err
	}
	if r.Code == "" {
		return nil
	}
	if err := shorten.CheckAlias(r.Code); err != nil {
		return fmt.Errorf("short_code: %w", err)
	}
	return nil
}
