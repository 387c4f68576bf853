// Package api measures requests of the API on a store with many links, their index and statistics.
package api

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"time"

	"curt/bench/internal/figures"
	"curt/bench/internal/fill"
	"curt/bench/internal/process"
	"curt/bench/internal/report"
)

const (
	readBar   = 50  // ms, p99 of lists, searches and statistics
	dedupeBar = 2   // ms, p99
	bulkBar   = 150 // ms, of 1,000 links

	turnRequests = 300             // of each turn
	bulkRequests = 30              // of each turn: 1,000 links each
	turnBound    = 2 * time.Second // of each turn, when they are slow

)

// connections are the connections with which everything is asked.
func connections() []int { return []int{1, 8} }

// Figures returns the figures of the API, on a store that is filled at the first call.
func Figures() []figures.Figure {
	return []figures.Figure{
		{Name: "read", Take: storeFigure(func(a *store) []question { return append(a.lists(), a.statistics()...) })},
		{Name: "write", Take: storeFigure((*store).writes)},
		{Name: "empty", Take: bulkEmpty},
		{Name: "create", Take: creates},
		{Name: "fresh", Take: fresh},
		{Name: "beside", Take: beside},
	}
}

// store is the server on the filled store.
type store struct {
	*fill.Busy

	server *process.Server
	key    string   // of the store's workspace: sees what an owner sees
	deep   []string // cursors far down the list of all links
	common []string // cursors far down the list of links with a common word
}

// onBusy runs f on a server whose index is complete.
func onBusy(ctx context.Context, b *figures.Bench, f func(context.Context, *store) error) error {
	links, err := fill.FillBusy(ctx, filepath.Join(b.Config.Store, "busy-"+strconv.Itoa(b.Config.Links)), b.Config.Links, b.Config.Progress)
	if err != nil {
		return err
	}
	_, err = b.Curt(ctx, links.Folder, -1, func(ctx context.Context, s *process.Server) (figures.Sample, error) {
		a := &store{Busy: links, server: s}
		if err := indexed(ctx, b, a); err != nil {
			return figures.Sample{}, err
		}
		return figures.Sample{}, f(ctx, a)
	})
	return err
}

// indexed waits until everything stored is found. First the filled store must be
// complete, which a search answers 503 before, then a link that is made now must show.
func indexed(ctx context.Context, b *figures.Bench, a *store) error {
	ctx, cancel := context.WithTimeoutCause(ctx, figures.IndexBound, fmt.Errorf("the index is not complete after %s", figures.IndexBound))
	defer cancel()
	begin, word := time.Now(), "indexed"+strconv.FormatInt(time.Now().UnixNano(), 36)
	if _, err := figures.CreateOne(ctx, a.server.Addr, "https://example.com/"+word); err != nil {
		return err
	}
	for shown := time.Now(); ; {
		page, status, err := a.page(ctx, "?q="+word)
		switch {
		case err != nil:
			return err
		case status == 200 && len(page.Links) > 0:
			b.Say("index complete after %.1f s", time.Since(begin).Seconds())
			return nil
		case status != 200 && status != 503:
			return fmt.Errorf("search: status %d", status)
		}
		if time.Since(shown) > 5*time.Second {
			shown = time.Now()
			b.Say("waiting for the index, %.0f s: %s", time.Since(begin).Seconds(), a.server.Log())
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// storeFigure asks questions in rounds: each with each number of connections, right
// behind the smallest request that there is.
func storeFigure(of func(*store) []question) func(context.Context, *figures.Bench) ([]report.Row, error) {
	return func(ctx context.Context, b *figures.Bench) (rows []report.Row, err error) {
		err = onBusy(ctx, b, func(ctx context.Context, a *store) error {
			if err := a.prepare(ctx); err != nil {
				return err
			}
			rows, err = questions(ctx, b, figures.SizeName(a.Count()), a.server, of(a))
			return err
		})
		return rows, err
	}
}

func questions(ctx context.Context, b *figures.Bench, store string, s *process.Server, all []question) ([]report.Row, error) {
	var turns []figures.Turn
	for _, q := range all {
		if q.n == 0 {
			q.n = turnRequests
		}
		for _, conns := range connections() {
			base := question{name: "GET /healthz", n: turnRequests, next: healthz(s)}
			turns = append(turns, asking(s, base, conns), asking(s, q, conns))
		}
	}
	taken, err := b.Rounds(ctx, turns...)
	if err != nil {
		return nil, err
	}
	var rows []report.Row
	for i, q := range all {
		for j, conns := range connections() {
			at := 2 * (i*len(connections()) + j)
			rows = append(rows, questionRows(q, store, conns, taken[at+1], taken[at])...)
		}
	}
	return rows, nil
}

func asking(s *process.Server, q question, conns int) figures.Turn {
	return figures.Turn{Name: fmt.Sprintf("%s, %d", q.name, conns), Run: func(ctx context.Context) (figures.Sample, error) { return ask(ctx, s, q, conns) }}
}

func questionRows(q question, store string, conns int, s, base figures.Series) []report.Row {
	row := func(name string, of float64) report.Row {
		return report.Row{
			Figure: name, Unit: report.Milliseconds, Values: s.Quantile(0, of), Broken: s.Broken(),
			Bases: []report.Base{{Name: "GET /healthz", Values: base.Quantile(0, of)}},
		}
	}
	connections := "1 connection"
	if conns != 1 {
		connections = strconv.Itoa(conns) + " connections"
	}
	p99 := row(fmt.Sprintf("%s p99, %s, %s", q.name, store, connections), 0.99)
	p99.CPU, p99.Bases[0].CPU = s.PerRequest(), base.PerRequest()
	if conns == 1 || !q.alone {
		p99.Bar = report.Bar{AtMost: q.bar}
	}
	return []report.Row{p99, row("– p50", 0.5)}
}

// bulkEmpty makes 1,000 links at a time on a new store.
func bulkEmpty(ctx context.Context, b *figures.Bench) (rows []report.Row, err error) {
	data, drop, err := b.Folder()
	if err != nil {
		return nil, err
	}
	_, err = b.Curt(ctx, data, -1, func(ctx context.Context, s *process.Server) (figures.Sample, error) {
		rows, err = questions(ctx, b, "empty store", s, []question{bulk(s)})
		return figures.Sample{}, err
	})
	if err != nil {
		return nil, err
	}
	return rows, drop()
}

// creates is the bar of creates, on a store with an index and statistics.
func creates(ctx context.Context, b *figures.Bench) (rows []report.Row, err error) {
	err = onBusy(ctx, b, func(ctx context.Context, a *store) error {
		all, err := b.Rounds(ctx, append(b.CreateBase(-1, figures.CreateConns), figures.Turn{Name: "creates", Run: func(ctx context.Context) (figures.Sample, error) {
			return b.Drive(ctx, a.server, -1, figures.Creates(a.server.Addr, "/api/v1/links", figures.CreateConns, 0))
		}})...)
		if err == nil {
			rows = figures.CreateRows(fmt.Sprintf("%d connections, %s and their index", figures.CreateConns, figures.SizeName(a.Count())), all[2], all[:2], 5_000)
		}
		return err
	})
	return rows, err
}
