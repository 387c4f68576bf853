package create

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"curt/internal/idempotency"
	"curt/internal/link"
	"curt/internal/ratelimit"
	"curt/internal/shorten"
)

// promise is what is filed under the idempotency key of a batch.
type promise struct {
	name    idempotency.Name
	print   [32]byte
	rec     idempotency.Record // what stands under the name, when filed
	filed   bool
	retried bool // an earlier try has filed it
}

// errOvertaken: another process has filed something else under the key first.
var errOvertaken = errors.New("another request used the idempotency key concurrently")

// createIdempotent is create under the caller's idempotency key. The record is written before the
// links, with the ids and codes that they will have, so that every later try, in this process
// or after its end, asks the store for the same links until it answers; tries at the same
// time wait for the first. Two processes decide by compare-and-swap of the record what a code
// that was taken is replaced by: no store is asked for a link of one id under two codes.
//
// What a try leaves behind:
//   - created: the record stands for a day, and each retry is answered with its links, as they
//     stand; it costs nothing of the limits;
//   - refused as a whole before anything was written (a limit, a bad field): no record;
//   - of a batch, a refused row is judged again by a retry, at the time of the record, and one
//     that found a link finds what stands in by then;
//   - the alias of a single request is taken: the record goes. The alias of a link is never freed, so
//     that a retry of the same request is refused in the same words, and the key may be used again. One
//     that others hold may be free when the request is retried, which then creates the link;
//   - a generated code is taken: the record gets the next one. A code that is taken stays
//     taken, so nobody can create the link under the old one;
//   - the store cannot be asked: the record stays, and a retry goes on from it.
func (c *Creator) createIdempotent(ctx context.Context, now time.Time, cause shorten.Cause, rows []Row, list bool) (*ratelimit.Verdict, error) {
	switch {
	case cause.Principal.IsAnonymous():
		return nil, shorten.Invalid("Idempotency-Key", "requires an API key")
	case c.cfg.Once == nil:
		return nil, shorten.Invalid("Idempotency-Key", "is not supported by this service")
	}
	print, err := fingerprint(rows, list)
	if err != nil {
		return nil, err
	}
	kept := &promise{name: idempotency.Name{Caller: cause.Principal.KeyID, Key: cause.IdempotencyKey}, print: print}
	done, err := c.inflight.wait(ctx, kept.name)
	if err != nil {
		return nil, err
	}
	defer done()
	kept.rec, err = c.cfg.Once.Find(ctx, kept.name)
	if err != nil && !errors.Is(err, link.ErrNotFound) {
		return nil, fmt.Errorf("use an idempotency key: %w", err)
	}
	kept.filed = err == nil && !kept.rec.Created.Before(now.Add(-idempotency.Retention))
	asked := slices.Clone(rows)
	b := &batch{c: c, now: now, who: cause.Principal, rows: rows, list: list, promise: kept, written: cause.Written}
	var verdict *ratelimit.Verdict
	for range maxCodes {
		if kept.retried = kept.filed; kept.retried {
			err = b.retry(ctx)
		} else {
			verdict, err = b.firstTry(ctx)
		}
		if !errors.Is(err, errOvertaken) {
			return verdict, err
		}
		copy(rows, asked)
	}
	return verdict, fmt.Errorf("%w: %w", link.ErrUnavailable, err)
}

// fingerprint tells requests apart by what they ask for, not by how it was written. Fields
// that are absent leave no trace, so that a release with new fields knows the requests of the
// one before. Rows of a list that are no requests are all alike, because nothing comes of them.
func fingerprint(rows []Row, list bool) (sum [32]byte, err error) {
	requests := make([]*shorten.Request, len(rows))
	for i := range rows {
		if rows[i].Err == nil {
			asked := rows[i].Request
			asked.Limit = nil
			requests[i] = &asked
		}
	}
	var what any = requests
	if !list {
		what = requests[0]
	}
	hash := sha256.New() // the text may be as large as the batch, and is needed by nobody
	if err := json.MarshalWrite(hash, what, json.OmitZeroStructFields(true)); err != nil {
		return sum, fmt.Errorf("hash a request: %w", err)
	}
	return [32]byte(hash.Sum(nil)), nil
}

// firstTry is the first try under a key.
func (b *batch) firstTry(ctx context.Context) (*ratelimit.Verdict, error) {
	b.at = b.now.UTC().Truncate(time.Millisecond)
	verdict, err := b.admit(ctx)
	if err != nil || len(b.waiting()) == 0 { // nothing comes of any row, now or later
		return nil, err
	}
	defer b.refer(ctx)
	defer b.c.cfg.Judge.BeginWrite()()
	b.assess(ctx)
	if !b.list && b.rows[0].Err != nil {
		return verdict, nil
	}
	b.find(ctx)
	return verdict, b.finish(ctx)
}

// retry answers with the links that there are, and creates the others from the draft that they
// would have been when the record was filed.
func (b *batch) retry(ctx context.Context) error {
	if err := b.recall(ctx); err != nil {
		return err
	}
	defer b.refer(ctx)
	defer b.c.cfg.Judge.BeginWrite()()
	b.assess(ctx)
	b.find(ctx)
	return b.finish(ctx)
}

