package sqlitedb

import (
	"context"
	"database/sql"
	"fmt"
	"runtime"
	"sync"
	"time"

	"curt/internal/link"
	"curt/internal/telemetry"
)

// maxBatch is how many rows one transaction may write for several callers. It
// bounds how long the last of them waits: 512 rows take about 20 ms.
const maxBatch = 512

// gather looks every gatherStep whether more callers came, for maxGather at most,
// whatever a commit took. The step is the time that ten creates take to get from
// their sockets into the queue.
const (
	gatherStep = 100 * time.Microsecond
	maxGather  = 2 * time.Millisecond
)

// writer owns the one connection that writes curt.db and joins concurrent writes
// into one transaction: while a commit waits for the disk, callers queue up, and
// the next commit is for all of them. Every caller gets their own answer.
//
// It runs a goroutine only while there is something to write, so that a caller
// whose context ends can leave at once; close waits for it.
type writer struct {
	conn      *Conn
	committed chan struct{} // capacity 1: told after commits; the checkpointer listens
	config    StoreConfig

	mu         sync.Mutex
	idle       sync.Cond  // on mu: running became false
	queue      []*writeOp // guarded by mu, as all below
	running    bool       // a goroutine is in drain
	closed     bool
	broken     error  // why no write is accepted; nil while all is well
	recovering bool   // broken is what SQLite calls damage, and is being looked into
	recover    func() // looks into it, in a goroutine of its own; nil = nobody does; set once
	recoveries sync.WaitGroup
	classify   func(error) error // what an error is; set once
}

// writeOp is one caller's write. apply runs inside a transaction, may run again when
// the transaction is repeated without another caller's failed write, and must leave
// the file unchanged when it returns an error that is not systemic.
type writeOp struct {
	ctx     context.Context //nolint:containedctx // only asked whether the caller still waits
	rows    int
	apply   func(t *Tx) error
	alone   func() error // instead of apply: outside of any transaction, while nobody writes
	lenient bool         // what an index lacks is no error
	err     error        // valid once done is closed
	done    chan struct{}
}

func newWriter(c *Conn, config StoreConfig) *writer {
	w := &writer{conn: c, config: config, committed: make(chan struct{}, 1)}
	w.idle.L = &w.mu
	return w
}

// write runs apply in a transaction and returns its error once that is durable. link.ErrUncertain,
// and the cause of an ended context, mean "may have happened".
func (w *writer) write(ctx context.Context, rows int, apply func(t *Tx) error) error {
	return w.submit(&writeOp{ctx: ctx, rows: rows, apply: apply, done: make(chan struct{})})
}

// exclusive runs f while nobody writes.
func (w *writer) exclusive(ctx context.Context, f func() error) error {
	return w.submit(&writeOp{ctx: ctx, rows: 1, alone: f, done: make(chan struct{})})
}

func (w *writer) submit(op *writeOp) error {
	if op.ctx.Err() != nil {
		return context.Cause(op.ctx)
	}
	if err := w.enqueue(op); err != nil {
		return err
	}
	select {
	case <-op.done:
		return op.err
	case <-op.ctx.Done():
		return fmt.Errorf("gave up before the commit, which may still happen: %w", context.Cause(op.ctx))
	}
}

func (w *writer) enqueue(op *writeOp) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return fmt.Errorf("closed: %w", link.ErrUnavailable)
	}
	if w.broken != nil {
		return fmt.Errorf("writes stopped: %w: %w", link.ErrUnavailable, w.broken)
	}
	w.queue = append(w.queue, op)
	if !w.running {
		w.running = true
		go w.drain()
	}
	return nil
}

// drain commits batches until nothing is queued.
func (w *writer) drain() {
	for {
		// On one processor the commit stops everything else, and the scheduler would
		// run it before the callers that are about to queue up.
		runtime.Gosched()
		batch := w.take()
		if len(batch) == 0 {
			return
		}
		began := time.Now()
		w.run(batch)
		for _, op := range batch {
			close(op.done)
		}
		select {
		case w.committed <- struct{}{}:
		default:
		}
		w.gather(len(batch), min(time.Since(began), maxGather))
	}
}

