package server

import (
	"context"
	"runtime"
	"sync"

	"curt/internal/clicks"
)

// questions run what takes long to answer, such as lists, searches, statistics and previews of
// bans, on a few threads that stand aside: however many are asked at once, redirects find a
// processor. They are taken in turn, and each is short, a page of a list at most, so that who
// asks for much does not keep others waiting.
//
// On the caller's goroutine instead, eight previews of bans at once took a visitor's p99 from
// 0.9 to 72 ms (docs/decisions/0040).
type questions struct {
	turns chan turn
	begun chan struct{} // closed when run begins, which is once
	ended chan struct{} // closed when it has ended
}

// turn is one part of an answer.
type turn struct {
	ctx     context.Context //nolint:containedctx // of compute
	compute func(context.Context) error
	done    chan<- outcome
}

// inTurn is the key of the contexts that compute is given.
type inTurn struct{}

type outcome struct {
	err      error
	panicked any
}

func newQuestions() *questions {
	return &questions{turns: make(chan turn), begun: make(chan struct{}), ended: make(chan struct{})}
}

// answer runs compute and returns its error, or the cause of ctx's end when that comes before its
// turn. What compute asks for in turn, with the context that it is given, belongs to its turn.
// Before run and after it, the caller runs it.
func (q *questions) answer(ctx context.Context, compute func(context.Context) error) error {
	select {
	case <-q.begun:
	default:
		return compute(ctx)
	}
	if ctx.Value(inTurn{}) != nil {
		return compute(ctx)
	}
	done := make(chan outcome, 1)
	select {
	case q.turns <- turn{context.WithValue(ctx, inTurn{}, true), compute, done}:
	case <-q.ended:
		return compute(ctx)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	o := <-done
	if o.panicked != nil {
		panic(o.panicked) // where somebody answers for it
	}
	return o.err
}

// run answers until ctx ends; standAside is called on each goroutine that does.
func (q *questions) run(ctx context.Context, standAside func()) error {
	var all sync.WaitGroup
	for range questionThreads(runtime.GOMAXPROCS(0)) {
		all.Go(func() {
			standAside()
			for {
				select {
				case t := <-q.turns:
					t.run()
				case <-ctx.Done():
					return
				}
			}
		})
	}
	close(q.begun)
	all.Wait()
	close(q.ended)
	return nil
}

// questionThreads leaves half of the processors to redirects where there are more than two. With
// two, both are used: those threads have a tenth of what another gets.
func questionThreads(processors int) int { return max(min(processors, 2), processors/2) }

func (t turn) run() {
	var o outcome
	defer func() {
		o.panicked = recover()
		t.done <- o
	}()
	o.err = t.compute(t.ctx)
}

// clickLog is read in turns.
type clickLog struct {
	*clicks.History
	questions *questions
}

// Page implements analytics.History.
func (c clickLog) Page(ctx context.Context, q clicks.HistoryQuery) (page clicks.HistoryPage, err error) {
	err = c.questions.answer(ctx, func(ctx context.Context) (err error) {
		page, err = c.History.Page(ctx, q)
		return err
	})
	return page, err
}
