package shorten

import (
	"context"
	"errors"
	"fmt"
	"time"

	"curt/internal/auth"
	"curt/internal/codegen"
	"curt/internal/idempotency"
	"curt/internal/link"
	"curt/internal/ratelimit"
)

// MaxMany is the most rows that CreateMany takes: one transaction of so many links
// keeps others waiting for about 40 ms.
const MaxMany = 1000

// Creator creates links. It is safe for many goroutines.
//
// There is one way to a link: a request is a batch of one row. The rows are drafted, charged
// to the caller's limit, judged, looked for where they dedupe, given codes, and written in one
// durable write; rows whose code is taken try the next. With an idempotency key what the rows
// are promised is filed before the write (repeat.go).
type Creator struct {
	// Set once in New.
	store    link.Store
	dedupe   link.Deduper // nil = the store is none
	batcher  link.Batcher
	codes    codegen.Generator
	limits   ratelimit.Store
	plans    Plans
	rules    *rules
	court    *court
	announce func(link.Change)
	created  func(link.Key)
	made     func(link.Link)
	ids      *link.IDs
	dedupes  bool              // unless a request says otherwise
	claims   idempotency.Store // nil = none
	attempts *attempts
	metrics  *metrics
}

// Row is one request of a batch: what its caller made of it goes in, what became of it
// comes out.
type Row struct {
	Request Request
	Made    Made  // valid when Err is nil
	Err     error // set before CreateMany: the row is no request, and stays as it is

	link proposal
	need codegen.Need
	done bool // its link was found in the store: there is nothing to write
}

// Create stores a new link, or finds the one that the request may have instead; nil
// means durable. Errors: InvalidError, BannedError, ListedError, HarmfulError, ErrReserved, ErrRefused, ErrTaken, LimitedError,
// those of auth, with an idempotency key ErrKeyReused, ErrKeyBusy and ErrLinkGone,
// link.ErrUnavailable when nothing is known to be stored, and link.ErrUncertain when the
// store kept failing: then, and when ctx ended, the link may exist, but nobody was told its
// code.
func (c *Creator) Create(ctx context.Context, now time.Time, cause Cause, req *Request) (Made, error) {
	rows := []Row{{Request: *req}}
	var err error
	if req.Limit, err = c.create(ctx, now, cause, rows, false); err == nil {
		err = rows[0].Err
	}
	if err != nil {
		return Made{}, err
	}
	return rows[0].Made, nil
}

// CreateMany is Create for each row, in one durable write: later rows meet what earlier
// ones made, so of rows that ask for one alias the first gets it, and a row that asks to
// dedupe may be given the link of an earlier one. A row that fails leaves the others
// alone. Each row that may become a link is one create to the caller's limit; a batch
// that the limit cannot take now is refused as a whole, with a LimitedError, and one
// that it can never take with an InvalidError.
//
// The error is for the whole batch; then nothing is known to be stored. The verdict is
// that of Request.Limit.
func (c *Creator) CreateMany(ctx context.Context, now time.Time, cause Cause, rows []Row) (*ratelimit.Verdict, error) {
	switch {
	case cause.Principal.IsAnonymous():
		return nil, errors.Join(auth.May(cause.Principal, auth.CreateLink, auth.Resource{}), auth.ErrUnauthenticated)
	case len(rows) > MaxMany:
		return nil, invalid("links", "want at most %d", MaxMany)
	}
	return c.create(ctx, now, cause, rows, true)
}

// create is the one way to new links. List says that the request is a list, also one of a single row.
func (c *Creator) create(ctx context.Context, now time.Time, cause Cause, rows []Row, list bool) (*ratelimit.Verdict, error) {
	if err := auth.May(cause.Principal, auth.CreateLink, auth.Resource{}); err != nil || len(rows) == 0 {
		return nil, err
	}
	if cause.IdempotencyKey != "" {
		return c.createOnce(ctx, now, cause, rows, list)
	}
	b := &batch{c: c, now: now, at: now, who: cause.Principal, rows: rows}
	verdict, err := b.admit(ctx)
	if err != nil {
		return nil, err
	}
	defer c.court.moderator.Enter()()
	b.assess(ctx)
	b.find(ctx)
	return verdict, b.write(ctx)
}

// batch is what one call of create does. It is of one goroutine.
type batch struct {
	c    *Creator
	now  time.Time
	at   time.Time // when the links are created: now, or when the batch was first asked for
	who  auth.Principal
	rows []Row
	list bool     // the request is a list
	kept *promise // what is filed under the idempotency key; nil = there is none
}

// waiting returns the rows that may still become a link.
func (b *batch) waiting() (rows []*Row) {
	for i := range b.rows {
		if r := &b.rows[i]; r.Err == nil && !r.done {
			rows = append(rows, r)
		}
	}
	return rows
}

