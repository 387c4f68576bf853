package shorten

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"

	"curt/internal/auth"
	"curt/internal/codegen"
	"curt/internal/idempotency"
	"curt/internal/link"
)

// once is Make under the caller's idempotency key. The record is written before the
// link, with the link's id and code, so that every later try, in this process or after
// its end, asks the store for the same link until it answers; tries at the same time
// wait for the first.
//
// What a try leaves behind:
//   - made: the record stands for a day, and each retry is answered with its link;
//   - refused before anything was written (a bad field, a limit): no record;
//   - the alias is taken: the record goes. An alias is never freed, so that a retry of
//     the same request is refused in the same words, and the key may be used again;
//   - a generated code is taken: the record gets the next code, by compare-and-swap.
//     A code that is taken stays taken, so nobody can make the link under the old one;
//   - the store cannot be asked: the record stays, and a retry goes on from it.
func (c *Creator) once(ctx context.Context, now time.Time, who auth.Principal, req *Request) (Made, error) {
	switch {
	case who.IsAnonymous():
		return Made{}, invalid("Idempotency-Key", "needs an API key: without one nobody knows whose key it is")
	case c.claims == nil:
		return Made{}, errNoKeys()
	}
	if err := auth.May(who, auth.CreateLink, auth.Resource{}); err != nil {
		return Made{}, err
	}
	print, err := fingerprint(*req)
	if err != nil {
		return Made{}, err
	}
	name := idempotency.Name{Caller: who.KeyID, Key: req.IdempotencyKey}
	return c.attempts.join(ctx, name, print, func() (Made, error) {
		return c.lead(ctx, now, who, req, name, print)
	})
}

// errNoKeys answers a key where nothing keeps what keys stand for.
func errNoKeys() error { return invalid("Idempotency-Key", "is not offered by this service") }

// fingerprint tells requests apart by what they ask for, not by how it was written.
// Fields that are absent leave no trace, so that a release with new fields knows the
// requests of the one before.
func fingerprint(req Request) ([32]byte, error) {
	req.IdempotencyKey, req.Limit = "", nil
	text, err := json.Marshal(req, json.OmitZeroStructFields(true))
	if err != nil {
		return [32]byte{}, fmt.Errorf("hash a request: %w", err)
	}
	return sha256.Sum256(text), nil
}

// lead is the one try under way.
func (c *Creator) lead(ctx context.Context, now time.Time, who auth.Principal, req *Request, name idempotency.Name, print [32]byte) (Made, error) {
	since := now.Add(-idempotency.Keep)
	rec, err := c.claims.Find(ctx, name)
	first := errors.Is(err, link.ErrNotFound) || err == nil && rec.Created.Before(since)
	var judged *judgement
	if first {
		rec, judged, err = c.record(ctx, now, who, req, name, print)
	}
	switch {
	case err != nil:
		return Made{}, fmt.Errorf("use an idempotency key: %w", err)
	case rec.Request != print:
		return Made{}, ErrKeyReused
	case !first:
		c.metrics.replays.Inc()
	}
	return c.fulfil(ctx, now, who, req, name, rec, judged)
}

// record files what the request will get, and returns what stands, and what was found
// about it.
func (c *Creator) record(ctx context.Context, now time.Time, who auth.Principal, req *Request, name idempotency.Name, print [32]byte) (idempotency.Record, *judgement, error) {
	p, err := c.admit(ctx, now, who, req)
	if err != nil {
		return idempotency.Record{}, nil, err
	}
	if !req.Alias.some() {
		p.CodeKind = c.codes.Kind()
		need := needOf(p.Link)
		if p.Key.Code, err = c.code(ctx, &need); err != nil {
			return idempotency.Record{}, nil, err
		}
	}
	rec := idempotency.Record{Request: print, ID: p.ID, Link: p.Key, CodeKind: p.CodeKind, Created: p.Created}
	rec, err = persist(ctx, c, p.Key, func() (idempotency.Record, error) {
		return c.claims.Claim(ctx, name, rec, now.Add(-idempotency.Keep))
	})
	return rec, &p.judged, err
}

