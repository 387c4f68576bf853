package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"curt.example/client"
)

// tally is how a command fares that does the same with many things: one that fails has
// its line and does not save the others. It belongs to one goroutine.
type tally struct {
	t      terminal
	all    int
	failed int
	worst  int // the highest of their exit codes, which is the gravest
}

// each calls do with each thing. It stops where no further one can fare better: at
// Ctrl-C, and when the server is away or refuses the key.
func each[T any](ctx context.Context, y *tally, things []T, do func(T) error) error {
	for i, thing := range things {
		if ctx.Err() != nil {
			return y.left(errInterrupted, len(things)-i)
		}
		err := do(thing)
		switch {
		case err == nil:
		case hopeless(err):
			return y.left(err, len(things)-i)
		default:
			y.fail(err)
		}
	}
	return nil
}

func (y *tally) fail(err error) {
	y.failed++
	y.worst = max(y.worst, exitCode(err))
	y.t.complain(err)
}

// left returns err, with how many were not done.
func (y *tally) left(err error, n int) error {
	if y.all == 1 {
		return err
	}
	return fmt.Errorf("%w; %d of %d are not done", err, n, y.all)
}

// end returns what is left to say: one failure has said it all.
func (y *tally) end() error {
	if y.failed == 0 {
		return nil
	}
	err := fmt.Errorf("%d of %d failed", y.failed, y.all)
	if y.all > 1 {
		y.t.complain(err)
	}
	return saidError{coded{err, y.worst}}
}

// coded is an error that has its exit code.
type coded struct {
	error
	code int
}

// hopeless reports whether the next call of the server would fail alike.
func hopeless(err error) bool {
	problem, explained := errors.AsType[*client.Problem](err)
	return errors.Is(err, client.ErrNoAnswer) || errors.Is(err, context.Canceled) ||
		explained && (problem.Status == http.StatusUnauthorized || problem.Status == http.StatusForbidden)
}