// admit drafts the links, with an id each, and takes them off the caller's limit, which also
// pays for those that are refused because of where they lead.
func (b *batch) admit(ctx context.Context) (*ratelimit.Verdict, error) {
	first, err := b.c.ids.Span(b.now, len(b.rows))
	if err != nil {
		return nil, err
	}
	b.draft(first)
	n := len(b.waiting())
	if n == 0 {
		return nil, nil
	}
	return b.c.charge(ctx, b.now, b.who, n)
}

// draft drafts the links of all rows that may have one. The n-th row has the n-th id after
// the first, whatever becomes of the others.
func (b *batch) draft(first link.ID) {
	for i := range b.rows {
		r := &b.rows[i]
		if r.Err == nil {
			r.link.Link, r.Err = b.c.draft(b.at, b.who, &r.Request)
		}
		r.link.ID = first.Nth(i)
		r.need = codegen.Need{Domain: r.link.Key.Domain, Workspace: r.link.Workspace, Destination: r.link.Destination}
	}
}

// assess judges where the links lead, and gives them the safety that follows. Those that were
// proposed before, under the idempotency key, count for no second ones.
func (b *batch) assess(ctx context.Context) {
	for _, r := range b.waiting() {
		f := b.c.court.factsOf(b.who, r.link.Workspace)
		f.Change = b.kept != nil && b.kept.again
		if r.link.judged, r.Err = b.c.court.assess(ctx, b.now, f, ofLink(&r.link.Link)); r.Err == nil {
			r.link.Safety = r.link.judged.Safety
		}
	}
}

// find answers the rows that dedupe and find a link without a write.
func (b *batch) find(ctx context.Context) {
	for _, r := range b.waiting() {
		if !r.dedupes() || r.link.Key.Code != "" {
			continue
		}
		// Where it cannot be asked, the write will ask again, and know better why.
		if same, err := b.c.dedupe.FindSame(ctx, r.link.Link, b.now); err == nil {
			r.Made, r.done = Made{Link: same, Found: same.ID != r.link.ID}, true
			b.c.tell(r.Made)
		}
	}
}

// dedupes reports whether the row may be given another link. No link stands in for one that
// is not clean.
func (r *Row) dedupes() bool {
	return r.Request.Dedupe.Value && !r.Request.Alias.some() && !r.link.unclean()
}

// write gives codes to the rows that need one and writes them, until each has its link or is
// refused. The error is for all.
func (b *batch) write(ctx context.Context) error {
	for round := 0; ; round++ {
		rows := b.waiting()
		if len(rows) == 0 {
			return nil
		}
		err := b.code(ctx, rows)
		if err == nil && round == maxCodes {
			err = fmt.Errorf("%w: %d codes in a row were taken", link.ErrUnavailable, maxCodes)
		}
		if err == nil {
			err = b.store(ctx, rows)
		}
		switch {
		case err != nil && round == 0:
			return err
		case err != nil: // the others have their links
			for _, r := range rows {
				r.Err = err
			}
			return nil
		}
	}
}

// code gives a code to each row that has none, and files them under the idempotency key.
func (b *batch) code(ctx context.Context, rows []*Row) error {
	given := false
	for _, r := range rows {
		if r.link.Key.Code != "" {
			continue
		}
		var err error
		r.link.CodeKind, given = b.c.codes.Kind(), true
		if r.link.Key.Code, err = b.c.code(ctx, &r.need); err != nil {
			return err
		}
	}
	if b.kept == nil || !given {
		return nil
	}
	return b.keep(ctx)
}

// store writes rows that have their codes in one transaction. Of those whose code was taken the
// code is given up.
func (b *batch) store(ctx context.Context, rows []*Row) error {
	if err := b.enter(ctx, rows); err != nil {
		return err
	}
	if len(rows) == 1 {
		r := rows[0]
		result, err := persist(ctx, b.c.metrics.retries, r.link.Key, func() (link.Result, error) { return b.c.insert(ctx, b.now, r) })
		if err == nil {
			b.settle(ctx, r, &result)
		}
		return err
	}
	entries := make([]link.Creation, len(rows))
	for i, r := range rows {
		entries[i] = link.Creation{Link: r.link.Link, Dedupe: r.dedupes()}
	}
	results, err := persist(ctx, b.c.metrics.retries, rows[0].link.Key, func() ([]link.Result, error) { return b.c.batcher.CreateMany(ctx, b.now, entries) })
	if err != nil {
		return err
	}
	for i, r := range rows {
		b.settle(ctx, r, &results[i])
	}
	return nil
}

// settle takes over what the store says of a row.
func (b *batch) settle(ctx context.Context, r *Row, result *link.Result) {
	r.Made, r.Err = Made{Link: result.Link, Found: result.Found}, result.Err
	switch {
	case r.Err == nil && b.kept != nil && r.Made.Link.Status == link.Deleted:
		r.Err = ErrLinkGone // an earlier try created it
	case errors.Is(r.Err, link.ErrExists) && r.Request.Alias.some():
		r.Made, r.Err = b.c.taken(ctx, b.now, r.link.Link, &r.Request)
	case errors.Is(r.Err, link.ErrExists):
		b.c.burned(r.link.Key.Code)
		r.link.Key.Code, r.Err = "", nil
		return
	}
	if r.done = r.Err == nil; r.done {
		b.c.tell(r.Made)
	}
}

