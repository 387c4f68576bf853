// Package postgres measures servers with links in PostgreSQL.
package postgres

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"time"

	"curt/bench/internal/bare"
	"curt/bench/internal/figures"
	"curt/bench/internal/load"
	"curt/bench/internal/pgserver"
	"curt/bench/internal/process"
	"curt/bench/internal/report"
)

const (
	// filledLinks lie in the database that redirects are measured on.
	filledLinks = 60_000

	coldRate = 1_000 // redirects a second, each of a link that nobody asked for before

	// Redirects a second of one server, or of two together: at the first a server has nothing
	// to do between most of them, and each costs a thread that wakes up.
	someRate, manyRate = 10_000, 20_000

	// shareTime is how long the CPU time of redirects is measured at the least: clicks are
	// counted every ten seconds.
	shareTime = 10 * time.Second
)

// Figures returns the figures with links in PostgreSQL, which runs on the same machine
// and syncs each commit.
func Figures() []figures.Figure {
	return []figures.Figure{{Name: "creates", Take: creates}, {Name: "cold", Take: cold}, {Name: "two", Take: two}, {Name: "standby", Take: standby}}
}

// bench is what the turns share.
type bench struct {
	*figures.Bench

	server *pgserver.Server
	filled string   // the database of filledLinks links
	codes  []string // of them, in an order of chance
	next   int      // in codes: what nobody asked for yet
}

// onPostgres takes turns with a server of their own, with links in it if they want some.
func onPostgres(ctx context.Context, b *figures.Bench, links int, turns func(*bench) []figures.Turn) (all []figures.Series, err error) {
	server, err := pgserver.Start(ctx, "../scripts/services", filepath.Dir(b.Config.Temp))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	p := &bench{Bench: b, server: server, next: figures.Seeded}
	if p.filled, err = server.Database(ctx); err != nil {
		return nil, err
	}
	if p.codes, err = pgserver.Fill(ctx, p.filled, links); err != nil {
		return nil, err
	}
	rand.Shuffle(len(p.codes), func(i, j int) { p.codes[i], p.codes[j] = p.codes[j], p.codes[i] })
	return b.Rounds(ctx, turns(p)...)
}

func ratios(a, b []float64) (all []float64) {
	for i := range a {
		all = append(all, a[i]/b[i])
	}
	return all
}

func creates(ctx context.Context, b *figures.Bench) ([]report.Row, error) {
	all, err := onPostgres(ctx, b, 0, func(p *bench) []figures.Turn {
		return []figures.Turn{{Name: "one INSERT per request", Run: p.inserts}, {Name: "creates", Run: p.creates}}
	})
	if err != nil {
		return nil, err
	}
	inserts, creates := all[0], all[1]
	return []report.Row{
		{
			Figure: fmt.Sprintf("durable creates in PostgreSQL over HTTP, %d connections", figures.CreateConns), Unit: report.PerSecond,
			Bar: report.Bar{AtLeast: 6_000}, Values: creates.PerSecond(0), CPU: creates.PerRequest(), Broken: creates.Broken(),
			Bases: []report.Base{{Name: "one INSERT per request, without HTTP", Values: inserts.PerSecond(0)}},
		},
		{Figure: "– their p99", Unit: report.Milliseconds, Values: creates.Quantile(0, 0.99), Broken: creates.Broken()},
		{
			Figure: "– CPU time of PostgreSQL for each", Unit: report.Microseconds, Values: creates.PerDatabase(), Broken: creates.Broken(),
			Bases: []report.Base{{Name: "one INSERT per request", Values: inserts.PerDatabase()}},
		},
		{
			Figure: "– the same ÷ one INSERT per request", Unit: report.Ratio, Bar: report.Bar{AtMost: 0.4},
			Values: ratios(creates.PerDatabase(), inserts.PerDatabase()), Broken: creates.Broken(),
		},
	}, nil
}

func cold(ctx context.Context, b *figures.Bench) (rows []report.Row, err error) {
	all, err := onPostgres(ctx, b, filledLinks, func(p *bench) []figures.Turn {
		return []figures.Turn{{Name: "role redirect", Run: p.coldFollower}, {Name: "role all", Run: p.coldAll}}
	})
	if err != nil {
		return nil, err
	}
	for i, name := range []string{"role redirect", "role all, while a new server fills its search index"} {
		s := all[i]
		rows = append(rows, report.Row{
			Figure: fmt.Sprintf("redirect p99, every link asked for once, %d/s: %s", coldRate, name), Unit: report.Milliseconds,
			Bar: report.Bar{AtMost: 10}, Values: s.Quantile(0, 0.99), CPU: s.PerRequest(), Broken: s.Broken(),
		}, report.Row{Figure: "– CPU time of PostgreSQL for each", Unit: report.Microseconds, Values: s.PerDatabase(), Broken: s.Broken()})
	}
	return rows, nil
}

