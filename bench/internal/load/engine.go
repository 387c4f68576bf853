package load

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

const (
	defaultDrain = 10 * time.Second

	// longestWait bounds one wait, so that the end of ctx is seen.
	longestWait = 100 * time.Millisecond
)

// Run sends the load of a plan and returns what it saw. It blocks for the time of
// the plan, or until ctx ends, which is an error. An error means that the run is
// worth nothing; answers that were wrong are in the outcome.
func Run(ctx context.Context, p Plan) (Outcome, error) {
	if err := p.validate(); err != nil {
		return Outcome{}, err
	}
	if p.Drain == 0 {
		p.Drain = defaultDrain
	}
	type end struct {
		o   Outcome
		err error
	}
	done := make(chan end)
	go func() {
		// The thread must live on afterwards: servers that it may have started end
		// with it.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		o, err := run(ctx, p)
		done <- end{o, err}
	}()
	e := <-done
	return e.o, e.err
}

func run(ctx context.Context, p Plan) (o Outcome, err error) {
	// The kernel may wake a thread 50 µs late to save power; here that would be
	// measured. 0 sets the slack back.
	if err := unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0); err != nil {
		return Outcome{}, fmt.Errorf("set timer slack: %w", err)
	}
	defer func() { err = errors.Join(err, unix.Prctl(unix.PR_SET_TIMERSLACK, 0, 0, 0, 0)) }()
	e, err := newEngine(p)
	if err != nil {
		return Outcome{}, err
	}
	defer func() { err = errors.Join(err, e.close()) }()
	if err := e.loop(ctx); err != nil {
		return Outcome{}, err
	}
	return Outcome{Streams: e.results, Window: e.ended - e.began, CPU: e.cpu}, nil
}

// phase is where a run stands.
type phase int

const (
	warming phase = iota
	measuring
	draining
)

// engine is one run. Its thread owns everything.
type engine struct {
	plan    Plan
	poll    *poller
	conns   []*conn
	streams []stream
	results []Result
	random  *rand.Rand

	start        time.Time
	phase        phase
	began, ended time.Duration // of the window, since start
	cpu          time.Duration // of this thread: first a reading, then the difference
	unanswered   int           // requests of the window that are due and have no answer
}

// stream is the moving part of a Stream.
type stream struct {
	next    time.Duration   // open loop: when the next request is due
	waiting []time.Duration // open loop: due times of requests that no connection was free for
	idle    []*conn
}

func newEngine(p Plan) (*engine, error) {
	poll, err := newPoller()
	if err != nil {
		return nil, err
	}
	e := &engine{
		plan: p, poll: poll, streams: make([]stream, len(p.Streams)),
		results: make([]Result, len(p.Streams)), random: rand.New(rand.NewPCG(p.Seed, 0)),
	}
	for i, s := range p.Streams {
		e.results[i].Wrong = map[string]uint64{}
		for range s.Conns {
			c := &conn{stream: i, fd: -1, in: make([]byte, 8<<10), out: make([]byte, 0, 1<<10)}
			e.conns = append(e.conns, c)
			if err := e.connect(c, len(e.conns)-1); err != nil {
				return nil, errors.Join(err, e.close())
			}
			e.streams[i].idle = append(e.streams[i].idle, c)
		}
	}
	return e, nil
}

func (e *engine) close() error {
	errs := []error{e.poll.close()}
	for _, c := range e.conns {
		if c.fd >= 0 {
			errs = append(errs, unix.Close(c.fd))
		}
	}
	return errors.Join(errs...)
}

func (e *engine) connect(c *conn, id int) error {
	fd, err := dial(e.plan.Streams[c.stream].Addr)
	if err != nil {
		return err
	}
	c.fd = fd
	return e.poll.add(fd, id)
}

// loop is the run: wait for answers and for the next thing that is due.
func (e *engine) loop(ctx context.Context) error {
	e.start = time.Now()
	for i := range e.streams {
		if e.open(i) {
			e.streams[i].next = e.gap(i)
			continue
		}
		for c := e.free(i); c != nil; c = e.free(i) {
			e.send(c, e.now())
		}
	}
	for {
		if ctx.Err() != nil {
			return fmt.Errorf("load: %w", context.Cause(ctx))
		}
		if err := e.tick(e.now()); err != nil {
			return err
		}
		if e.phase == draining && (e.unanswered == 0 || e.now() > e.ended+e.plan.Drain) {
			e.giveUp()
			return nil
		}
		events, err := e.poll.wait(e.untilDue(e.now()))
		if err != nil {
			return err
		}
		for _, event := range events {
			if err := e.readable(int(event.Fd)); err != nil {
				return err
			}
			// A batch of answers must not delay what is due meanwhile.
			if err := e.tick(e.now()); err != nil {
				return err
			}
		}
	}
}

func (e *engine) now() time.Duration   { return time.Since(e.start) }
func (e *engine) open(stream int) bool { return e.plan.Streams[stream].Rate > 0 }

// gap draws the time to the next arrival of a Poisson process.
func (e *engine) gap(stream int) time.Duration {
	return time.Duration(e.random.ExpFloat64() / e.plan.Streams[stream].Rate * float64(time.Second))
}

// free takes an idle connection of a stream, nil when there is none.
func (e *engine) free(stream int) *conn {
	idle := e.streams[stream].idle
	if len(idle) == 0 {
		return nil
	}
	e.streams[stream].idle = idle[:len(idle)-1]
	return idle[len(idle)-1]
}

// untilDue returns how long nothing but an answer can happen.
func (e *engine) untilDue(now time.Duration) time.Duration {
	wait := longestWait
	switch e.phase {
	case warming:
		wait = min(wait, e.plan.Warmup-now)
	case measuring:
		wait = min(wait, e.began+e.plan.Measure-now)
	case draining:
		return wait
	}
	for i := range e.streams {
		if e.open(i) {
			wait = min(wait, e.streams[i].next-now)
		}
	}
	return wait
}

// tick does what is due: borders of the window, and arrivals.
func (e *engine) tick(now time.Duration) error {
	if e.phase == warming && now >= e.plan.Warmup {
		if err := e.mark(true); err != nil {
			return err
		}
		e.phase, e.began = measuring, e.now()
	}
	if e.phase == measuring && now >= e.began+e.plan.Measure {
		e.phase, e.ended = draining, now
		if err := e.mark(false); err != nil {
			return err
		}
	}
	if e.phase == draining {
		return nil
	}
	for i := range e.streams {
		for e.open(i) && e.streams[i].next <= now {
			e.arrive(i, e.streams[i].next)
			e.streams[i].next += e.gap(i)
		}
	}
	return nil
}

func (e *engine) mark(begins bool) error {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_THREAD, &u); err != nil {
		return fmt.Errorf("read CPU time: %w", err)
	}
	e.cpu = time.Duration(u.Utime.Nano()+u.Stime.Nano()) - e.cpu
	if e.plan.Mark != nil {
		e.plan.Mark(begins)
	}
	return nil
}

// arrive sends a request of an open loop, or lets it wait for a connection.
func (e *engine) arrive(stream int, due time.Duration) {
	if e.inWindow(due) {
		e.unanswered++
	}
	if c := e.free(stream); c != nil {
		e.send(c, due)
		return
	}
	e.streams[stream].waiting = append(e.streams[stream].waiting, due)
}

// inWindow reports whether a request that is due then belongs to the window.
func (e *engine) inWindow(due time.Duration) bool {
	return e.phase == measuring && due >= e.began
}