// gather waits for the callers that were just answered to come back with their next
// write: until the queue has not grown for two looks, but no longer than the last commit
// took. An fsync costs about 0.3 ms of processor time beside the wait for the disk,
// so that a few large commits carry more writes than many small ones. A single
// caller never waits: nobody else is expected.
func (w *writer) gather(answered int, limit time.Duration) {
	if answered < 2 {
		return
	}
	began := time.Now()
	for before, quiet := -1, 0; quiet < 2 && time.Since(began) < limit; {
		time.Sleep(gatherStep)
		now := w.queued()
		if quiet++; now != before {
			before, quiet = now, 0
		}
	}
}

func (w *writer) queued() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.queue)
}

// take removes the next batch from the queue; an empty one ends drain.
func (w *writer) take() []*writeOp {
	w.mu.Lock()
	defer w.mu.Unlock()
	rows, n := 0, 0
	for n < len(w.queue) && (n == 0 || rows+w.queue[n].rows <= maxBatch && w.queue[n].alone == nil) {
		rows += w.queue[n].rows
		n++
		if w.queue[n-1].alone != nil {
			break
		}
	}
	batch := w.queue[:n:n]
	w.queue = w.queue[n:]
	if n == 0 {
		w.running, w.queue = false, nil
		w.idle.Broadcast()
	}
	return batch
}

// run answers every op of the batch.
func (w *writer) run(batch []*writeOp) {
	waiting := batch[:0:0]
	for _, op := range batch {
		switch err := w.failure(); {
		case err != nil:
			op.err = fmt.Errorf("writes stopped: %w: %w", link.ErrUnavailable, err)
		case op.ctx.Err() != nil:
			op.err = context.Cause(op.ctx) // nobody waits for it any more
		case op.alone != nil:
			op.err = op.alone()
		default:
			waiting = append(waiting, op)
		}
	}
	// Each round but the last takes one op out, so this ends.
	for len(waiting) > 0 {
		failed, err := w.transact(waiting)
		if failed == nil {
			for _, op := range waiting {
				if err != nil {
					op.err = err
				}
			}
			return
		}
		failed.err = err
		if ResultCode(err) == codeCorruptIndex && !failed.lenient {
			w.leniently(failed)
		}
		waiting = without(waiting, failed)
	}
}

// leniently repeats a write that changes a row of which an index has no entry, because a bit
// of the entry flipped: that is what writable_schema does besides what it is named for. The
// damaged entry stays in the index, where walks pass it over, and doctor names it. Nobody
// else's write suffers from it.
func (w *writer) leniently(op *writeOp) {
	op.lenient = true
	set := func(to string) error {
		return w.conn.Do(func(t *Tx) error { return t.Each("PRAGMA writable_schema = "+to, Ignore) })
	}
	if err := set("1"); err != nil {
		return // it keeps the error that it has
	}
	if failed, err := w.transact([]*writeOp{op}); failed != nil || err != nil {
		op.err = err
	}
	if err := set("0"); err != nil {
		w.stop(err)
	}
}

func without(ops []*writeOp, failed *writeOp) []*writeOp {
	var rest []*writeOp
	for _, op := range ops {
		if op != failed {
			rest = append(rest, op)
		}
	}
	return rest
}

const (
	SQLBegin  = `BEGIN IMMEDIATE`
	SQLCommit = `COMMIT`
)

