package shorten

import (
	"context"
	"errors"
	"fmt"
	"time"

	"curt/internal/auth"
	"curt/internal/codegen"
	"curt/internal/link"
	"curt/internal/ratelimit"
)

// MaxMany is the most rows that MakeMany takes: one transaction of so many links
// keeps others waiting for about 40 ms.
const MaxMany = 1000

// Row is one request of a batch on its way: what its caller made of it goes in, what
// became of it comes out.
type Row struct {
	Request Request // without an idempotency key
	Made    Made    // valid when Err is nil
	Err     error   // set before MakeMany: the row is no request, and stays as it is

	link proposal
	need codegen.Need
}

// MakeMany is Make for each row, in one durable write: later rows meet what earlier
// ones made, so of rows that ask for one alias the first gets it, and a row that asks to
// dedupe may be given the link of an earlier one. A row that fails leaves the others
// alone. Each row that may become a link is one create to the caller's limit; a batch
// that the limit cannot take now is refused as a whole, with a LimitedError, and one
// that it can never take with an InvalidError.
//
// The error is for the whole batch; then nothing is known to be stored. The verdict is
// that of Request.Limit.
func (c *Creator) MakeMany(ctx context.Context, now time.Time, who auth.Principal, rows []Row) (*ratelimit.Verdict, error) {
	if err := admitMany(who, rows); err != nil || len(rows) == 0 {
		return nil, err
	}
	first, err := c.ids.Span(now, len(rows))
	if err != nil {
		return nil, err
	}
	drafted := c.draftMany(now, who, rows, first)
	if len(drafted) == 0 {
		return nil, nil
	}
	verdict, err := c.charge(ctx, now, who, len(drafted))
	if err != nil {
		return nil, err
	}
	return verdict, c.makeMany(ctx, now, who, drafted, false)
}

// admitMany refuses callers who may not make so many links at once.
func admitMany(who auth.Principal, rows []Row) error {
	if err := auth.May(who, auth.CreateLink, auth.Resource{}); err != nil {
		return err
	}
	if who.IsAnonymous() {
		return auth.ErrUnauthenticated
	}
	if len(rows) > MaxMany {
		return invalid("links", "want at most %d", MaxMany)
	}
	return nil
}

// makeMany makes the links of rows that were drafted and paid for. Again says that they
// were proposed before.
func (c *Creator) makeMany(ctx context.Context, now time.Time, who auth.Principal, drafted []*Row, again bool) error {
	defer c.moderator.Enter()()
	allowed := c.assessMany(ctx, now, who, drafted, again)
	waiting := c.findMany(ctx, now, allowed)
	for round := 0; len(waiting) > 0; round++ {
		next, err := c.storeMany(ctx, now, waiting)
		if err != nil && round == 0 {
			return err
		}
		for _, r := range next {
			if r.Err = err; err == nil && round == maxCodes {
				r.Err = fmt.Errorf("%w: %d codes in a row were taken", link.ErrUnavailable, maxCodes)
			}
		}
		if err != nil || round == maxCodes {
			break
		}
		waiting = next
	}
	for _, r := range allowed {
		if r.Err == nil {
			c.tell(r.Made)
		}
	}
	return nil
}

// draftMany drafts the links of all rows that may have one, and returns those rows. The
// n-th row has the n-th id after the first, whatever becomes of the others.
func (c *Creator) draftMany(now time.Time, who auth.Principal, rows []Row, first link.ID) []*Row {
	var drafted []*Row
	for i := range rows {
		r := &rows[i]
		if r.Err == nil {
			r.link.Link, r.Err = c.draft(now, who, &r.Request)
		}
		if r.Err == nil {
			r.link.ID, r.need = first.Nth(i), needOf(r.link.Link)
			drafted = append(drafted, r)
		}
	}
	return drafted
}

// assessMany returns the rows that are not refused because of where they lead.
func (c *Creator) assessMany(ctx context.Context, now time.Time, who auth.Principal, rows []*Row, again bool) []*Row {
	var allowed []*Row
	for _, r := range rows {
		if r.Err = c.propose(ctx, now, who, &r.link, again); r.Err == nil {
			allowed = append(allowed, r)
		}
	}
	return allowed
}

// findMany answers the rows that ask to dedupe and find a link without a write, and
// returns the others.
func (c *Creator) findMany(ctx context.Context, now time.Time, rows []*Row) []*Row {
	var waiting []*Row
	for _, r := range rows {
		if r.dedupes() {
			same, err := c.dedupe.FindSame(ctx, r.link.Link, now)
			if err == nil {
				r.Made = Made{Link: same, Found: same.ID != r.link.ID}
				continue
			}
			// The write will ask again, and know better why it cannot be done.
		}
		waiting = append(waiting, r)
	}
	return waiting
}

// dedupes reports whether the row may be given another link.
func (r *Row) dedupes() bool {
	return r.Request.Dedupe.Value && !r.Request.Alias.some() && !r.link.unclean()
}

// enterMany writes the decisions about the rows into the journal, but for those whose
// alias another link has.
func (c *Creator) enterMany(ctx context.Context, now time.Time, rows []*Row) error {
	var entering []*proposal
	for _, r := range rows {
		free := true
		if r.Request.Alias.some() {
			var err error
			if free, err = c.free(ctx, &r.link); err != nil {
				return err
			}
		}
		if free {
			entering = append(entering, &r.link)
		}
	}
	return c.enter(ctx, now, entering...)
}

// storeMany gives codes to the rows that need one and stores them in one transaction.
// It returns the rows whose code was taken, which try another; on an error, all.
func (c *Creator) storeMany(ctx context.Context, now time.Time, rows []*Row) ([]*Row, error) {
	entries := make([]link.Creation, len(rows))
	for _, r := range rows {
		if !r.Request.Alias.some() {
			var err error
			r.link.CodeKind = c.codes.Kind()
			if r.link.Key.Code, err = c.code(ctx, &r.need); err != nil {
				return rows, err
			}
		}
	}
	if err := c.enterMany(ctx, now, rows); err != nil {
		return rows, err
	}
	for i, r := range rows {
		entries[i] = link.Creation{Link: r.link.Link, Dedupe: r.dedupes()}
	}
	results, err := persist(ctx, c, rows[0].link.Key, func() ([]link.Result, error) { return c.batcher.CreateMany(ctx, now, entries) })
	if err != nil {
		return rows, err
	}
	var taken []*Row
	for i, r := range rows {
		r.Made, r.Err = Made{Link: results[i].Link, Found: results[i].Found}, results[i].Err
		switch {
		case !errors.Is(r.Err, link.ErrExists):
		case r.Request.Alias.some():
			r.Made, r.Err = c.taken(ctx, now, r.link.Link, &r.Request)
		default:
			c.burned(r.link.Key.Code)
			taken = append(taken, r)
		}
	}
	return taken, nil
}
