package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"curt.example/client"
)

// bulk makes a link of each row, as many in one request as there are. It belongs to
// one goroutine.
type bulk struct {
	api      *client.Client
	template client.NewLink
	json     bool
	t        terminal
	progress *progress
	patient  bool // wait when the server asks to

	made, failed, seen int
}

// run takes rows until there are none. Ctrl-C ends it after the request under way, so
// that what it says is what was made.
func (b *bulk) run(ctx context.Context, rows <-chan row) error {
	most := maxRows
	var waiting []row
	for {
		var err error
		if len(waiting) == 0 {
			if waiting, err = next(ctx, rows, most); err != nil {
				return b.stopped(err)
			}
			if len(waiting) == 0 {
				return b.done()
			}
		}
		n := min(most, len(waiting))
		results, err := b.request(ctx, waiting[:n])
		wait := refusedFor(err)
		switch {
		case err == nil:
			if err := b.print(waiting[:n], results); err != nil {
				return err
			}
			waiting, most = waiting[n:], min(2*most, maxRows)
		case n > 1 && (wait >= 0 || tooMany(err)): // fewer may pass
			most = n / 2
		case wait >= 0 && b.patient:
			if err := b.pause(ctx, wait); err != nil {
				return b.stopped(err)
			}
		default:
			return b.stopped(err)
		}
	}
}

// next waits for a row and takes those that have come with it, most at the most.
func next(ctx context.Context, rows <-chan row, most int) (list []row, err error) {
	bytes := 0
	take := func(r row) {
		list, bytes = append(list, r), bytes+len(r.url)+len(r.alias)
	}
	if ctx.Err() != nil {
		return nil, errInterrupted
	}
	select {
	case r, ok := <-rows:
		switch {
		case !ok && ctx.Err() != nil: // which ends whoever reads, too
			return nil, errInterrupted
		case !ok:
			return nil, nil
		}
		take(r)
	case <-ctx.Done():
		return nil, errInterrupted
	}
	for len(list) < most && bytes < maxRowBytes {
		select {
		case r, ok := <-rows:
			if !ok {
				return list, nil
			}
			take(r)
		default:
			return list, nil
		}
	}
	return list, nil
}

// request asks for the links of the rows that name one. The server may have begun when
// Ctrl-C comes: it is let finish.
func (b *bulk) request(ctx context.Context, rows []row) ([]client.Result, error) {
	var links []client.NewLink
	for _, r := range rows {
		if r.url != "" && r.err == nil {
			l := b.template
			l.LongURL, l.CustomAlias = r.url, r.alias
			links = append(links, l)
		}
	}
	if len(links) == 0 {
		return nil, nil
	}
	return b.api.CreateMany(context.WithoutCancel(ctx), links)
}

// print writes a line for each row.
func (b *bulk) print(rows []row, results []client.Result) error {
	b.progress.clear()
	out := bufio.NewWriter(b.t.out)
	for _, r := range rows {
		var made *client.Link
		if r.url != "" && r.err == nil {
			if results[0].Link != nil {
				made = results[0].Link
			} else {
				r.err = explained(results[0].Problem)
			}
			results = results[1:]
		}
		b.seen++
		switch {
		case made != nil:
			b.made++
			if made.Safety == "warn" || made.Safety == "quarantined" {
				b.t.complain(fmt.Errorf("%s: visitors see a warning first, because the URL looks harmful", r.name))
			}
		case r.err != nil:
			b.failed++
			b.t.complain(fmt.Errorf("%s: %w", r.name, r.err))
		}
		if err := b.line(out, made); err != nil {
			return err
		}
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	b.progress.show(time.Now(), rows[len(rows)-1].end, fmt.Sprintf("%d made, %d failed", b.made, b.failed))
	return nil
}

// explained keeps a hostile answer, with neither link nor problem, from being a success.
func explained(p *client.Problem) error {
	if p == nil {
		return errors.New("the answer says nothing about it")
	}
	return p
}

func (b *bulk) line(out *bufio.Writer, made *client.Link) error {
	var err error
	switch {
	case b.json && made == nil:
		_, err = out.WriteString("null\n")
	case b.json:
		err = printJSON(out, made)
	case made == nil:
		err = out.WriteByte('\n')
	default:
		_, err = fmt.Fprintln(out, plain(made.ShortURL))
	}
	return err
}

// refusedFor returns how long the server asks to wait, -1 when it does not.
func refusedFor(err error) time.Duration {
	problem, ok := errors.AsType[*client.Problem](err)
	if !ok || problem.Status != http.StatusTooManyRequests {
		return -1
	}
	return max(problem.RetryAfter, time.Second)
}

// tooMany reports that the list was refused as a whole: a limit of the key may never let
// so many pass at once.
func tooMany(err error) bool {
	problem, ok := errors.AsType[*client.Problem](err)
	return ok && problem.Status == http.StatusBadRequest && problem.Field == "links"
}

func (b *bulk) pause(ctx context.Context, d time.Duration) error {
	b.progress.clear()
	b.t.note("curt: %d made, %d failed; the server asks to wait %s", b.made, b.failed, d)
	return sleep(ctx, d)
}

// done ends the command: each failure has had its line.
func (b *bulk) done() error {
	b.progress.clear()
	if b.failed == 0 {
		return nil
	}
	err := fmt.Errorf("%d of %d failed", b.failed, b.seen)
	if b.seen > 1 {
		b.t.complain(err)
	}
	return saidError{err}
}

// stopped says how far the command came before err.
func (b *bulk) stopped(err error) error {
	b.progress.clear()
	if !b.patient { // the command line is short enough to see
		return fmt.Errorf("shorten: %w", err)
	}
	how := fmt.Sprintf("stopped after line %d: %d made, %d failed", b.seen, b.made, b.failed)
	if errors.Is(err, client.ErrNoAnswer) && (b.template.Dedupe == nil || !*b.template.Dedupe) {
		how += "; of the next lines some may have been made"
	}
	return fmt.Errorf("%s: %w", how, err)
}
