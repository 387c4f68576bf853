// Package clickcost measures what one click costs from the ring to the stored
// roll-up, without HTTP: the product's own ring, capture, log, fold and clicks.db
// in a process of its own, because CPU time is counted per process. Its caller
// gives it one core and one P.
package clickcost

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"curt/bench/internal/traffic"
	"curt/internal/backend/sqlite/counts"
	"curt/internal/clicks"
	"curt/internal/clicks/capture"
	"curt/internal/clicks/clicklog"
	"curt/internal/clicks/fold"
	"curt/internal/link"
)

const (
	// inRing bounds the clicks that capture has not taken: the ring drops what
	// finds no room, 8 MiB at once, and a click of this traffic has 360 bytes at
	// most.
	inRing = 20_000

	// unfolded bounds the clicks that fold has not counted, so that ring, capture
	// and fold work side by side as under steady load, not one after the other.
	unfolded = 100_000

	// burst is how many clicks are recorded between two looks at these bounds.
	burst = 256

	// visitors are drawn before the measurement begins.
	visitors = 8_192
)

// Config says what is folded.
type Config struct {
	Folder string // empty
	Clicks int
	Links  int
}

// Cost is what it took.
type Cost struct {
	Clicks   int           `json:"clicks"`
	CPU      time.Duration `json:"cpu_ns"`  // of the process, user and system
	Wall     time.Duration `json:"wall_ns"` // from the first click to the last stored roll-up
	LogBytes int64         `json:"log_bytes"`
	Batches  uint64        `json:"batches"`          // of roll-ups that were stored: the more, the more a click costs
	Broken   string        `json:"broken,omitempty"` // what was lost or miscounted
}

// Run folds the clicks and checks that every one was counted once and is kept raw.
func Run(ctx context.Context, c Config) (Cost, error) {
	p, err := open(ctx, c)
	if err != nil {
		return Cost{}, fmt.Errorf("click cost: %w", err)
	}
	cost, err := p.measure(ctx, c)
	if err == nil {
		cost.Broken, err = p.check(ctx, c)
	}
	if err := errors.Join(err, p.log.Close(), p.rollups.Close()); err != nil {
		return Cost{}, fmt.Errorf("click cost: %w", err)
	}
	return cost, nil
}

// pipeline is the product's, put together as the server does.
type pipeline struct {
	ring    *capture.Ring
	log     *clicklog.Log
	capture *capture.Capture
	fold    *fold.Fold
	rollups *counts.Rollups
}

// dayKey tags every visitor with one key.
type dayKey struct{}

func (dayKey) DayKey(context.Context, time.Time) ([16]byte, error) { return [16]byte{1}, nil }

func open(ctx context.Context, c Config) (*pipeline, error) {
	rollups, err := counts.Open(ctx, counts.Config{Path: filepath.Join(c.Folder, "clicks.db")})
	if err != nil {
		return nil, err
	}
	log, err := clicklog.Open(clicklog.Config{Dir: filepath.Join(c.Folder, "clicks")})
	if err != nil {
		return nil, errors.Join(err, rollups.Close())
	}
	p := &pipeline{ring: capture.NewRing(capture.RingConfig{}), log: log, rollups: rollups}
	p.capture = capture.New(capture.Config{Ring: p.ring, Log: log, Keys: dayKey{}})
	p.fold = fold.New(fold.Config{Log: log, Store: rollups})
	return p, nil
}

// measure runs the loops for as long as it takes. Each ends before what it feeds.
func (p *pipeline) measure(ctx context.Context, c Config) (Cost, error) {
	src := newSource(c)
	before, err := cpu()
	if err != nil {
		return Cost{}, err
	}
	begin := time.Now()
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	var stops []func() error
	for _, run := range []func(context.Context) error{p.rollups.Run, p.log.Run, p.fold.Run, p.capture.Run} {
		stops = append(stops, start(ctx, fail, run))
	}
	err = p.feed(ctx, src, c.Clicks)
	for _, stop := range slices.Backward(stops) {
		err = errors.Join(err, stop())
	}
	if err == nil {
		err = p.complete(ctx, fail)
	}
	wall := time.Since(begin)
	after, cpuErr := cpu()
	state, stateErr := p.rollups.Load(ctx)
	return Cost{
		Clicks: c.Clicks, CPU: after - before, Wall: wall, LogBytes: p.log.Stats().Bytes, Batches: state.Generation,
	}, errors.Join(err, cpuErr, stateErr)
}

// start runs a loop; stop ends it and waits. A loop that fails ends the feeding.
func start(ctx context.Context, fail context.CancelCauseFunc, run func(context.Context) error) (stop func() error) {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	var err error
	wg.Go(func() {
		if err = run(ctx); err != nil {
			fail(err)
		}
	})
	return func() error {
		cancel()
		wg.Wait()
		return err
	}
}

