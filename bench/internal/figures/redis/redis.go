// Package redis measures servers over one PostgreSQL with Redis between them.
package redis

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"curt/bench/internal/figures"
	"curt/bench/internal/load"
	"curt/bench/internal/pgserver"
	"curt/bench/internal/process"
	"curt/bench/internal/report"
	"curt/bench/internal/service"
)

// l2Links are asked for evenly: many times what the smallest memory for links holds.
const l2Links = 50_000

// script starts services; the program runs in the folder bench.
const script = "../scripts/services"

// Figures returns the figures with Redis between servers over one PostgreSQL.
func Figures() []figures.Figure {
	return []figures.Figure{{Name: "l2", Take: l2}, {Name: "memory", Take: memory}, {Name: "kills", Take: kills}, {Name: "deaf", Take: deaf}, {Name: "stampede", Take: stampede}}
}

// fleet is servers over one database, and perhaps one Redis.
type fleet struct {
	*figures.Bench

	postgres *pgserver.Server
	redis    *service.Service
	url      string // of the database
	codes    []string
	servers  []*process.Server
	ends     []func() error
}

// gather starts PostgreSQL with links, Redis, and no server yet. What was started is returned
// even with an error; the caller ends it.
func gather(ctx context.Context, b *figures.Bench, links int) (f *fleet, err error) {
	f = &fleet{Bench: b}
	temp := filepath.Dir(b.Config.Temp)
	if f.postgres, err = pgserver.Start(ctx, script, temp); err != nil {
		return f, err
	}
	f.ends = append(f.ends, f.postgres.Stop)
	if f.redis, err = service.Start(ctx, script, temp, "redis", "alone"); err != nil {
		return f, err
	}
	f.ends = append(f.ends, f.redis.Stop)
	if f.url, err = f.postgres.Database(ctx); err != nil {
		return f, err
	}
	f.codes, err = pgserver.Fill(ctx, f.url, links)
	rand.Shuffle(len(f.codes), func(i, j int) { f.codes[i], f.codes[j] = f.codes[j], f.codes[i] })
	return f, err
}

// end stops everything, what was started last first.
func (f *fleet) end() (err error) {
	for _, end := range slices.Backward(f.ends) {
		err = errors.Join(err, end())
	}
	return err
}

// add starts a server that shares what is at cache, "" = nothing; core -1 = any. It returns
// when it uses Redis and nothing goes on behind redirects.
func (f *fleet) add(ctx context.Context, core int, cache string, settings ...string) (*process.Server, error) {
	data, drop, err := f.Folder()
	if err != nil {
		return nil, err
	}
	f.ends = append(f.ends, drop)
	settings = append(settings, "CURT_LINKS="+f.url, "CURT_UNKNOWN_LIMIT=off")
	if cache != "" {
		settings = append(settings, "CURT_CACHE=redis://"+cache)
	}
	s, err := f.Serve(ctx, data, core, settings...)
	if err != nil {
		return nil, err
	}
	f.ends, f.servers = append(f.ends, s.Stop), append(f.servers, s)
	quiet := []string{"curt_search_complete"}
	if cache != "" {
		quiet = append(quiet, "curt_redis_up")
	}
	ctx, cancel := context.WithTimeoutCause(ctx, time.Minute, errors.New("a server is not quiet after a minute"))
	defer cancel()
	for _, name := range quiet {
		for {
			if v, err := figures.Counter(ctx, s.Admin, name); err != nil || v == 1 {
				if err != nil {
					return nil, err
				}
				break
			}
			if err := figures.Pause(ctx, 50*time.Millisecond); err != nil {
				return nil, err
			}
		}
	}
	return s, nil
}

// three starts three servers on any core.
func (f *fleet) three(ctx context.Context, cache string) error {
	for range 3 {
		if _, err := f.add(ctx, -1, cache); err != nil {
			return err
		}
	}
	return nil
}

// sum adds a counter up over all servers.
func (f *fleet) sum(ctx context.Context, name string) (n float64, err error) {
	for _, s := range f.servers {
		v, err := figures.Counter(ctx, s.Admin, name)
		if err != nil {
			return 0, err
		}
		n += v
	}
	return n, nil
}

// evenly asks for all codes in turn, from a place of chance on.
func (f *fleet) evenly() func(*rand.Rand) string {
	i := rand.IntN(len(f.codes))
	return func(*rand.Rand) string {
		i++
		return f.codes[i%len(f.codes)]
	}
}

