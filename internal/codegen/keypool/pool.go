package keypool

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"curt/internal/codegen"
	"curt/internal/link"
	"curt/internal/repeatlog"
)

const (
	// defaultHeld keys are ten seconds of 1,000 creates a second.
	defaultHeld = 10 * BatchSize

	// storeTimeout bounds one call of Run, behind which Next may be waiting.
	storeTimeout = 5 * time.Second

	// retryPause is how long after a failure, or an empty pool, Run tries again.
	retryPause = time.Second

	// levelEvery is the pause between two readings of the level.
	levelEvery = 5 * time.Second

	// renewEvery and silence: a holder that has missed five renewals does not live.
	renewEvery = 10 * time.Minute
	silence    = time.Hour
)

// Config says where a Pool takes keys from.
type Config struct {
	Store  Store
	Pool   string        // its name
	Holder string        // names this server among those that take from the store, for good
	Kind   link.CodeKind // of the pool's keys
	Held   int           // keys in memory; 0 = 10,000

	// Exhausted reports whether nothing can be added to the pool any more. Nil = never.
	Exhausted func(ctx context.Context) (bool, error)

	Log *slog.Logger // nil = silence
}

// Pool is the strategy "pool" of a server. Its guarantee is Unique, as that of the strategy that filled the
// store. Next takes a key from memory; while Run runs, the memory is filled before it is empty.
//
// The keys of a batch are handed out in their order, so that links which are created one after the other are stored so.
type Pool struct {
	config Config
	log    *slog.Logger
	level  levelWatch

	wake chan struct{} // capacity 1: Run should look

	// refill holds one token. Who takes it may take batches.
	refill chan struct{}

	mu      sync.Mutex
	closed  bool    // guarded by mu, as the next three: Run has put back what was left
	batches []*held // the first is at hand
	keys    int     // left in batches
	ended   []ended // batches to release

	stats counters
}

// held is a batch in memory. Its keys before next were handed out.
type held struct {
	Batch

	next int
}

// ended is a batch whose use is over.
type ended struct {
	Batch

	rest   []link.Code
	leaked int
}

// New returns a Pool that holds no keys yet.
func New(c Config) *Pool {
	if c.Held == 0 {
		c.Held = defaultHeld
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	p := &Pool{
		config: c, log: c.Log, level: levelWatch{store: c.Store, pool: c.Pool},
		wake: make(chan struct{}, 1), refill: make(chan struct{}, 1),
	}
	p.refill <- struct{}{}
	return p
}

// Next returns the next key. It asks the store only when none is in memory; of many callers that find none, one
// asks and the rest wait. The need does not matter. Errors are those of Generator; one for an empty pool wraps ErrEmpty,
// too.
func (p *Pool) Next(ctx context.Context, _ codegen.Need) (link.Code, error) {
	for {
		code, ok, err := p.pop()
		if ok || err != nil {
			return code, err
		}
		if err := p.fetch(ctx); err != nil {
			return "", err
		}
	}
}

// Guarantee is Unique.
func (p *Pool) Guarantee() codegen.Guarantee { return codegen.Unique }

// Kind is that of the pool's keys.
func (p *Pool) Kind() link.CodeKind { return p.config.Kind }

// Burned drops what is left of the batch that the code came from, which is leaked. A batch that was used up has
// nothing to drop.
func (p *Pool) Burned(code link.Code) {
	p.stats.burned.Add(1)
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, b := range p.batches {
		if slices.Contains(b.Keys[:b.next], code) {
			left := len(b.Keys) - b.next
			p.keys -= left
			p.batches = slices.Delete(p.batches, i, i+1)
			p.ended = append(p.ended, ended{Batch: b.Batch, leaked: left})
			p.wakeRun()
			return
		}
	}
}

// pop takes a key from memory.
func (p *Pool) pop() (code link.Code, ok bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return "", false, link.Unavailable(errors.New("the server is stopping"))
	}
	if len(p.batches) == 0 {
		return "", false, nil
	}
	b := p.batches[0]
	code = b.Keys[b.next]
	b.next++
	p.keys--
	if b.next == len(b.Keys) {
		p.batches = p.batches[1:]
		p.ended = append(p.ended, ended{Batch: b.Batch})
	}
	if p.missing() {
		p.wakeRun()
	}
	return code, true, nil
}