// inserts is what creates are compared with: as many clients, each with a connection and a
// prepared statement of its own that inserts one row into the same table.
func (p *bench) inserts(ctx context.Context) (r figures.Sample, err error) {
	url, err := p.server.Database(ctx)
	if err != nil {
		return figures.Sample{}, err
	}
	i, err := pgserver.NewInserter(ctx, url, figures.CreateConns)
	if err != nil {
		return figures.Sample{}, err
	}
	defer func() { err = errors.Join(err, i.Close(ctx)) }()
	if _, err := i.Run(ctx, p.Config.Warmup); err != nil {
		return figures.Sample{}, err
	}
	before, err := p.server.CPU()
	if err != nil {
		return figures.Sample{}, err
	}
	begin := time.Now()
	n, err := i.Run(ctx, p.Config.Measure)
	r.Outcome = load.Outcome{Streams: []load.Result{{Answered: n}}, Window: time.Since(begin)}
	after, failed := p.server.CPU()
	r.DatabaseCPU = after - before
	return r, errors.Join(err, failed)
}

// on runs f on a server with a new data folder.
func (p *bench) on(ctx context.Context, url string, f func(context.Context, *process.Server) (figures.Sample, error), settings ...string) (r figures.Sample, err error) {
	data, drop, err := p.Folder()
	if err != nil {
		return figures.Sample{}, err
	}
	defer func() { err = errors.Join(err, drop()) }()
	return p.Curt(ctx, data, -1, f, append(settings, "CURT_LINKS="+url)...)
}

// follower runs f on a server that only follows links, with a place for its clicks.
func (p *bench) follower(ctx context.Context, counts string, f func(context.Context, *process.Server) (figures.Sample, error)) (figures.Sample, error) {
	return p.on(ctx, p.filled, f, "CURT_ROLE=redirect", "CURT_ANALYTICS="+counts)
}

// creates makes links in an empty database.
func (p *bench) creates(ctx context.Context) (figures.Sample, error) {
	url, err := p.server.Database(ctx)
	if err != nil {
		return figures.Sample{}, err
	}
	return p.on(ctx, url, func(ctx context.Context, s *process.Server) (figures.Sample, error) {
		return p.driveWith(ctx, p.Config.Measure, []*process.Server{s}, figures.Creates(s.Addr, bare.CreatePath, figures.CreateConns, 0))
	})
}

func (p *bench) coldAll(ctx context.Context) (figures.Sample, error) {
	return p.on(ctx, p.filled, p.cold)
}

func (p *bench) coldFollower(ctx context.Context) (figures.Sample, error) {
	counts, err := p.server.Database(ctx)
	if err != nil {
		return figures.Sample{}, err
	}
	return p.follower(ctx, counts, p.cold)
}

// cold asks for each link once.
func (p *bench) cold(ctx context.Context, s *process.Server) (figures.Sample, error) {
	if want := int(1.2*coldRate*(p.Config.Warmup+p.Config.Measure).Seconds()) + 100; len(p.codes)-p.next < want {
		return figures.Sample{}, fmt.Errorf("%d links were never asked for, %d are wanted: measure for a shorter time", len(p.codes)-p.next, want)
	}
	return p.driveWith(ctx, p.Config.Measure, []*process.Server{s}, figures.Redirects(s.Addr, figures.ClickConns, coldRate, func(*rand.Rand) string {
		p.next++
		return p.codes[p.next-1]
	}))
}

// driveWith sends load and reads the CPU time of all servers and of PostgreSQL.
func (p *bench) driveWith(ctx context.Context, measure time.Duration, servers []*process.Server, streams ...load.Stream) (r figures.Sample, err error) {
	var clock, database [2]time.Duration
	var errs []error
	plan := load.Plan{
		Streams: streams, Warmup: p.Config.Warmup, Measure: measure, Seed: p.NextSeed(),
		Mark: func(begins bool) {
			i := 1
			if begins {
				i = 0
			}
			for _, s := range servers {
				used, err := process.CPU(s.PID)
				clock[i] += used
				errs = append(errs, err)
			}
			used, err := p.server.CPU()
			database[i] = used
			errs = append(errs, err)
		},
	}
	r.Outcome, err = load.Run(ctx, plan)
	r.ServerCPU, r.DatabaseCPU = clock[1]-clock[0], database[1]-database[0]
	return r, errors.Join(append(errs, err)...)
}
