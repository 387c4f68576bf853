package transfer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"curt/internal/exchange"
	"curt/internal/link"
	"curt/internal/shorten"
)

// maxCodes bounds the codes that a Checker remembers; one that comes twice is noticed among these.
const maxCodes = 1 << 18

// Checker creates nothing: it finds what no server would take, as far as that can be said without
// one, or what no data folder would.
type Checker struct {
	folder bool
	tags   []string
	now    time.Time
	codes  map[string]int // the line of each

	// free returns why a code cannot be had; nil = that is not known.
	free func(ctx context.Context, domain, code string) error
}

var _ Sink = (*Checker)(nil)

// NewChecker returns a checker of rows for a server, or for a data folder.
func NewChecker(folder bool, tags []string, now time.Time) *Checker {
	return &Checker{folder: folder, tags: tags, now: now, codes: map[string]int{}}
}

// Put implements Sink.
func (c *Checker) Put(ctx context.Context, rows []exchange.Row, _ string) ([]Outcome, error) {
	outcomes := make([]Outcome, len(rows))
	for i := range rows {
		row, o := &rows[i], &outcomes[i]
		o.Line, o.Code = row.Line, row.Record.Code
		err := row.Err
		if err == nil && row.Record.Status == Deleted && !c.folder {
			o.Skipped = Deleted
			continue
		}
		if err == nil {
			err = c.check(ctx, &row.Record, row.Line)
		}
		if errors.Is(err, link.ErrUnavailable) {
			return nil, err
		}
		if err != nil {
			o.Error = err.Error()
		}
	}
	return outcomes, nil
}

func (c *Checker) check(ctx context.Context, r *exchange.Record, line int) error {
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
	if len(c.codes) < maxCodes {
		c.codes[key] = line
	}
	if c.free == nil {
		return nil
	}
	return c.free(ctx, r.Domain, r.Code)
}

// rules are those of a server.
func (c *Checker) rules(r *exchange.Record) error {
	req := request(r, "", c.tags)
	if err := shorten.CheckFields(c.now, &req.Fields); err != nil {
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

// request asks for the link of a row. What the row does not say is the server's choice.
func request(r *exchange.Record, domain string, tags []string) (req shorten.Request) {
	for name, value := range r.Values() {
		req.Set(name, value)
	}
	if req.LongURL = shorten.Value(r.LongURL); r.Indexed || r.IsWhole() {
		req.NoIndex = shorten.Value(r.NoIndex)
	}
	if all := append(append([]string{}, r.Tags...), tags...); len(all) > 0 {
		req.Tags = shorten.Value(all)
	}
	if r.Code != "" {
		req.Alias = shorten.Value(r.Code)
	}
	if r.Domain != "" {
		domain = r.Domain
	}
	if domain != "" {
		req.Domain = shorten.Value(domain)
	}
	return req
}