// Recall answers rows with the links that an earlier CreateMany of the same rows has created under the
// caller's idempotency key, or has found, and writes nothing: the caller may have lost its rights.
// A row without a link gets ErrNotCreated. created = false: the earlier call created no link, or
// there was none.
func (c *Creator) Recall(ctx context.Context, now time.Time, cause shorten.Cause, rows []Row) (created bool, err error) {
	print, err := fingerprint(rows, true)
	if err != nil {
		return false, err
	}
	kept := &promise{name: idempotency.Name{Caller: cause.Principal.KeyID, Key: cause.IdempotencyKey}, print: print}
	done, err := c.inflight.wait(ctx, kept.name)
	if err != nil {
		return false, err
	}
	defer done()
	kept.rec, err = c.cfg.Once.Find(ctx, kept.name)
	switch {
	case errors.Is(err, link.ErrNotFound):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("find an idempotency key: %w", err)
	case kept.rec.Created.Before(now.Add(-idempotency.Retention)):
		return false, nil
	}
	b := &batch{c: c, now: now, who: cause.Principal, rows: rows, list: true, promise: kept}
	if err := b.recall(ctx); err != nil {
		return false, err
	}
	for i := range rows {
		created = created || rows[i].done
	}
	for _, r := range b.waiting() {
		if r.dedupes() { // another link was found for it when the batch was written
			r.link.Key.Code = ""
		}
	}
	b.find(ctx)
	for _, r := range b.waiting() {
		r.Err = ErrNotCreated
	}
	return created, nil
}

// ErrNotCreated means that a row has no link.
var ErrNotCreated = errors.New("the link was not created")

// recall answers the rows whose links there are.
func (b *batch) recall(ctx context.Context) error {
	rec := &b.promise.rec
	if rec.Request != b.promise.print {
		return shorten.ErrKeyReused
	}
	b.c.metrics.replays.Inc()
	b.at = rec.Created
	b.draft(rec.ID)
	b.adopt(rec)
	return b.findStored(ctx)
}

// adopt gives the rows the codes that they were promised.
func (b *batch) adopt(rec *idempotency.Record) {
	if !b.list {
		b.rows[0].link.Key, b.rows[0].link.CodeKind, b.rows[0].need.Attempt = rec.Link, rec.CodeKind, 1
		return
	}
	for i, code := range decodeCodes(rec.Codes) {
		if i < len(b.rows) && code.code != "" {
			r := &b.rows[i]
			r.link.Key.Code, r.link.CodeKind, r.need.Attempt = code.code, code.kind, 1
		}
	}
}

// findStored answers the rows whose links there are. The try that created them may have ended
// before it announced them.
func (b *batch) findStored(ctx context.Context) error {
	if b.list && b.promise.rec.Codes == "" {
		return b.findStoredByID(ctx)
	}
	var rows []*Row
	var keys []link.Key
	for i := range b.rows {
		r := &b.rows[i]
		if r.link.Key.Code != "" && (r.Err == nil || !b.list) { // a single link stands whatever the rules say by now
			rows, keys = append(rows, r), append(keys, r.link.Key)
		}
	}
	pending := make([]link.Link, len(keys))
	for i, k := range keys {
		pending[i], _ = b.c.queue.Find(k)
	}
	links, err := link.GetMany(ctx, b.c.cfg.Store, keys)
	if err != nil {
		return fmt.Errorf("find the links of an idempotency key: %w", err)
	}
	for i, r := range rows {
		switch r.link.ID {
		case links[i].ID:
			b.useStored(r, &links[i])
		case pending[i].ID:
			b.useStored(r, &pending[i])
		}
	}
	return nil
}

// findStoredByID is findStored for a record of a release that filed no codes of batches, but found
// links by their ids: it is needed until such records are a day old.
func (b *batch) findStoredByID(ctx context.Context) error {
	rows := b.waiting()
	if len(rows) == 0 {
		return nil
	}
	last := rows[len(rows)-1].link.ID
	there := make(map[link.ID]*link.Link, len(rows))
	filter := link.Filter{Workspace: b.who.Workspace, Since: rows[0].link.ID, Oldest: true}
	for page := (link.Page{Limit: link.MaxPage}); ; {
		slice, err := b.c.cfg.Store.List(ctx, filter, page)
		if err != nil {
			return fmt.Errorf("find the links of an idempotency key: %w", err)
		}
		for i := range slice.Links {
			there[slice.Links[i].ID] = &slice.Links[i]
		}
		if n := len(slice.Links); slice.Next == "" || n > 0 && bytes.Compare(slice.Links[n-1].ID[:], last[:]) >= 0 {
			break
		}
		page.After = slice.Next
	}
	for _, r := range rows {
		if l := there[r.link.ID]; l != nil {
			b.useStored(r, l)
		}
	}
	return nil
}