// missing reports whether a batch more would fit into memory. mu is held.
func (p *Pool) missing() bool { return p.keys == 0 || p.keys+BatchSize <= p.config.Held }

// wants is missing without the lock.
func (p *Pool) wants() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.missing() && !p.closed
}

// fetch takes a batch for a caller of Next, unless another caller just did.
func (p *Pool) fetch(ctx context.Context) error {
	if err := p.lock(ctx); err != nil {
		return err
	}
	defer p.unlock()
	p.mu.Lock()
	done := p.keys > 0 || p.closed
	p.mu.Unlock()
	if done {
		return nil
	}
	err := p.take(ctx)
	if err == nil {
		p.stats.inline.Add(1)
	}
	return err
}

// lock takes the token of refill. A mutex would not let go of a caller whose time is over.
func (p *Pool) lock(ctx context.Context) error {
	select {
	case <-p.refill:
		return nil
	case <-ctx.Done():
		return link.Unavailable(fmt.Errorf("wait for keys of %s: %w", p.config.Pool, context.Cause(ctx)))
	}
}

func (p *Pool) unlock() { p.refill <- struct{}{} }

// take moves a batch into memory. The token of refill is held.
func (p *Pool) take(ctx context.Context) error {
	b, err := p.config.Store.Take(ctx, p.config.Pool, p.config.Holder)
	switch {
	case errors.Is(err, ErrEmpty):
		p.stats.empty.Add(1)
		return p.whyEmpty(ctx, err)
	case err != nil:
		p.stats.failures.Add(1)
		if !errors.Is(err, link.ErrUnavailable) && !errors.Is(err, codegen.ErrExhausted) {
			err = link.Unavailable(err)
		}
		return err
	}
	p.stats.taken.Add(1)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.batches = append(p.batches, &held{Batch: b})
	p.keys += len(b.Keys)
	return nil
}

// whyEmpty tells an empty pool that a filler will fill from one that is empty for good.
func (p *Pool) whyEmpty(ctx context.Context, err error) error {
	if p.config.Exhausted != nil {
		if exhausted, asked := p.config.Exhausted(ctx); asked == nil && exhausted {
			return fmt.Errorf("take keys of %s: %w", p.config.Pool, codegen.ErrExhausted)
		}
	}
	return link.Unavailable(fmt.Errorf("%w; is a server with the role keys running?", err))
}

func (p *Pool) wakeRun() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// Start counts what the process of before has lost, and fills the memory. It is for the start of a server, which may go
// on without it: then the keys are not counted, and Run fills the memory.
func (p *Pool) Start(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	leaked, err := p.config.Store.Abandon(ctx, p.config.Holder)
	if err != nil {
		return fmt.Errorf("count lost keys: %w", err)
	}
	if leaked > 0 {
		p.log.WarnContext(ctx, "keys in memory were lost with the previous process and will not be used", slog.Uint64("leaked", leaked))
	}
	return p.fill(ctx)
}

// Run keeps the memory filled until ctx ends, then puts back what is left of it, and returns nil.
func (p *Pool) Run(ctx context.Context) error {
	var failing repeatlog.Condition
	look, renew := time.NewTicker(levelEvery), time.NewTicker(renewEvery)
	defer look.Stop()
	defer renew.Stop()
	_, _ = p.level.read(ctx) // the figure is missing then
	for {
		var retry <-chan time.Time
		err := errors.Join(p.release(ctx), p.fill(ctx))
		switch {
		case ctx.Err() != nil:
		case err != nil:
			failing.Log(ctx, time.Now(), p.log, slog.LevelWarn, "taking keys from the pool failed, retrying", err)
			retry = time.After(retryPause)
		default:
			failing.LogRecovery(ctx, time.Now(), p.log, "taking keys from the pool recovered")
		}
		select {
		case <-ctx.Done():
			p.putBack(ctx)
			return nil
		case <-p.wake:
			if retry != nil { // a create is no reason to try more often
				select {
				case <-retry:
				case <-ctx.Done():
				}
			}
		case <-retry:
		case <-look.C:
			_, _ = p.level.read(ctx)
		case <-renew.C:
			p.renew(ctx)
		}
	}
}