// fulfil answers with the link of the record, which it makes where it is not made yet.
// What was judged is judged no second time; a later try judges anew.
func (c *Creator) fulfil(ctx context.Context, now time.Time, who auth.Principal, req *Request, name idempotency.Name, rec idempotency.Record, judged *judgement) (Made, error) {
	need := codegen.Need{Domain: rec.Link.Domain, Workspace: who.Workspace, Attempt: 1}
	for range maxCodes {
		l, made, err := c.promised(ctx, now, who, req, rec, judged)
		switch {
		case err == nil && made.Found && !rec.Found:
			// From now on the key stands for the link that was found.
			found := rec
			found.ID, found.Link, found.CodeKind, found.Found = made.Link.ID, made.Link.Key, made.Link.CodeKind, true
			err = c.change(ctx, name, rec, found)
		case errors.Is(err, ErrTaken):
			return Made{}, errors.Join(err, c.claims.Release(ctx, name, rec))
		case errors.Is(err, link.ErrExists):
			c.burned(rec.Link.Code)
			need.Destination = l.Destination
			next := rec
			next.CodeKind = c.codes.Kind()
			if next.Link.Code, err = c.code(ctx, &need); err != nil {
				return Made{}, err
			}
			if err = c.change(ctx, name, rec, next); err == nil {
				rec = next
				continue
			}
		}
		if !errors.Is(err, link.ErrConflict) {
			return made, err
		}
		if rec, err = c.claims.Find(ctx, name); err != nil { // another process went on with another code
			return Made{}, fmt.Errorf("use an idempotency key: %w", err)
		}
	}
	return Made{}, fmt.Errorf("%w: %d codes in a row were taken", link.ErrUnavailable, maxCodes)
}

// promised returns the link of the record: as it stands, or newly made from the draft
// that it would have been when the record was claimed. link.ErrExists says that another
// link has a generated code, link.ErrConflict that the link has another code.
func (c *Creator) promised(ctx context.Context, now time.Time, who auth.Principal, req *Request, rec idempotency.Record, judged *judgement) (draft link.Link, made Made, err error) {
	stands, err := c.store.Get(ctx, rec.Link)
	switch {
	case err == nil && stands.ID == rec.ID && stands.Status == link.Deleted:
		return draft, Made{}, ErrLinkGone
	case err == nil && stands.ID == rec.ID:
		if !rec.Found {
			c.announceNew(stands) // the try that made it may have ended before
		}
		return draft, Made{Link: stands, Found: rec.Found}, nil
	case err != nil && !errors.Is(err, link.ErrNotFound):
		return draft, Made{}, fmt.Errorf("get %s: %w", rec.Link, err)
	}
	draft, err = c.draft(rec.Created, who, req)
	if err != nil { // the rules changed since the record was claimed
		return draft, Made{}, err
	}
	p := &proposal{Link: draft}
	if judged != nil {
		p.judged, p.Safety = *judged, judged.Safety
	} else if err := c.propose(ctx, now, who, p, true); err != nil {
		return draft, Made{}, err
	}
	p.ID, p.Key, p.CodeKind = rec.ID, rec.Link, rec.CodeKind
	if req.Alias.some() {
		made, err = c.claim(ctx, now, p, req)
	} else {
		made, err = c.place(ctx, now, p, req)
	}
	if err == nil {
		c.tell(made)
	}
	return draft, made, err
}

func (c *Creator) change(ctx context.Context, name idempotency.Name, from, to idempotency.Record) error {
	_, err := persist(ctx, c, to.Link, func() (struct{}, error) { return struct{}{}, c.claims.Change(ctx, name, from, to) })
	return wrap("use an idempotency key", err)
}

// wrap adds the operation to an error.
func wrap(op string, err error) error {
	if err != nil {
		return fmt.Errorf("%s: %w", op, err)
	}
	return nil
}
