package figures

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"time"

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

// Redis returns the figures with Redis between servers over one PostgreSQL.
func (b *Bench) Redis() []Figure {
	return []Figure{{"l2", b.l2}, {"memory", b.redisMemory}, {"kills", b.kills}, {"deaf", b.deaf}, {"stampede", b.stampede}}
}

// fleet is servers over one database, and perhaps one Redis.
type fleet struct {
	*Bench

	postgres *pgserver.Server
	redis    *service.Service
	url      string // of the database
	codes    []string
	servers  []*process.Server
	ends     []func() error
}

// gather starts PostgreSQL with links, Redis, and no server yet. What was started is returned
// even with an error; the caller ends it.
func (b *Bench) gather(ctx context.Context, links int) (f *fleet, err error) {
	f = &fleet{Bench: b}
	temp := filepath.Dir(b.cfg.Temp)
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
	data, drop, err := f.folder()
	if err != nil {
		return nil, err
	}
	f.ends = append(f.ends, drop)
	settings = append(settings, "CURT_LINKS="+f.url, "CURT_UNKNOWN_LIMIT=off")
	if cache != "" {
		settings = append(settings, "CURT_CACHE=redis://"+cache)
	}
	s, err := f.serve(ctx, data, core, settings...)
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
			if v, err := counter(ctx, s.Admin, name); err != nil || v == 1 {
				if err != nil {
					return nil, err
				}
				break
			}
			if err := pause(ctx, 50*time.Millisecond); err != nil {
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
		v, err := counter(ctx, s.Admin, name)
		if err != nil {
			return 0, err
		}
		n += v
	}
	return n, nil
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return fmt.Errorf("wait: %w", context.Cause(ctx))
	case <-time.After(d):
		return nil
	}
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
func (b *Bench) l2(ctx context.Context) (rows []report.Row, err error) {
	undo, err := process.PinSelf(1) // Redis inherits it; servers choose their own
	if err != nil {
		return nil, err
	}
	f, err := b.gather(ctx, l2Links)
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
	all, err := b.rounds(ctx,
		turn{"from Redis", func(ctx context.Context) (sample, error) { return f.hot(ctx, shared, true) }},
		turn{"from memory", func(ctx context.Context) (sample, error) { return f.hot(ctx, memory, true) }},
		turn{"from memory, without Redis", func(ctx context.Context) (sample, error) { return f.hot(ctx, alone, false) }})
	if err != nil {
		return nil, err
	}
	return l2Rows(all[0], all[1], all[2]), nil
}

func l2Rows(shared, memory, alone series) []report.Row {
	each, beside, without := shared.perRequest(), memory.perRequest(), alone.perRequest()
	var ratios, cost, both []float64
	wrong := []string{shared.broken() + memory.broken() + alone.broken()}
	for i, r := range shared {
		part := r.shared / float64(max(r.Answered(), 1))
		if part < 0.9 || r.stored > 0.01*float64(r.Answered()) { // each from PostgreSQL makes the figure worse
			wrong = append(wrong, fmt.Sprintf("round %d: %.1f %% came from Redis, %.0f from PostgreSQL", i+1, 100*part, r.stored))
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
		{Figure: "– redirects a second on one core", Unit: report.PerSecond, Values: shared.values(func(r sample) float64 { return r.PerSecond(0) }), Broken: broken},
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
			redirects(s.Addr, clickConns, 0, func(r *rand.Rand) string { asked++; return code(r) }),
		}})
		if err != nil {
			return err
		}
		if err := pause(ctx, 200*time.Millisecond); err != nil { // what was read goes into Redis behind the answers
			return err
		}
	}
	return nil
}

// hot loads one server with every link, and notes where its answers came from.
func (f *fleet) hot(ctx context.Context, s *process.Server, shares bool) (r sample, err error) {
	f.seq++
	var clock [2]time.Duration
	var hits, loads [2]float64
	var errs []error
	count := func(i int) {
		var err error
		if shares {
			hits[i], err = counter(ctx, s.Admin, "curt_cache_shared_hits_total")
			errs = append(errs, err)
		}
		loads[i], err = counter(ctx, s.Admin, "curt_cache_loads_total")
		errs = append(errs, err)
	}
	count(0)
	r.Outcome, err = load.Run(ctx, load.Plan{
		Streams: []load.Stream{redirects(s.Addr, clickConns, 0, f.evenly())}, Measure: f.cfg.Measure, Seed: uint64(f.seq),
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
	r.cpu, r.shared, r.stored = clock[1]-clock[0], hits[1]-hits[0], loads[1]-loads[0]
	return r, errors.Join(errs...)
}