// l2 compares redirects that Redis answers with those from memory, and those from memory
// with Redis beside them with those without.
func l2(ctx context.Context, b *figures.Bench) (rows []report.Row, err error) {
	undo, err := process.PinSelf(1) // Redis inherits it; servers choose their own
	if err != nil {
		return nil, err
	}
	f, err := gather(ctx, b, l2Links)
	defer func() { err = errors.Join(err, f.end(), undo()) }()
	if err != nil {
		return nil, err
	}
	shared, err := f.add(ctx, 0, f.redis.Addr, "CURT_CACHE_SIZE=1MiB", "CURT_FOLD=pause")
	if err != nil {
		return nil, err
	}
	memory, err := f.add(ctx, 0, f.redis.Addr, "CURT_FOLD=pause")
	if err != nil {
		return nil, err
	}
	alone, err := f.add(ctx, 0, "", "CURT_FOLD=pause")
	if err != nil {
		return nil, err
	}
	for _, s := range f.servers { // the first fills Redis
		if err := f.warm(ctx, s); err != nil {
			return nil, err
		}
	}
	all, err := b.Rounds(ctx,
		figures.Turn{Name: "from Redis", Run: func(ctx context.Context) (figures.Sample, error) { return f.hot(ctx, shared, true) }},
		figures.Turn{Name: "from memory", Run: func(ctx context.Context) (figures.Sample, error) { return f.hot(ctx, memory, true) }},
		figures.Turn{Name: "from memory, without Redis", Run: func(ctx context.Context) (figures.Sample, error) { return f.hot(ctx, alone, false) }})
	if err != nil {
		return nil, err
	}
	return l2Rows(all[0], all[1], all[2]), nil
}

func l2Rows(shared, memory, alone figures.Series) []report.Row {
	each, beside, without := shared.PerRequest(), memory.PerRequest(), alone.PerRequest()
	var ratios, cost, both []float64
	wrong := []string{shared.Broken() + memory.Broken() + alone.Broken()}
	for i, r := range shared {
		part := r.Shared / float64(max(r.Answered(), 1))
		if part < 0.9 || r.Stored > 0.01*float64(r.Answered()) { // each from PostgreSQL makes the figure worse
			wrong = append(wrong, fmt.Sprintf("round %d: %.1f %% came from Redis, %.0f from PostgreSQL", i+1, 100*part, r.Stored))
		}
		cost = append(cost, (each[i]-(1-part)*beside[i])/part)
		ratios = append(ratios, cost[i]/beside[i])
		both = append(both, beside[i]/without[i])
	}
	broken := strings.Trim(strings.Join(wrong, "; "), "; ")
	return []report.Row{
		{Figure: "CPU per redirect that Redis answers ÷ one from memory", Unit: report.Ratio, Bar: report.Bar{AtMost: 3}, Values: ratios, Broken: broken},
		{
			Figure: "– from Redis", Unit: report.Microseconds, Values: cost, Broken: broken,
			Bases: []report.Base{{Name: "from memory", Values: beside}},
		},
		{Figure: "– redirects a second on one core", Unit: report.PerSecond, Values: shared.Values(func(r figures.Sample) float64 { return r.PerSecond(0) }), Broken: broken},
		{
			Figure: "CPU per redirect from memory, with Redis ÷ without", Unit: report.Ratio, Bar: report.Bar{AtMost: 1.05},
			Values: both, Broken: broken,
		},
	}
}

// warm asks for every link once. An answer that comes too late here is no finding: where
// the links came from is counted when it is measured.
func (f *fleet) warm(ctx context.Context, s *process.Server) error {
	code, asked := f.evenly(), 0
	ctx, cancel := context.WithTimeoutCause(ctx, 2*time.Minute, errors.New("links are not in memory after two minutes"))
	defer cancel()
	for asked < len(f.codes) {
		_, err := load.Run(ctx, load.Plan{Measure: time.Second, Streams: []load.Stream{
			figures.Redirects(s.Addr, figures.ClickConns, 0, func(r *rand.Rand) string { asked++; return code(r) }),
		}})
		if err != nil {
			return err
		}
		if err := figures.Pause(ctx, 200*time.Millisecond); err != nil { // what was read goes into Redis behind the answers
			return err
		}
	}
	return nil
}

// hot loads one server with every link, and notes where its answers came from.
func (f *fleet) hot(ctx context.Context, s *process.Server, shares bool) (r figures.Sample, err error) {
	var clock [2]time.Duration
	var hits, loads [2]float64
	var errs []error
	count := func(i int) {
		var err error
		if shares {
			hits[i], err = figures.Counter(ctx, s.Admin, "curt_cache_shared_hits_total")
			errs = append(errs, err)
		}
		loads[i], err = figures.Counter(ctx, s.Admin, "curt_cache_loads_total")
		errs = append(errs, err)
	}
	count(0)
	r.Outcome, err = load.Run(ctx, load.Plan{
		Streams: []load.Stream{figures.Redirects(s.Addr, figures.ClickConns, 0, f.evenly())}, Measure: f.Config.Measure, Seed: f.NextSeed(),
		Mark: func(begins bool) {
			used, err := process.CPU(s.PID)
			errs = append(errs, err)
			if begins {
				clock[0] = used
			} else {
				clock[1] = used
			}
		},
	})
	errs = append(errs, err)
	count(1)
	r.ServerCPU, r.Shared, r.Stored = clock[1]-clock[0], hits[1]-hits[0], loads[1]-loads[0]
	return r, errors.Join(errs...)
}
