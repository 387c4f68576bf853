// Package create creates links: one at a time or many, with idempotency keys or without. Read
// create.go, which follows a batch from its requests to its links; idempotent.go adds what an
// idempotency key promises, queue.go links that are written later.
package create

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"curt/internal/auth"
	"curt/internal/codegen"
	"curt/internal/idempotency"
	"curt/internal/link"
	"curt/internal/ratelimit"
	"curt/internal/shorten"
	"curt/internal/shorten/judge"
)

// MaxMany is the most rows that CreateMany takes: one transaction of so many links
// keeps others waiting for about 40 ms.
const MaxMany = 1000

// Creator creates links. It is safe for many goroutines.
//
// There is one way to a link: a request is a batch of one row. The rows are drafted, charged
// to the caller's limit, judged, looked for where they dedupe, given codes, and written in one
// durable write; rows whose code is taken try the next. With an idempotency key what the rows
// are promised is filed before the write (idempotent.go).
type Creator struct {
	// Set once in New.
	cfg      Config
	dedupe   link.Deduper // nil = the store is none
	batcher  link.Batcher
	reserver link.Reserver // nil = the store is none
	queue    shorten.Queue
	queues   bool // new links are put into queue
	ids      *link.IDs
	inflight *inflight
	metrics  *metrics
}

// Config is what [New] needs; linkservice.Config explains the fields.
type Config struct {
	Store    link.Store
	Codes    codegen.Generator
	Strategy string // of Codes, a label of metrics
	Limits   ratelimit.Store
	Plans    Plans
	Rules    *shorten.Rules
	Judge    *judge.Judge
	Dedupe   bool
	Once     idempotency.Store // nil = requests with an idempotency key are refused
	Random   io.Reader
	Queue    shorten.Queue // nil = links are written before they are answered
	Metrics  prometheus.Registerer

	// Announce, Created and Stored are called, after the write is durable, with what it did.
	Announce func(link.Change)
	Created  func(link.Key)
	Stored   func(link.Link)

	// Aliases remembers which aliases are taken or held.
	Aliases Aliases
}

// New returns a Creator.
func New(cfg Config) *Creator {
	c := &Creator{cfg: cfg, ids: link.NewIDs(cfg.Random), inflight: newInflight(), metrics: newMetrics(cfg.Metrics, cfg.Strategy)}
	c.dedupe, _ = cfg.Store.(link.Deduper)
	c.batcher, _ = cfg.Store.(link.Batcher)
	c.reserver, _ = cfg.Store.(link.Reserver)
	if c.queue, c.queues = cfg.Queue, cfg.Queue != nil; !c.queues {
		c.queue = shorten.Synchronous{}
	}
	return c
}

// metrics are what creates count.
type metrics struct {
	created, collisions, retries, found, replays prometheus.Counter

	tries prometheus.Histogram
}

func newMetrics(reg prometheus.Registerer, strategy string) *metrics {
	counter := func(name, help string) prometheus.Counter {
		return promauto.With(reg).NewCounter(prometheus.CounterOpts{Namespace: "curt", Name: name, Help: help})
	}
	return &metrics{
		created: counter("links_created_total", "Links created."),
		collisions: counter("code_collisions_total",
			"Generated codes expected to be unique that already existed. Growth without aliases of that shape means that leases are older than links: raise an alarm."),
		retries: counter("create_retries_total", "Creates retried with the same id because the store's response was lost."),
		found:   counter("creates_deduplicated_total", "Creates answered with an existing link."),
		replays: counter("creates_replayed_total", "Creates answered from a stored idempotency key."),
		tries: promauto.With(reg).NewHistogram(prometheus.HistogramOpts{
			Namespace: "curt", Name: "create_code_tries", ConstLabels: prometheus.Labels{"strategy": strategy},
			Help:    "Generated codes tried for one new link, by CURT_CODES; each but the last was taken.",
			Buckets: []float64{1, 2, 3, 5, 10, maxCodes},
		}),
	}
}

// Row is one request of a batch: what its caller made of it goes in, what became of it
// comes out.
type Row struct {
	Request shorten.Request
	Result  shorten.Result // valid when Err is nil
	Err     error          // set before CreateMany: the row is no request, and stays as it is

	link  judge.Proposal
	need  codegen.Need
	taken int  // generated codes that other links had
	done  bool // its link was found in the store: there is nothing to write
}

