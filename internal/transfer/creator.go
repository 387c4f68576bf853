package transfer

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"curt/internal/auth"
	"curt/internal/exchange"
	"curt/internal/job"
	"curt/internal/link"
	"curt/internal/shorten"
	"curt/internal/shorten/create"
	"curt/internal/shorten/linkservice"
)

// Creator is a server that creates links for jobs.
type Creator struct {
	Links    *linkservice.Service
	ShortURL func(link.Key) string
	// Explain returns what the API says about an error: a text, and an HTTP status.
	Explain func(error) (text string, status int)
	Now     func() time.Time
}

// creating is a Sink of one job.
type creating struct {
	*Creator

	who     func(context.Context) (auth.Principal, error) // asked for each batch
	owner   auth.Principal                                // of the job, without rights
	options Options
}

// Put implements Sink. A refused limit is a shorten.LimitedError or an InvalidError of links. Where
// the key was revoked nothing is written: the outcomes beside the error are those of an earlier Put.
func (c *creating) Put(ctx context.Context, rows []exchange.Row, key string) ([]Outcome, error) {
	who, err := c.who(ctx)
	revoked, ended := errors.AsType[*job.FailError](err)
	if err != nil && !ended {
		return nil, err
	}
	outcomes := make([]Outcome, len(rows))
	var wanted []int // rows that ask for a link
	var batch []create.Row
	for i := range rows {
		row, o := &rows[i], &outcomes[i]
		o.Line = row.Line
		switch {
		case row.Err != nil:
			o.Error = row.Err.Error()
		case row.Record.Status == Deleted:
			o.Skipped = Deleted
		default:
			wanted, batch = append(wanted, i), append(batch, create.Row{Request: request(&row.Record, c.options.Domain, c.options.Tags)})
		}
	}
	if ended {
		return c.recall(ctx, rows, wanted, batch, outcomes, key, revoked)
	}
	if len(batch) == 0 {
		return outcomes, nil
	}
	cause := shorten.Cause{Principal: who, IdempotencyKey: key, Written: true}
	if _, err := c.Links.CreateMany(ctx, c.Now(), cause, batch); err != nil {
		if errors.Is(err, shorten.ErrKeyBusy) { // a paused server works on it
			err = fmt.Errorf("%w: %w", link.ErrUnavailable, err)
		}
		return nil, err
	}
	for n, i := range wanted {
		if err := c.finish(ctx, who, &rows[i].Record, &batch[n], &outcomes[i]); err != nil {
			return nil, err
		}
	}
	return outcomes, nil
}

// recall completes the outcomes of a batch that was in flight when its server was killed, before the
// key was revoked. It returns none when no link of the batch was created.
func (c *creating) recall(ctx context.Context, rows []exchange.Row, wanted []int, batch []create.Row, outcomes []Outcome, key string, revoked *job.FailError) ([]Outcome, error) {
	created, err := c.Links.Recall(ctx, c.Now(), shorten.Cause{Principal: c.owner, IdempotencyKey: key}, batch)
	if err != nil {
		return nil, err
	}
	if !created {
		return nil, revoked
	}
	for n, i := range wanted {
		row, o := &batch[n], &outcomes[i]
		if errors.Is(row.Err, create.ErrNotCreated) {
			o.Error = "not created: " + revoked.Reason
			continue
		}
		if err := c.describe(row, o); err != nil {
			return nil, err
		}
		if disables(&rows[i].Record, row) {
			o.Error = "created, but not disabled: " + revoked.Reason
		}
	}
	return outcomes, revoked
}

// describe says what became of a row.
func (c *creating) describe(row *create.Row, o *Outcome) error {
	if row.Err != nil {
		text, status := c.Explain(row.Err)
		if status >= http.StatusInternalServerError {
			return row.Err // no fault of the row: the batch is repeated
		}
		o.Error = fmt.Sprintf("%s (HTTP %d)", text, status)
		return nil
	}
	key := row.Result.Link.Key
	o.Code, o.ShortURL = string(key.Code), c.ShortURL(key)
	return nil
}

// disables reports whether the link of a row is still to be disabled.
func disables(r *exchange.Record, row *create.Row) bool {
	return row.Err == nil && r.Status == "disabled" && row.Result.Link.Status != link.Disabled
}

// finish says what became of a row, and disables its link where the row says so.
func (c *creating) finish(ctx context.Context, who auth.Principal, r *exchange.Record, row *create.Row, o *Outcome) error {
	if err := c.describe(row, o); err != nil || !disables(r, row) {
		return err
	}
	l := &row.Result.Link
	_, err := c.Links.Update(ctx, c.Now(), shorten.Cause{Principal: who}, l.Key, shorten.Match{}, &shorten.Change{Status: shorten.Value(link.Disabled)})
	if err != nil && !errors.Is(err, link.ErrNotFound) { // deleted meanwhile
		return fmt.Errorf("disable %s: %w", l.Key, err)
	}
	return nil
}

// free returns why a code cannot be had.
func (c *creating) free(ctx context.Context, domain, code string) error {
	who, err := c.who(ctx)
	if err != nil {
		return err
	}
	if domain == "" {
		domain = c.options.Domain
	}
	d, known := c.Links.Domain(domain)
	if !known {
		return errors.New("domain: is not a domain of this service")
	}
	err = c.Links.Free(ctx, c.Now(), who, d, code)
	if err == nil || errors.Is(err, link.ErrUnavailable) {
		return err
	}
	text, status := c.Explain(err)
	return fmt.Errorf("%s (HTTP %d)", text, status)
}
