package figures

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"time"

	"curt/bench/internal/bare"
	"curt/bench/internal/load"
	"curt/bench/internal/pgserver"
	"curt/bench/internal/process"
	"curt/bench/internal/report"
)

const (
	// pgLinks lie in the database that redirects are measured on.
	pgLinks = 60_000

	pgColdRate = 1_000 // redirects a second, each of a link that nobody asked for before

	// Redirects a second of one server, or of two together: at the first a server has nothing
	// to do between most of them, and each costs a thread that wakes up.
	pgSomeRate, pgManyRate = 10_000, 20_000

	// pgShare is how long the CPU time of redirects is measured at the least: clicks are
	// counted every ten seconds.
	pgShare = 10 * time.Second
)

// Postgres returns the figures with links in PostgreSQL, which runs on the same machine
// and syncs each commit.
func (b *Bench) Postgres() []Figure {
	return []Figure{{"creates", b.pgCreates}, {"cold", b.pgCold}, {"two", b.pgTwo}}
}

// pgBench is what the turns share.
type pgBench struct {
	*Bench

	server *pgserver.Server
	filled string   // the database of pgLinks links
	codes  []string // of them, in an order of chance
	next   int      // in codes: what nobody asked for yet
}

// onPostgres takes turns with a server of their own, with links in it if they want some.
func (b *Bench) onPostgres(ctx context.Context, links int, turns func(*pgBench) []turn) (all []series, err error) {
	server, err := pgserver.Start(ctx, "../scripts/services", filepath.Dir(b.cfg.Temp))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	p := &pgBench{Bench: b, server: server, next: seeded}
	if p.filled, err = server.Database(ctx); err != nil {
		return nil, err
	}
	if p.codes, err = pgserver.Fill(ctx, p.filled, links); err != nil {
		return nil, err
	}
	rand.Shuffle(len(p.codes), func(i, j int) { p.codes[i], p.codes[j] = p.codes[j], p.codes[i] })
	return b.rounds(ctx, turns(p)...)
}

// perDatabase is the CPU time of PostgreSQL for each right answer, in µs.
func (s series) perDatabase() []float64 {
	return s.values(func(r sample) float64 { return r.database.Seconds() * 1e6 / float64(max(r.Answered(), 1)) })
}

func ratios(a, b []float64) (all []float64) {
	for i := range a {
		all = append(all, a[i]/b[i])
	}
	return all
}

func (b *Bench) pgCreates(ctx context.Context) ([]report.Row, error) {
	all, err := b.onPostgres(ctx, 0, func(p *pgBench) []turn {
		return []turn{{"one INSERT per request", p.inserts}, {"creates", p.creates}}
	})
	if err != nil {
		return nil, err
	}
	inserts, creates := all[0], all[1]
	return []report.Row{
		{
			Figure: fmt.Sprintf("durable creates in PostgreSQL over HTTP, %d connections", createConns), Unit: report.PerSecond,
			Bar: report.Bar{AtLeast: 6_000}, Values: creates.perSecond(0), CPU: creates.perRequest(), Broken: creates.broken(),
			Bases: []report.Base{{Name: "one INSERT per request, without HTTP", Values: inserts.perSecond(0)}},
		},
		{Figure: "– their p99", Unit: report.Milliseconds, Values: creates.quantile(0, 0.99), Broken: creates.broken()},
		{
			Figure: "– CPU time of PostgreSQL for each", Unit: report.Microseconds, Values: creates.perDatabase(), Broken: creates.broken(),
			Bases: []report.Base{{Name: "one INSERT per request", Values: inserts.perDatabase()}},
		},
		{
			Figure: "– the same ÷ one INSERT per request", Unit: report.Ratio, Bar: report.Bar{AtMost: 0.4},
			Values: ratios(creates.perDatabase(), inserts.perDatabase()), Broken: creates.broken(),
		},
	}, nil
}

