package background

import (
	"context"
	"runtime"
	"sync"
)

// queue runs long queries, such as lists, searches, statistics and previews of bans, on a few
// threads of low priority: redirects find a processor however many queries there are. They run in
// order, and each is short, a page of a list at most, so that a large query does not hold up small
// ones.
//
// On the caller's goroutine instead, eight previews of bans at once raised a visitor's p99 from
// 0.9 to 72 ms (docs/decisions/0040).
type queue struct {
	jobs  chan job
	begun chan struct{} // closed when run begins, which is once
	ended chan struct{} // closed when it has ended
}

// job is one part of an answer.
type job struct {
	ctx   context.Context //nolint:containedctx // of query
	query func(context.Context) error
	done  chan<- outcome
}

// inQueue is the key of the contexts that queries are given.
type inQueue struct{}

type outcome struct {
	err      error
	panicked any
}

func newQueue() *queue {
	return &queue{jobs: make(chan job), begun: make(chan struct{}), ended: make(chan struct{})}
}

// do is Yielder.Queue.
func (q *queue) do(ctx context.Context, query func(context.Context) error) error {
	select {
	case <-q.begun:
	default:
		return query(ctx)
	}
	if ctx.Value(inQueue{}) != nil {
		return query(ctx)
	}
	done := make(chan outcome, 1)
	select {
	case q.jobs <- job{context.WithValue(ctx, inQueue{}, true), query, done}:
	case <-q.ended:
		return query(ctx)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	o := <-done
	if o.panicked != nil {
		panic(o.panicked) // the caller's recover answers for it
	}
	return o.err
}

// run runs queries until ctx ends; lowerPriority is called on each goroutine that does.
func (q *queue) run(ctx context.Context, lowerPriority func()) error {
	var all sync.WaitGroup
	for range queueThreads(runtime.GOMAXPROCS(0)) {
		all.Go(func() {
			lowerPriority()
			for {
				select {
				case j := <-q.jobs:
					j.run()
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

// queueThreads leaves half of the processors to redirects where there are more than two. With two,
// both are used: those threads have a tenth of what another gets.
func queueThreads(processors int) int { return max(min(processors, 2), processors/2) }

func (j job) run() {
	var o outcome
	defer func() {
		o.panicked = recover()
		j.done <- o
	}()
	o.err = j.query(j.ctx)
}
