package shorten

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"

	"curt/internal/auth"
	"curt/internal/idempotency"
	"curt/internal/link"
	"curt/internal/ratelimit"
)

// MakeManyOnce is MakeMany under the caller's idempotency key. Beside the errors of
// MakeMany there are ErrKeyReused and, of a row, ErrLinkGone.
//
// The record is written before the links, with the id of the first, from which follow
// those of all rows. So every try, also one that runs at the same time or comes after a
// crash, asks the store for the same ids, and the store has each of them once, whichever
// code a try brings: the try that comes later finds what the other has made. A row that
// was refused is judged again, at the time of the record; one that was given an existing
// link is given the one that stands in for it by then. A batch that was refused as a
// whole leaves the key free; a try that is repeated costs nothing of the limits.
func (c *Creator) MakeManyOnce(ctx context.Context, now time.Time, who auth.Principal, key string, rows []Row) (*ratelimit.Verdict, error) {
	if err := admitMany(who, rows); err != nil || len(rows) == 0 {
		return nil, err
	}
	if c.claims == nil {
		return nil, errNoKeys()
	}
	print, err := fingerprintMany(rows)
	if err != nil {
		return nil, err
	}
	name := idempotency.Name{Caller: who.KeyID, Key: key}
	rec, err := c.claims.Find(ctx, name)
	switch {
	case errors.Is(err, link.ErrNotFound) || err == nil && rec.Created.Before(now.Add(-idempotency.Keep)):
		return c.firstMany(ctx, now, who, name, print, rows)
	case err != nil:
		return nil, fmt.Errorf("use an idempotency key: %w", err)
	}
	return nil, c.againMany(ctx, now, who, rec, print, rows)
}

// firstMany files what the rows will get, and makes it.
func (c *Creator) firstMany(ctx context.Context, now time.Time, who auth.Principal, name idempotency.Name, print [32]byte, rows []Row) (*ratelimit.Verdict, error) {
	first, err := c.ids.Span(now, len(rows))
	if err != nil {
		return nil, err
	}
	rec := idempotency.Record{Request: print, ID: first, Created: now.UTC().Truncate(time.Millisecond)}
	drafted := c.draftMany(rec.Created, who, rows, first)
	if len(drafted) == 0 {
		return nil, nil // nothing comes of any row, now or later
	}
	verdict, err := c.charge(ctx, now, who, len(drafted))
	if err != nil {
		return nil, err
	}
	stands, err := persist(ctx, c, rec.ID, func() (idempotency.Record, error) {
		return c.claims.Claim(ctx, name, rec, now.Add(-idempotency.Keep))
	})
	switch {
	case err != nil:
		return nil, fmt.Errorf("use an idempotency key: %w", err)
	case stands != rec: // another request with the key came first
		return verdict, c.againMany(ctx, now, who, stands, print, rows)
	}
	return verdict, c.fulfilMany(ctx, now, who, drafted, false)
}

// againMany answers with the links that there are, and makes the others.
func (c *Creator) againMany(ctx context.Context, now time.Time, who auth.Principal, rec idempotency.Record, print [32]byte, rows []Row) error {
	if rec.Request != print {
		return ErrKeyReused
	}
	c.metrics.replays.Inc()
	missing, err := c.standing(ctx, who, c.draftMany(rec.Created, who, rows, rec.ID))
	if err != nil {
		return err
	}
	return c.fulfilMany(ctx, now, who, missing, true)
}

// fulfilMany makes the links of drafted rows. Where another try has made one meanwhile,
// that is it. Again says that an earlier try has proposed them.
func (c *Creator) fulfilMany(ctx context.Context, now time.Time, who auth.Principal, drafted []*Row, again bool) error {
	if err := c.makeMany(ctx, now, who, drafted, again); err != nil {
		return err
	}
	var met []*Row
	for _, r := range drafted {
		// The id is there, under another code or as a tombstone.
		if errors.Is(r.Err, link.ErrConflict) || r.Err == nil && r.Made.Link.Status == link.Deleted {
			r.Err = ErrLinkGone
			met = append(met, r)
		}
	}
	_, err := c.standing(ctx, who, met)
	return err
}

// fingerprintMany is fingerprint of a batch: rows that are no requests are all alike,
// because nothing comes of them.
func fingerprintMany(rows []Row) ([32]byte, error) {
	list := make([]*Request, len(rows))
	for i := range rows {
		if rows[i].Err == nil {
			list[i] = &rows[i].Request
		}
	}
	sum := sha256.New() // the text may be as large as the batch, and is needed by nobody
	if err := json.MarshalWrite(sum, list, json.OmitZeroStructFields(true)); err != nil {
		return [32]byte{}, fmt.Errorf("hash a batch: %w", err)
	}
	return [32]byte(sum.Sum(nil)), nil
}

// standing answers the rows whose links there are, by their ids, and returns the others.
// The try that made them may have ended before it announced them.
func (c *Creator) standing(ctx context.Context, who auth.Principal, rows []*Row) ([]*Row, error) {
	if len(rows) == 0 {
		return nil, nil
	}
	last := rows[len(rows)-1].link.ID
	there := make(map[link.ID]link.Link, len(rows))
	filter := link.Filter{Workspace: who.Workspace, Since: rows[0].link.ID, Oldest: true}
	for page := (link.Page{Limit: link.MaxPage}); ; {
		slice, err := c.store.List(ctx, filter, page)
		if err != nil {
			return nil, fmt.Errorf("look for the links of an idempotency key: %w", err)
		}
		for i := range slice.Links {
			there[slice.Links[i].ID] = slice.Links[i]
		}
		if n := len(slice.Links); slice.Next == "" || n > 0 && bytes.Compare(slice.Links[n-1].ID[:], last[:]) >= 0 {
			break
		}
		page.After = slice.Next
	}
	var missing []*Row
	for _, r := range rows {
		l, ok := there[r.link.ID]
		if !ok {
			missing = append(missing, r)
			continue
		}
		r.Made, r.Err = Made{Link: l}, nil
		c.announceNew(l)
	}
	return missing, nil
}