func (b *Bench) pgCold(ctx context.Context) (rows []report.Row, err error) {
	all, err := b.onPostgres(ctx, pgLinks, func(p *pgBench) []turn {
		return []turn{{"role redirect", p.coldFollower}, {"role all", p.coldAll}}
	})
	if err != nil {
		return nil, err
	}
	for i, name := range []string{"role redirect", "role all, while a new server fills its search index"} {
		s := all[i]
		rows = append(rows, report.Row{
			Figure: fmt.Sprintf("redirect p99, every link asked for once, %d/s: %s", pgColdRate, name), Unit: report.Milliseconds,
			Bar: report.Bar{AtMost: 10}, Values: s.quantile(0, 0.99), CPU: s.perRequest(), Broken: s.broken(),
		}, report.Row{Figure: "– CPU time of PostgreSQL for each", Unit: report.Microseconds, Values: s.perDatabase(), Broken: s.broken()})
	}
	return rows, nil
}

// inserts is what creates are compared with: as many clients, each with a connection and a
// prepared statement of its own that inserts one row into the same table.
func (p *pgBench) inserts(ctx context.Context) (r sample, err error) {
	url, err := p.server.Database(ctx)
	if err != nil {
		return sample{}, err
	}
	i, err := pgserver.NewInserter(ctx, url, createConns)
	if err != nil {
		return sample{}, err
	}
	defer func() { err = errors.Join(err, i.Close(ctx)) }()
	if _, err := i.Run(ctx, p.cfg.Warmup); err != nil {
		return sample{}, err
	}
	before, err := p.server.CPU()
	if err != nil {
		return sample{}, err
	}
	begin := time.Now()
	n, err := i.Run(ctx, p.cfg.Measure)
	r.Outcome = load.Outcome{Streams: []load.Result{{Answered: n}}, Window: time.Since(begin)}
	after, failed := p.server.CPU()
	r.database = after - before
	return r, errors.Join(err, failed)
}

// on runs f on a server with a new data folder.
func (p *pgBench) on(ctx context.Context, url string, f func(context.Context, *process.Server) (sample, error), settings ...string) (r sample, err error) {
	data, drop, err := p.folder()
	if err != nil {
		return sample{}, err
	}
	defer func() { err = errors.Join(err, drop()) }()
	return p.curt(ctx, data, -1, f, append(settings, "CURT_LINKS="+url)...)
}

// follower runs f on a server that only follows links, with a place for its clicks.
func (p *pgBench) follower(ctx context.Context, counts string, f func(context.Context, *process.Server) (sample, error)) (sample, error) {
	return p.on(ctx, p.filled, f, "CURT_ROLE=redirect", "CURT_ANALYTICS="+counts)
}

// creates makes links in an empty database.
func (p *pgBench) creates(ctx context.Context) (sample, error) {
	url, err := p.server.Database(ctx)
	if err != nil {
		return sample{}, err
	}
	return p.on(ctx, url, func(ctx context.Context, s *process.Server) (sample, error) {
		return p.driveWith(ctx, p.cfg.Measure, []*process.Server{s}, creates(s.Addr, bare.CreatePath, createConns, 0))
	})
}

func (p *pgBench) coldAll(ctx context.Context) (sample, error) { return p.on(ctx, p.filled, p.cold) }

func (p *pgBench) coldFollower(ctx context.Context) (sample, error) {
	counts, err := p.server.Database(ctx)
	if err != nil {
		return sample{}, err
	}
	return p.follower(ctx, counts, p.cold)
}

// cold asks for each link once.
func (p *pgBench) cold(ctx context.Context, s *process.Server) (sample, error) {
	if want := int(1.2*pgColdRate*(p.cfg.Warmup+p.cfg.Measure).Seconds()) + 100; len(p.codes)-p.next < want {
		return sample{}, fmt.Errorf("%d links were never asked for, %d are wanted: measure for a shorter time", len(p.codes)-p.next, want)
	}
	return p.driveWith(ctx, p.cfg.Measure, []*process.Server{s}, redirects(s.Addr, clickConns, pgColdRate, func(*rand.Rand) string {
		p.next++
		return p.codes[p.next-1]
	}))
}

// driveWith sends load and reads the CPU time of all servers and of PostgreSQL.
func (p *pgBench) driveWith(ctx context.Context, measure time.Duration, servers []*process.Server, streams ...load.Stream) (r sample, err error) {
	p.seq++
	var clock, database [2]time.Duration
	var errs []error
	plan := load.Plan{
		Streams: streams, Warmup: p.cfg.Warmup, Measure: measure, Seed: uint64(p.seq),
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
	r.cpu, r.database = clock[1]-clock[0], database[1]-database[0]
	return r, errors.Join(append(errs, err)...)
}
