package figures

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"time"

	"curt/bench/internal/fill"
	"curt/bench/internal/process"
	"curt/bench/internal/report"
)

const (
	apiBar    = 50  // ms, p99 of lists, searches and statistics
	dedupeBar = 2   // ms, p99
	bulkBar   = 150 // ms, of 1,000 links

	apiRequests  = 300             // of each turn
	bulkRequests = 30              // of each turn: 1,000 links each
	apiBound     = 2 * time.Second // of each turn, when they are slow

	// indexBound is how long the index may take to catch up with the links.
	indexBound = 30 * time.Minute
)

// apiConns are the connections with which everything is asked.
func apiConns() []int { return []int{1, 8} }

// API returns the figures of the API, on a store that is filled at the first call.
func (b *Bench) API() []Figure {
	return []Figure{
		{"read", b.apiFigure(func(a *apiStore) []question { return append(a.lists(), a.statistics()...) })},
		{"write", b.apiFigure((*apiStore).writes)},
		{"empty", b.bulkEmpty},
		{"create", b.apiCreates},
		{"fresh", b.fresh},
		{"beside", b.beside},
	}
}

// apiStore is the server on the filled store.
type apiStore struct {
	*fill.Busy

	server *process.Server
	key    string   // of the store's workspace: sees what an owner sees
	deep   []string // cursors far down the list of all links
	common []string // cursors far down the list of links with a common word
}

// onBusy runs f on a server whose index is complete.
func (b *Bench) onBusy(ctx context.Context, f func(context.Context, *apiStore) error) error {
	links, err := fill.FillBusy(ctx, filepath.Join(b.cfg.Store, "busy-"+strconv.Itoa(b.cfg.Links)), b.cfg.Links, b.cfg.Progress)
	if err != nil {
		return err
	}
	_, err = b.curt(ctx, links.Folder, -1, func(ctx context.Context, s *process.Server) (sample, error) {
		a := &apiStore{Busy: links, server: s}
		if err := b.indexed(ctx, a); err != nil {
			return sample{}, err
		}
		return sample{}, f(ctx, a)
	})
	return err
}

// indexed waits until everything stored is found. First the filled store must be
// complete, which a search answers 503 before, then a link that is made now must show.
func (b *Bench) indexed(ctx context.Context, a *apiStore) error {
	ctx, cancel := context.WithTimeoutCause(ctx, indexBound, fmt.Errorf("the index is not complete after %s", indexBound))
	defer cancel()
	begin, word := time.Now(), "indexed"+strconv.FormatInt(time.Now().UnixNano(), 36)
	if _, err := createOne(ctx, a.server.Addr, "https://example.com/"+word); err != nil {
		return err
	}
	for shown := time.Now(); ; {
		page, status, err := a.page(ctx, "?q="+word)
		switch {
		case err != nil:
			return err
		case status == 200 && len(page.Links) > 0:
			b.say("index complete after %.1f s", time.Since(begin).Seconds())
			return nil
		case status != 200 && status != 503:
			return fmt.Errorf("search: status %d", status)
		}
		if time.Since(shown) > 5*time.Second {
			shown = time.Now()
			b.say("waiting for the index, %.0f s: %s", time.Since(begin).Seconds(), a.server.Log())
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// apiFigure asks questions in rounds: each with each number of connections, right
// behind the smallest request that there is.
func (b *Bench) apiFigure(of func(*apiStore) []question) func(context.Context) ([]report.Row, error) {
	return func(ctx context.Context) (rows []report.Row, err error) {
		err = b.onBusy(ctx, func(ctx context.Context, a *apiStore) error {
			if err := a.prepare(ctx); err != nil {
				return err
			}
			rows, err = b.questions(ctx, sizeName(a.Count()), a.server, of(a))
			return err
		})
		return rows, err
	}
}

func (b *Bench) questions(ctx context.Context, store string, s *process.Server, all []question) ([]report.Row, error) {
	var turns []turn
	for _, q := range all {
		if q.n == 0 {
			q.n = apiRequests
		}
		for _, conns := range apiConns() {
			base := question{name: "GET /healthz", n: apiRequests, next: healthz(s)}
			turns = append(turns, b.asking(s, base, conns), b.asking(s, q, conns))
		}
	}
	taken, err := b.rounds(ctx, turns...)
	if err != nil {
		return nil, err
	}
	var rows []report.Row
	for i, q := range all {
		for j, conns := range apiConns() {
			at := 2 * (i*len(apiConns()) + j)
			rows = append(rows, questionRows(q, store, conns, taken[at+1], taken[at])...)
		}
	}
	return rows, nil
}

func (b *Bench) asking(s *process.Server, q question, conns int) turn {
	return turn{fmt.Sprintf("%s, %d", q.name, conns), func(ctx context.Context) (sample, error) { return ask(ctx, s, q, conns) }}
}

func questionRows(q question, store string, conns int, s, base series) []report.Row {
	row := func(name string, of float64) report.Row {
		return report.Row{
			Figure: name, Unit: report.Milliseconds, Values: s.quantile(0, of), Broken: s.broken(),
			Bases: []report.Base{{Name: "GET /healthz", Values: base.quantile(0, of)}},
		}
	}
	connections := "1 connection"
	if conns != 1 {
		connections = strconv.Itoa(conns) + " connections"
	}
	p99 := row(fmt.Sprintf("%s p99, %s, %s", q.name, store, connections), 0.99)
	p99.CPU, p99.Bases[0].CPU = s.perRequest(), base.perRequest()
	if conns == 1 || !q.alone {
		p99.Bar = report.Bar{AtMost: q.bar}
	}
	return []report.Row{p99, row("– p50", 0.5)}
}

// bulkEmpty makes 1,000 links at a time on a new store.
func (b *Bench) bulkEmpty(ctx context.Context) (rows []report.Row, err error) {
	data, drop, err := b.folder()
	if err != nil {
		return nil, err
	}
	_, err = b.curt(ctx, data, -1, func(ctx context.Context, s *process.Server) (sample, error) {
		rows, err = b.questions(ctx, "empty store", s, []question{bulk(s)})
		return sample{}, err
	})
	if err != nil {
		return nil, err
	}
	return rows, drop()
}

// apiCreates is the bar of creates, on a store with an index and statistics.
func (b *Bench) apiCreates(ctx context.Context) (rows []report.Row, err error) {
	err = b.onBusy(ctx, func(ctx context.Context, a *apiStore) error {
		all, err := b.rounds(ctx, append(b.createBase(-1, createConns), turn{"creates", func(ctx context.Context) (sample, error) {
			return b.drive(ctx, a.server, -1, creates(a.server.Addr, "/api/v1/links", createConns, 0))
		}})...)
		if err == nil {
			rows = createRows(fmt.Sprintf("%d connections, %s and their index", createConns, sizeName(a.Count())), all[2], all[:2], 5_000)
		}
		return err
	})
	return rows, err
}