// useStored answers a row with its link, which there is.
func (b *batch) useStored(r *Row, l *link.Link) {
	r.Err, r.done = nil, true
	r.link.Key, r.link.CodeKind = l.Key, l.CodeKind // what its record may not say yet
	if l.Status == link.Deleted {
		if r.Err = shorten.Unwritten(l); r.Err == nil {
			r.Err = shorten.ErrLinkGone
		}
		return
	}
	r.Result = shorten.Result{Link: *l, Found: b.promise.rec.Found}
	if !r.Result.Found && !l.IsPending() {
		b.c.publish(*l)
	}
}

// finish writes what is left, and files what came of it.
func (b *batch) finish(ctx context.Context) error {
	if err := b.write(ctx); err != nil {
		return err
	}
	if !b.list && errors.Is(b.rows[0].Err, link.ErrExists) && b.promise.filed {
		return b.c.cfg.Once.Release(ctx, b.promise.name, b.promise.rec)
	}
	if b.promise.filed && b.promise.rec == b.promised() {
		return nil
	}
	return b.file(ctx)
}

// promised is what the rows are promised as they are now.
func (b *batch) promised() idempotency.Record {
	if b.list {
		return idempotency.Record{Request: b.promise.print, ID: b.rows[0].link.ID, Codes: encodeCodes(b.rows), Created: b.at}
	}
	l, found := &b.rows[0].link.Link, false
	if r := &b.rows[0]; r.done && r.Err == nil && r.Result.Found { // from now on the key stands for the link that was found
		l, found = &r.Result.Link, true
	}
	return idempotency.Record{Request: b.promise.print, ID: l.ID, Link: l.Key, CodeKind: l.CodeKind, Found: found, Created: b.at}
}

// file saves what the rows are promised. What another process has filed stands:
// errOvertaken.
func (b *batch) file(ctx context.Context) error {
	kept, next := b.promise, b.promised()
	stands, err := retryUncertain(ctx, b.c.metrics.retries, next.ID, func() (idempotency.Record, error) {
		if !kept.filed {
			return b.c.cfg.Once.Claim(ctx, kept.name, next, b.now.Add(-idempotency.Retention))
		}
		return next, b.c.cfg.Once.Change(ctx, kept.name, kept.rec, next)
	})
	if errors.Is(err, link.ErrConflict) {
		stands, err = b.c.cfg.Once.Find(ctx, kept.name)
	}
	if err != nil {
		return fmt.Errorf("use an idempotency key: %w", err)
	}
	kept.rec, kept.filed = stands, true
	if stands != next {
		return errOvertaken
	}
	return nil
}

// givenCode is the code of a row; zero = it has none of its own.
type givenCode struct {
	kind link.CodeKind
	code link.Code
}

// encodeCodes writes the generated codes of rows, each behind a comma and the number of its kind:
// ",1Ab3xYz9,,1Cd5uVw7".
func encodeCodes(rows []Row) string {
	var text strings.Builder
	for i := range rows {
		text.WriteByte(',')
		if l := &rows[i].link; !rows[i].Request.Alias.Some() && l.Key.Code != "" {
			text.WriteByte('0' + byte(l.CodeKind))
			text.WriteString(string(l.Key.Code))
		}
	}
	return text.String()
}

func decodeCodes(text string) (codes []givenCode) {
	for row := range strings.SplitSeq(strings.TrimPrefix(text, ","), ",") {
		var p givenCode
		if len(row) > 1 {
			p = givenCode{link.CodeKind(row[0] - '0'), link.Code(row[1:])}
		}
		codes = append(codes, p)
	}
	return codes
}

// busyWait is how long a request waits for others with its idempotency key.
const busyWait = 5 * time.Second

// inflight lets one request at a time use an idempotency key; the others wait, and then find
// what it has filed. Those of other processes are kept apart by the store of keys alone.
type inflight struct {
	mu      sync.Mutex
	flights map[idempotency.Name]*flight // guarded by mu
}

// flight is a key that is in use.
type flight struct {
	held  chan struct{} // capacity 1: full while a request has the key
	users int           // guarded by inflight.mu: who has it or waits for it
}

func newInflight() *inflight { return &inflight{flights: map[idempotency.Name]*flight{}} }

// lock returns when it is the caller's turn, which it must give back with done.
func (a *inflight) wait(ctx context.Context, name idempotency.Name) (done func(), err error) {
	mine := a.enter(name)
	patience := time.NewTimer(busyWait)
	defer patience.Stop()
	select {
	case mine.held <- struct{}{}:
		return func() { <-mine.held; a.leave(name, mine) }, nil
	case <-patience.C:
		err = shorten.ErrKeyBusy
	case <-ctx.Done():
		err = fmt.Errorf("wait for an idempotency key: %w", context.Cause(ctx))
	}
	a.leave(name, mine)
	return nil, err
}

func (a *inflight) enter(name idempotency.Name) *flight {
	a.mu.Lock()
	defer a.mu.Unlock()
	mine := a.flights[name]
	if mine == nil {
		mine = &flight{held: make(chan struct{}, 1)}
		a.flights[name] = mine
	}
	mine.users++
	return mine
}

func (a *inflight) leave(name idempotency.Name, mine *flight) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if mine.users--; mine.users == 0 {
		delete(a.flights, name)
	}
}