// fill takes batches until the memory is full.
func (p *Pool) fill(ctx context.Context) error {
	for ctx.Err() == nil && p.wants() {
		if err := p.takeAhead(ctx); err != nil {
			return err
		}
	}
	return nil
}

// takeAhead takes a batch if one fits. The end of ctx does not interrupt it: nobody would know whether it was taken.
func (p *Pool) takeAhead(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	if err := p.lock(ctx); err != nil {
		return err
	}
	defer p.unlock()
	if !p.wants() {
		return nil
	}
	return p.take(ctx)
}

// release tells the store which batches are used up. Those of which that fails stay held there, and are tried again.
func (p *Pool) release(ctx context.Context) error {
	p.mu.Lock()
	all := p.ended
	p.ended = nil
	p.mu.Unlock()
	for i, e := range all {
		within, cancel := context.WithTimeout(ctx, storeTimeout)
		err := p.config.Store.Release(within, e.Batch, e.rest, e.leaked)
		cancel()
		if err != nil && !errors.Is(err, link.ErrNotFound) {
			p.mu.Lock()
			p.ended = append(all[i:], p.ended...)
			p.mu.Unlock()
			return fmt.Errorf("release a batch of keys: %w", err)
		}
	}
	return nil
}

// putBack leaves no key in memory, for a server that stops. Where the store fails, the keys are lost, and the next start
// counts them.
func (p *Pool) putBack(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	if p.lock(ctx) == nil { // a caller that was taking a batch has it in memory
		defer p.unlock()
	}
	p.mu.Lock()
	p.closed = true
	for _, b := range p.batches {
		p.ended = append(p.ended, ended{Batch: b.Batch, rest: b.Keys[b.next:]})
	}
	p.batches, p.keys = nil, 0
	p.mu.Unlock()
	if err := p.release(ctx); err != nil {
		p.log.WarnContext(ctx, "keys could not be put back into the pool, the next start counts them as leaked", slog.Any("err", err))
	}
}

func (p *Pool) renew(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	leaked, err := p.config.Store.Renew(ctx, p.config.Holder, silence)
	switch {
	case err != nil && ctx.Err() == nil:
		p.log.WarnContext(ctx, "renewing keys in memory failed, retrying", slog.Any("err", err))
	case leaked > 0:
		p.log.WarnContext(ctx, "keys in the memory of servers that ended were lost", slog.Uint64("leaked", leaked))
	}
}

// Healthy returns nil while keys are in memory. It does no I/O.
func (p *Pool) Healthy() error {
	if p.Stats().Keys == 0 {
		return errNoKeys{}
	}
	return nil
}

// errNoKeys says that the memory is empty.
type errNoKeys struct{}

// Error implements error.
func (errNoKeys) Error() string { return "no keys in memory; is a server with the role keys running?" }

// PublicMessage returns the reason in words for the operator.
func (e errNoKeys) PublicMessage() string { return e.Error() }

// Unwrap has callers hear that keys are unavailable.
func (errNoKeys) Unwrap() error { return link.ErrUnavailable }

// Level returns what was read of the pool last; ok is false while nothing was.
func (p *Pool) Level() (Level, bool) { return p.level.last() }

// Stats are totals since the Pool was created, but for Keys.
type Stats struct {
	Keys     int    // in memory
	Taken    uint64 // batches
	Inline   uint64 // of them, those that a caller of Next had to wait for
	Empty    uint64 // attempts to take one from an empty pool
	Failures uint64 // attempts that the store refused
	Burned   uint64 // codes that were taken against the guarantee
}

type counters struct{ taken, inline, empty, failures, burned atomic.Uint64 }

// Stats returns the totals. Each is exact; together they are not one moment.
func (p *Pool) Stats() Stats {
	p.mu.Lock()
	keys := p.keys
	p.mu.Unlock()
	return Stats{
		Keys: keys, Taken: p.stats.taken.Load(), Inline: p.stats.inline.Load(), Empty: p.stats.empty.Load(),
		Failures: p.stats.failures.Load(), Burned: p.stats.burned.Load(),
	}
}