// enter writes the decisions about the rows into the journal, but for those whose
// alias another link has.
func (b *batch) enter(ctx context.Context, rows []*Row) error {
	var entering []*proposal
	for _, r := range rows {
		free := true
		if r.Request.Alias.some() {
			var err error
			if free, err = b.c.free(ctx, &r.link); err != nil {
				return err
			}
		}
		if free {
			entering = append(entering, &r.link)
		}
	}
	return b.c.court.enter(ctx, b.now, entering...)
}

// draft returns the link that the request asks for, without an id, and without a code
// unless it names one. From then on the request says whether to dedupe.
func (c *Creator) draft(now time.Time, who auth.Principal, req *Request) (link.Link, error) {
	now = now.UTC().Truncate(time.Millisecond)
	l := link.Link{
		Workspace: who.Workspace, CreatedBy: who.KeyID,
		Status: link.Active, Safety: link.Clean, Redirect: defaultRedirect, NoIndex: true,
		Created: now, Updated: now,
	}
	if !req.LongURL.Given {
		return link.Link{}, invalid("long_url", "is required")
	}
	if err := c.rules.apply(now, &l, &req.Fields); err != nil {
		return link.Link{}, err
	}
	var err error
	if l.Key.Domain, err = c.rules.domain(req.Domain); err != nil {
		return link.Link{}, err
	}
	if req.Alias.some() {
		if err := c.rules.checkAlias(req.Alias.Value); err != nil {
			return link.Link{}, err
		}
		l.Key.Code = link.Code(req.Alias.Value)
	}
	return l, c.settleDedupe(who, req)
}

// settleDedupe fills in whether to dedupe where the request does not say so, and
// refuses to show a stranger's link to a caller without a key.
func (c *Creator) settleDedupe(who auth.Principal, req *Request) error {
	if c.dedupes && c.dedupe != nil && !req.Dedupe.some() && !req.Alias.some() && !who.IsAnonymous() {
		req.Dedupe = Value(true)
	}
	switch {
	case !req.Dedupe.Value:
		return nil
	case who.IsAnonymous():
		return invalid("dedupe", "needs an API key")
	case c.dedupe == nil:
		return invalid("dedupe", "is not offered by this link store")
	}
	return nil
}

// insert writes a single row, by the store's own calls, which may join it with those of other
// callers.
func (c *Creator) insert(ctx context.Context, now time.Time, row *Row) (r link.Result, err error) {
	if row.dedupes() {
		r.Link, r.Found, err = c.dedupe.FindOrCreate(ctx, row.link.Link, now)
	} else {
		r.Link, err = c.store.Create(ctx, row.link.Link)
	}
	if errors.Is(err, link.ErrExists) {
		r.Err, err = err, nil
	}
	return r, err
}

// free reports whether a link that is not clean may have its alias: so that whoever asks
// for a taken one leaves nothing in the journal. Of a clean one the insert knows better.
func (c *Creator) free(ctx context.Context, p *proposal) (bool, error) {
	if !p.unclean() {
		return true, nil
	}
	other, err := c.store.Get(ctx, p.Key)
	switch {
	case errors.Is(err, link.ErrNotFound):
		return true, nil
	case err != nil:
		return false, fmt.Errorf("get %s: %w", p.Key, err)
	}
	return other.ID == p.ID, nil
}

// taken answers for an alias that another link has: to who asks to dedupe, with that
// link, where it is what they want.
func (c *Creator) taken(ctx context.Context, now time.Time, l link.Link, req *Request) (Made, error) {
	if !req.Dedupe.Value {
		return Made{}, ErrTaken
	}
	other, err := c.store.Get(ctx, l.Key)
	switch {
	case err != nil:
		return Made{}, fmt.Errorf("get %s: %w", l.Key, err)
	case !other.StandsInFor(l, now):
		return Made{}, ErrTaken
	}
	return Made{Link: other, Found: true}, nil
}

// tell announces what was made, and counts it.
func (c *Creator) tell(made Made) {
	if made.Found {
		c.metrics.found.Inc()
		return
	}
	c.metrics.created.Inc()
	if made.Link.Safety != link.Clean {
		c.metrics.warned.Inc()
	}
	c.announceNew(made.Link)
}

// announceNew lets caches know a link that they may believe unknown.
func (c *Creator) announceNew(l link.Link) {
	if l.CodeKind != link.Chosen {
		c.created(l.Key)
	} else {
		c.announce(link.Change{Key: l.Key, Version: l.Version})
	}
	c.made(l)
}