// transact applies all ops in one transaction. With failed set, that op alone spoiled
// it and nothing happened; otherwise err is the answer for everybody, or nil when
// each op holds its own.
func (w *writer) transact(ops []*writeOp) (failed *writeOp, err error) {
	span := w.span(ops)
	defer func() { span.End(err) }()
	err = w.conn.Do(func(t *Tx) error {
		if _, err := t.Exec(SQLBegin); err != nil {
			return w.stopIf(IsDamage(err), err, w.classify(fmt.Errorf("begin: %w", err)))
		}
		for _, op := range ops {
			op.err = op.apply(t)
			if ResultCode(op.err) == 0 {
				continue // done, or refused by rule: the others go on
			}
			w.rollback(t)
			lacks := ResultCode(op.err) == codeCorruptIndex
			if !systemic(op.err) || lacks {
				failed = op
			}
			return w.stopIf(IsDamage(op.err) && !lacks, op.err, w.classify(op.err))
		}
		if err := w.config.BeforeCommit(t); err != nil {
			w.rollback(t)
			return w.stopIf(IsDamage(err), err, w.classify(err))
		}
		if _, err := t.Exec(SQLCommit); err != nil {
			w.rollback(t)
			if !uncertain(err) {
				return w.classify(fmt.Errorf("commit: %w", err))
			}
			// After a failed fsync nobody knows what is on the disk, and a second
			// fsync would answer for pages that the kernel has dropped.
			return w.stopIf(ResultCode(err) != codeShmSize, err, fmt.Errorf("commit: %w: %w", link.ErrUncertain, err))
		}
		w.config.Committed()
		return nil
	})
	return failed, err
}

// span begins the span of a transaction, for all whose writes are in it.
func (w *writer) span(ops []*writeOp) telemetry.Span {
	if w.config.Tracer == nil {
		return telemetry.Span{} // without the list
	}
	var callers []context.Context
	rows := 0
	for _, op := range ops {
		callers = append(callers, op.ctx)
		rows += op.rows
	}
	span := w.config.Tracer.StartFor(callers, "curt.db transaction")
	span.Int("curt.writes", len(ops))
	span.Int("curt.rows", rows)
	return span
}

const SQLRollback = `ROLLBACK`

// rollback ends a transaction that failed. SQLite may have ended it already, which
// is then the error, so there is nothing to do about one.
func (w *writer) rollback(t *Tx) {
	w.config.RolledBack()
	if _, err := t.Exec(SQLRollback); err != nil && systemic(err) {
		w.stop(err)
	}
}

// stopIf refuses all further writes because of cause when broken, and returns the answer.
func (w *writer) stopIf(broken bool, cause, answer error) error {
	if broken {
		w.stop(cause)
	}
	return answer
}

func (w *writer) stop(cause error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.broken == nil && IsDamage(cause) && w.recover != nil && !w.closed:
		w.broken, w.recovering = fmt.Errorf("%w; the cause is being determined: %w", ErrUnreadable, cause), true
		w.recoveries.Go(w.recover)
	case w.broken == nil, w.recovering && !IsDamage(cause): // there is no way back from what a write or an fsync has failed of
		w.broken, w.recovering = cause, false
	}
}

// freeze refuses writes until thaw, unless they are refused already. It is called while nobody
// writes.
func (w *writer) freeze() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.broken == nil {
		w.broken = ErrFrozen
	}
	if w.broken == ErrFrozen { //nolint:errorlint // what is set here, not what wraps it
		return nil
	}
	return w.broken
}

// thaw ends what freeze began.
func (w *writer) thaw() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.broken == ErrFrozen { //nolint:errorlint // as above
		w.broken = nil
	}
}

// setCause says why writes are refused while that is looked into.
func (w *writer) setCause(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.recovering {
		w.broken = err
	}
}

// resume accepts writes again, on a new connection, and reports whether it does.
func (w *writer) resume(ctx context.Context, db *sql.DB) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.running {
		w.idle.Wait()
	}
	if !w.recovering || w.closed {
		return false
	}
	w.conn.discard()
	c, err := NewConn(ctx, db)
	if err != nil {
		return false
	}
	w.config.RolledBack()
	w.conn, w.broken, w.recovering = c, nil, false
	return true
}

// failure returns why writes are refused; nil while they are not.
func (w *writer) failure() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.broken
}

// close refuses new writes and waits for those that were accepted.
func (w *writer) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	for w.running {
		w.idle.Wait()
	}
}