// Create stores a new link, or finds the one that the request may have instead; nil
// means durable. Errors: InvalidError, BannedError, ListedError, HarmfulError, ErrReserved, ErrRefused, ErrTaken, link.HeldError, LimitedError,
// those of auth, with an idempotency key ErrKeyReused, ErrKeyBusy and ErrLinkGone,
// link.ErrUnavailable when nothing is known to be stored, and link.ErrUncertain when the
// store kept failing: then, and when ctx ended, the link may exist, but nobody was told its
// code.
func (c *Creator) Create(ctx context.Context, now time.Time, cause shorten.Cause, req *shorten.Request) (shorten.Result, error) {
	rows := []Row{{Request: *req}}
	var err error
	if req.Limit, err = c.create(ctx, now, cause, rows, false); err == nil {
		err = rows[0].Err
	}
	if err != nil {
		return shorten.Result{}, err
	}
	return rows[0].Result, nil
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
func (c *Creator) CreateMany(ctx context.Context, now time.Time, cause shorten.Cause, rows []Row) (*ratelimit.Verdict, error) {
	switch {
	case cause.Principal.IsAnonymous():
		return nil, errors.Join(auth.May(cause.Principal, auth.CreateLink, auth.Resource{}), auth.ErrUnauthenticated)
	case len(rows) > MaxMany:
		return nil, shorten.Invalid("links", "expected at most %d", MaxMany)
	}
	return c.create(ctx, now, cause, rows, true)
}

// create is the one way to new links. List says that the request is a list, also one of a single row.
func (c *Creator) create(ctx context.Context, now time.Time, cause shorten.Cause, rows []Row, list bool) (*ratelimit.Verdict, error) {
	if err := auth.May(cause.Principal, auth.CreateLink, auth.Resource{}); err != nil || len(rows) == 0 {
		return nil, err
	}
	if cause.IdempotencyKey != "" {
		return c.createIdempotent(ctx, now, cause, rows, list)
	}
	b := &batch{c: c, now: now, at: now, who: cause.Principal, rows: rows, written: cause.Written}
	verdict, err := b.admit(ctx)
	if err != nil {
		return nil, err
	}
	defer b.refer(ctx) // after the gate is left
	defer c.cfg.Judge.BeginWrite()()
	b.assess(ctx)
	b.find(ctx)
	return verdict, b.write(ctx)
}

// refer opens the cases of the rows that the score blocked.
func (b *batch) refer(ctx context.Context) {
	var refused []error
	for i := range b.rows {
		if err := b.rows[i].Err; errors.Is(err, shorten.ErrHarmful) {
			refused = append(refused, err)
		}
	}
	b.c.cfg.Judge.Refer(ctx, b.now, refused...)
}

// batch is what one call of create does. It is of one goroutine.
type batch struct {
	c       *Creator
	now     time.Time
	at      time.Time // when the links are created: now, or when the batch was first asked for
	who     auth.Principal
	rows    []Row
	list    bool     // the request is a list
	written bool     // links are written before the answer
	promise *promise // what is filed under the idempotency key; nil = there is none
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

// Assess judges where the links lead, and gives them the safety that follows. Those that were
// proposed before, under the idempotency key, count for no second ones.
func (b *batch) assess(ctx context.Context) {
	for _, r := range b.waiting() {
		f := b.c.cfg.Judge.FactsOf(b.who, r.link.Workspace)
		f.Change = b.promise != nil && b.promise.retried
		if r.link.Judged, r.Err = b.c.cfg.Judge.Assess(ctx, b.now, f, judge.URLsOf(&r.link.Link)); r.Err == nil {
			r.link.Safety = r.link.Judged.Safety
		}
	}
}

// find answers the rows that dedupe and find a link without a write. Where the first code says that the
// destination has none, the look-up is saved: the write looks again, and decides.
func (b *batch) find(ctx context.Context) {
	first, _ := b.c.cfg.Codes.(codegen.FirstChecker)
	for _, r := range b.waiting() {
		if !r.dedupes() || r.link.Key.Code != "" {
			continue
		}
		if first != nil && first.Unseen(ctx, r.need) {
			r.need.Unseen = true
			continue
		}
		// Where it cannot be asked, the write will ask again, and know better why.
		if same, err := b.c.dedupe.FindSame(ctx, r.link.Link, b.now); err == nil {
			r.Result, r.done = shorten.Result{Link: same, Found: same.ID != r.link.ID}, true
			b.c.report(r.Result)
		}
	}
}

// dedupes reports whether the row may be given another link. No link stands in for one that
// is not clean.
func (r *Row) dedupes() bool {
	return r.Request.Dedupe.Value && !r.Request.Alias.Some() && !r.link.Unclean()
}

// write gives codes to the rows that need one and writes them, until each has its link or is
// refused. The error is for all.
func (b *batch) write(ctx context.Context) error {
	done, err := b.refuseKnown(ctx)
	if err != nil {
		return err
	}
	defer done()
	for round := 0; ; round++ {
		rows := b.waiting()
		if len(rows) == 0 {
			return nil
		}
		err := b.code(ctx, rows)
		if err == nil && round == maxCodes {
			err = fmt.Errorf("%w: %d generated codes in a row already exist", link.ErrUnavailable, maxCodes)
			for range rows {
				b.c.metrics.tries.Observe(maxCodes)
			}
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

// code gives a code to each row that has none, and files all codes under the idempotency key before a link
// exists: a retry after a crash must know an alias as its own, too.
func (b *batch) code(ctx context.Context, rows []*Row) error {
	given := false
	for _, r := range rows {
		if r.link.Key.Code != "" {
			continue
		}
		var err error
		r.link.CodeKind, given = b.c.cfg.Codes.Kind(), true
		if r.link.Key.Code, err = b.c.code(ctx, &r.need); err != nil {
			return err
		}
	}
	if b.promise == nil || b.promise.filed && !given {
		return nil
	}
	return b.file(ctx)
}

// store writes rows that have their codes in one transaction, those that may wait into the queue. Of those whose
// code was taken the code is given up.
func (b *batch) store(ctx context.Context, rows []*Row) error {
	if err := b.record(ctx, rows); err != nil {
		return err
	}
	rest, err := b.enqueue(ctx, rows)
	if err != nil || len(rest) == 0 {
		return err
	}
	return b.insert(ctx, rest)
}

// insert writes rows in one transaction.
func (b *batch) insert(ctx context.Context, rows []*Row) error {
	if len(rows) == 1 {
		r := rows[0]
		result, err := retryUncertain(ctx, b.c.metrics.retries, r.link.Key, func() (link.Result, error) { return b.c.insertOne(ctx, b.now, r) })
		if err == nil {
			b.accept(ctx, r, &result)
		}
		return err
	}
	entries := make([]link.Creation, len(rows))
	for i, r := range rows {
		entries[i] = link.Creation{Link: r.link.Link, Dedupe: r.dedupes()}
	}
	results, err := retryUncertain(ctx, b.c.metrics.retries, rows[0].link.Key, func() ([]link.Result, error) { return b.c.batcher.CreateMany(ctx, b.now, entries) })
	if err != nil {
		return err
	}
	for i, r := range rows {
		b.accept(ctx, r, &results[i])
	}
	return nil
}

// accept takes over what the store says of a row.
func (b *batch) accept(ctx context.Context, r *Row, result *link.Result) {
	r.Result, r.Err = shorten.Result{Link: result.Link, Found: result.Found}, result.Err
	switch {
	case r.Err == nil && b.promise != nil && r.Result.Link.Status == link.Deleted:
		r.Err = shorten.ErrLinkGone // an earlier try created it
	case errors.Is(r.Err, link.ErrExists) && r.Request.Alias.Some():
		b.c.cfg.Aliases.Found(b.now, r.link.Workspace, r.link.Key, occupant(r.Err))
		r.Result, r.Err = b.c.onAliasTaken(ctx, b.now, r.link.Link, &r.Request, r.Err)
	case errors.Is(r.Err, link.ErrExists):
		b.c.onCodeTaken(r.link.Key.Code)
		r.link.Key.Code, r.Err = "", nil
		r.taken++
		return
	}
	if r.done = r.Err == nil; r.done {
		if !r.Request.Alias.Some() && !r.Result.Found {
			b.c.metrics.tries.Observe(float64(r.taken + 1))
		}
		b.c.report(r.Result)
		if r.Request.Alias.Some() {
			b.c.cfg.Aliases.Found(b.now, r.link.Workspace, r.Result.Link.Key, link.Occupant{Linked: true})
		}
	}
}

// record writes the decisions about the rows into the journal, but for those whose
// alias another link has.
func (b *batch) record(ctx context.Context, rows []*Row) error {
	var entering []*judge.Proposal
	for _, r := range rows {
		free := true
		if r.Request.Alias.Some() {
			var err error
			if free, err = b.c.aliasFree(ctx, &r.link); err != nil {
				return err
			}
		}
		if free {
			entering = append(entering, &r.link)
		}
	}
	return b.c.cfg.Judge.RecordNew(ctx, b.now, entering...)
}

// draft returns the link that the request asks for, without an id, and without a code
// unless it names one. From then on the request says whether to dedupe.
func (c *Creator) draft(now time.Time, who auth.Principal, req *shorten.Request) (link.Link, error) {
	now = now.UTC().Truncate(time.Millisecond)
	l := link.Link{
		Workspace: who.Workspace, CreatedBy: who.KeyID,
		Status: link.Active, Safety: link.Clean, Redirect: shorten.DefaultRedirect, NoIndex: true,
		Created: now, Updated: now,
	}
	if !req.LongURL.Given {
		return link.Link{}, shorten.Invalid("long_url", "is required")
	}
	if err := c.cfg.Rules.Apply(now, &l, &req.Fields); err != nil {
		return link.Link{}, err
	}
	var err error
	if l.Key.Domain, err = c.cfg.Rules.DomainOf(req.Domain); err != nil {
		return link.Link{}, err
	}
	if req.Alias.Some() {
		if err := c.cfg.Rules.CheckAlias(req.Alias.Value); err != nil {
			return link.Link{}, err
		}
		l.Key.Code = link.Code(req.Alias.Value)
	}
	return l, c.resolveDedupe(who, req)
}

// resolveDedupe fills in whether to dedupe where the request does not say so, and
// refuses to show a stranger's link to a caller without a key.
func (c *Creator) resolveDedupe(who auth.Principal, req *shorten.Request) error {
	if c.cfg.Dedupe && c.dedupe != nil && !req.Dedupe.Some() && !req.Alias.Some() && !who.IsAnonymous() {
		req.Dedupe = shorten.Value(true)
	}
	switch {
	case !req.Dedupe.Value:
		return nil
	case who.IsAnonymous():
		return shorten.Invalid("dedupe", "requires an API key")
	case c.dedupe == nil:
		return shorten.Invalid("dedupe", "is not supported by this link store")
	}
	return nil
}

// insertOne writes a single row, by the store's own calls, which may join it with those of other
// callers.
func (c *Creator) insertOne(ctx context.Context, now time.Time, row *Row) (r link.Result, err error) {
	if row.dedupes() {
		r.Link, r.Found, err = c.dedupe.FindOrCreate(ctx, row.link.Link, now)
	} else {
		r.Link, err = c.cfg.Store.Create(ctx, row.link.Link)
	}
	if errors.Is(err, link.ErrExists) {
		r.Err, err = err, nil
	}
	return r, err
}

// report announces what was made, and counts it.
func (c *Creator) report(made shorten.Result) {
	if made.Found {
		c.metrics.found.Inc()
		return
	}
	c.metrics.created.Inc()
	if made.Link.Safety != link.Clean {
		c.cfg.Judge.CountWarned()
	}
	if !made.Link.IsPending() { // the queue tells caches of those
		c.publish(made.Link)
	}
}

// publish lets caches know a link that they may believe unknown.
func (c *Creator) publish(l link.Link) {
	if l.CodeKind != link.Chosen {
		c.cfg.Created(l.Key)
	} else {
		c.cfg.Announce(link.Change{Key: l.Key, Version: l.Version})
	}
	c.cfg.Stored(l)
}

// maxCodes bounds the codes tried for one link. With a space that is half
// full, 20 misses in a row happen once in a million creates.
const maxCodes = 20

// code returns the next generated code that is no reserved or refused word, and counts
// the attempts. Any strategy can meet a code that is taken: it always takes the next.
func (c *Creator) code(ctx context.Context, need *codegen.Need) (link.Code, error) {
	for range maxCodes {
		code, err := c.cfg.Codes.Next(ctx, *need)
		if err != nil {
			return "", fmt.Errorf("generate a code: %w", err)
		}
		need.Attempt++
		if !shorten.Reserved(code) && c.cfg.Rules.CheckCode(string(code)) == nil {
			return code, nil
		}
	}
	return "", fmt.Errorf("%w: %d codes in a row were reserved", link.ErrUnavailable, maxCodes)
}

// onCodeTaken tells a strategy that promised otherwise that its code was taken, and raises
// an alarm.
func (c *Creator) onCodeTaken(code link.Code) {
	if c.cfg.Codes.Guarantee() == codegen.Unique {
		c.cfg.Codes.Burned(code)
		c.metrics.collisions.Inc()
	}
}