// feed records the clicks as fast as they are folded, and returns once all are
// counted in memory.
func (p *pipeline) feed(ctx context.Context, src *source, n int) error {
	for sent := 0; ; {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		counted := int(p.fold.Stats().Events)
		if counted == n {
			return nil
		}
		if sent == n || sent-counted > unfolded || sent-int(p.capture.Stats().Clicks) > inRing-burst {
			time.Sleep(time.Millisecond) // asking again at once would cost the CPU time that is measured
			continue
		}
		now := time.Now().UnixMilli()
		for range min(burst, n-sent) {
			p.ring.Record(src.next(now))
			sent++
		}
	}
}

// complete waits until everything is stored. Fold writes its last counts when it is
// stopped, but gives up after a few seconds, because the next start goes on from
// the log; on a machine that busy this is the next start.
func (p *pipeline) complete(ctx context.Context, fail context.CancelCauseFunc) error {
	stored := func() (bool, error) {
		state, err := p.rollups.Load(ctx)
		return state.Position == p.log.End(), err
	}
	done, err := stored()
	if done || err != nil {
		return err
	}
	again := fold.New(fold.Config{Log: p.log, Store: p.rollups, Every: 100 * time.Millisecond})
	stop := start(ctx, fail, again.Run)
	for !done && err == nil && ctx.Err() == nil {
		time.Sleep(10 * time.Millisecond) // as in feed
		done, err = stored()
	}
	return errors.Join(err, stop(), context.Cause(ctx))
}

// check returns what is wrong with what was stored, "" = nothing.
func (p *pipeline) check(ctx context.Context, c Config) (string, error) {
	if n := p.ring.Dropped(); n > 0 {
		return fmt.Sprintf("%d clicks were dropped", n), nil
	}
	if s := p.log.Stats(); s.LostClicks > 0 || s.RemovedSegments > 0 {
		return fmt.Sprintf("%d segments of raw clicks were removed", s.RemovedSegments), nil
	}
	keys := make([]link.Key, c.Links)
	for i := range keys {
		keys[i] = link.Key{Code: link.Code(codes()(i))}
	}
	var stored uint64
	const page = 500 // of keys in one query
	for len(keys) > 0 {
		n := min(page, len(keys))
		totals, _, err := p.rollups.Totals(ctx, keys[:n])
		if err != nil {
			return "", err
		}
		for _, t := range totals {
			stored += t.Clicks
		}
		keys = keys[n:]
	}
	if stored != uint64(c.Clicks) {
		return fmt.Sprintf("%d of %d clicks are in the stored roll-ups", stored, c.Clicks), nil
	}
	return "", nil
}

// cpu returns the CPU time of this process so far.
func cpu() (time.Duration, error) {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return 0, fmt.Errorf("read CPU time: %w", err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), nil
}

// source makes the clicks. What it draws before it is asked costs nothing later.
type source struct {
	random   *rand.Rand
	ranks    []uint32
	at       int
	codes    [][]byte
	visitors []traffic.Visitor
	raw      clicks.Raw
}

func newSource(c Config) *source {
	s := &source{
		random: rand.New(rand.NewPCG(1, 1)), ranks: make([]uint32, c.Clicks),
		codes: make([][]byte, c.Links), visitors: make([]traffic.Visitor, visitors),
	}
	zipf, people, code := traffic.NewZipf(c.Links), traffic.NewVisitors(), codes()
	for i := range s.ranks {
		s.ranks[i] = uint32(zipf.Rank(s.random))
	}
	for i := range s.codes {
		s.codes[i] = []byte(code(i))
	}
	for i := range s.visitors {
		s.visitors[i] = people.Draw(s.random)
	}
	return s
}

// codes makes 7 digits out of a rank, scattered so that popular links do not lie
// side by side in the store.
func codes() func(i int) string {
	const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	const space = 62 * 62 * 62 * 62 * 62 * 62 * 62
	return func(i int) string {
		v := uint64(i) * 1_580_030_173_331 % space // a factor without 2 or 31 in it: no two ranks meet
		var b [7]byte
		for j := range b {
			b[j] = digits[v%62]
			v /= 62
		}
		return string(b[:])
	}
}

// next returns the next click; it is valid until the one after.
func (s *source) next(now int64) *clicks.Raw {
	r := s.random.Uint64()
	v := &s.visitors[r%visitors]
	a := uint32(r >> 32)
	s.raw = clicks.Raw{
		Time: now, Code: s.codes[s.ranks[s.at]], Outcome: clicks.Redirected,
		Addr:      netip.AddrFrom4([4]byte{byte(a >> 24), byte(a >> 16), byte(a >> 8), byte(a)}),
		UserAgent: v.UserAgent, Referrer: v.Referrer, Language: v.Language,
	}
	s.at++
	return &s.raw
}
