package api

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"curt/bench/internal/figures"
	"curt/bench/internal/load"
	"curt/bench/internal/report"
)

const (
	freshRate  = 500              // creates a second
	freshTime  = 20 * time.Second // of each round
	freshConns = 32
	freshBar   = 5_000 // ms

	// freshPause is the time between two looks at what is found: what each of the
	// times is too long by, at most, beside the search itself.
	freshPause = 25 * time.Millisecond
	// freshBound is when a link that is not found is given up.
	freshBound = 30 * time.Second
)

// fresh measures how long after its 201 a link is found by a word, while creates
// arrive at an even rate. All links of a round share a word, and the newest of them are
// asked for page by page, so that every link is watched and not only some.
func fresh(ctx context.Context, b *figures.Bench) (rows []report.Row, err error) {
	err = onBusy(ctx, b, func(ctx context.Context, a *store) error {
		all, err := b.Rounds(ctx, figures.Turn{Name: "found after a create", Run: func(ctx context.Context) (figures.Sample, error) { return freshTurn(ctx, a) }})
		if err != nil {
			return err
		}
		row := func(name string, of float64) report.Row {
			return report.Row{Figure: name, Unit: report.Milliseconds, Values: all[0].Quantile(0, of), Broken: all[0].Broken()}
		}
		slowest := row(fmt.Sprintf("found by a word after 201, the slowest of all, %d creates/s for %s, %s", freshRate, freshTime, figures.SizeName(a.Count())), 1)
		slowest.Bar = report.Bar{AtMost: freshBar}
		creates := report.Row{Figure: "– p99 of these creates", Unit: report.Milliseconds, Values: all[0].Quantile(1, 0.99), Broken: all[0].Broken()}
		rows = append(rows, slowest, row("– p99", 0.99), row("– p50", 0.5), creates)
		return nil
	})
	return rows, err
}

// freshWatch holds the links that nobody found yet.
type freshWatch struct {
	mu      sync.Mutex
	made    map[string]time.Time // when the 201 came; guarded by mu
	found   map[string]time.Time // guarded by mu
	creates load.Result          // guarded by mu
	errs    []error              // guarded by mu
}

// freshTurn creates and looks.
func freshTurn(ctx context.Context, a *store) (figures.Sample, error) {
	word := "fresh" + strconv.FormatInt(time.Now().UnixNano(), 36)
	w := &freshWatch{made: map[string]time.Time{}, found: map[string]time.Time{}, creates: load.Result{Wrong: map[string]uint64{}}}
	begin, due := time.Now(), make(chan time.Time, freshRate*int(freshTime/time.Second))
	var wg sync.WaitGroup
	for range freshConns {
		wg.Go(func() { w.create(ctx, a, word, due) })
	}
	creating := make(chan struct{})
	go func() {
		defer close(creating)
		for i := range cap(due) {
			at := begin.Add(time.Duration(i) * time.Second / freshRate)
			time.Sleep(time.Until(at))
			due <- at
		}
		close(due)
		wg.Wait()
	}()
	for ended := false; ; {
		select {
		case <-creating:
			ended = true
		case <-time.After(freshPause):
		}
		left, err := w.look(ctx, a, word)
		switch {
		case err != nil:
			<-creating
			return figures.Sample{}, err
		case ended && left == 0, ended && time.Since(begin) > freshTime+freshBound:
			return w.sample(time.Since(begin))
		}
	}
}

// create makes links when they are due.
func (w *freshWatch) create(ctx context.Context, a *store, word string, due <-chan time.Time) {
	n := 0
	for at := range due {
		n++
		code, err := figures.CreateOne(ctx, a.server.Addr, fmt.Sprintf("https://www.example.com/2026/%s/%p-%d?utm_source=qr", word, &n, n))
		now := time.Now()
		w.mu.Lock()
		if err != nil {
			w.errs = append(w.errs, err)
		} else {
			w.made[code] = now
			w.creates.Answered++
			w.creates.Latency.Record(now.Sub(at))
		}
		w.mu.Unlock()
	}
}

// look reads pages of the newest links until it has seen those that nobody found yet,
// and returns how many are left.
func (w *freshWatch) look(ctx context.Context, a *store, word string) (left int, err error) {
	query, oldest := "?limit=100&q="+word, w.oldest()
	for next := ""; ; {
		page, status, err := a.page(ctx, query+next)
		if err != nil {
			return 0, err
		}
		if status != 200 {
			return 0, fmt.Errorf("search: status %d", status)
		}
		now := time.Now()
		w.mu.Lock()
		for _, l := range page.Links {
			if _, known := w.found[l.Code]; !known {
				w.found[l.Code] = now
			}
		}
		left = len(w.made) - len(w.found)
		w.mu.Unlock()
		if page.Next == "" || len(page.Links) > 0 && page.Links[len(page.Links)-1].Created.Before(oldest) {
			return left, nil
		}
		next = "&cursor=" + page.Next
	}
}

// oldest returns a time before the creation of every link that was not found, allowing
// for the time that its create took.
func (w *freshWatch) oldest() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	oldest := time.Now()
	for code, made := range w.made {
		if _, ok := w.found[code]; !ok && made.Before(oldest) {
			oldest = made
		}
	}
	return oldest.Add(-2 * time.Second)
}

func (w *freshWatch) sample(window time.Duration) (figures.Sample, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	late := load.Result{Wrong: map[string]uint64{}}
	for code, made := range w.made {
		found, ok := w.found[code]
		if !ok {
			late.Wrong["never found"]++
			continue
		}
		late.Answered++
		late.Latency.Record(found.Sub(made))
	}
	return figures.Sample{Outcome: load.Outcome{Streams: []load.Result{late, w.creates}, Window: window}}, errors.Join(w.errs...)
}
