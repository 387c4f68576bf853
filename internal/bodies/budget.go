package bodies

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// ErrFull means that there was no room for a body in time. Nothing is wrong with the body:
// its client may send it again later.
var ErrFull = errors.New("no memory left for request bodies")

// ErrSlow means that others waited for room that this body had, and its client sent too slowly.
var ErrSlow = errors.New("the body was sent too slowly while others waited")

// Slow is how long the next part of a body, as large as it is by now and at most 64 KiB, may take
// while others wait for room. Small bodies come at once, and a mobile network sends 64 KiB in less.
const Slow = 5 * time.Second

// RetryAfter is when a client that met ErrFull may try again.
const RetryAfter = 5 * time.Second

// Config bounds a Budget. Zero fields have the defaults.
type Config struct {
	Small int64 // up to how many bytes a body is small
	Large int64 // the most bytes of any body

	SmallShare int64 // bytes of all bodies that may not become large; at least Small
	FirstShare int64 // bytes of all that may, while they are small; at least Small
	LargeShare int64 // bytes of those that are large; at least Large
	WorkShare  int64 // bytes of the large bodies that are worked on; at least Large

	// Patience is how long a body waits for room, each time. It is less than the time that a
	// server gives to a whole request.
	Patience time.Duration

	Metrics prometheus.Registerer // nil = they are kept to itself
}

// The defaults. A body of 16 MiB is 1,000 links with the longest URLs. A quarter more
// lets the next one begin while one is worked on; what is worked on takes some four times
// its size, and garbage as much as half of all (docs/decisions/0042).
const (
	DefaultSmall      = 64 << 10
	DefaultLarge      = 16 << 20
	DefaultSmallShare = 8 << 20
	DefaultFirstShare = 8 << 20
	DefaultLargeShare = 20 << 20
	DefaultWorkShare  = DefaultLarge
	DefaultPatience   = 20 * time.Second
)

const (
	// firstStep is what a body may take before it has sent anything.
	firstStep = 2 << 10
	// maxStep is the most that it may take beyond what it has sent.
	maxStep = 64 << 10
)

// Budget is the memory that bodies may take. It is safe for many goroutines.
type Budget struct {
	config                    Config
	small, first, large, work *pool
	refused, stopped          prometheus.Counter
}

// New returns a Budget.
func New(c Config) *Budget {
	for _, d := range []struct {
		field *int64
		value int64
	}{{&c.Small, DefaultSmall}, {&c.Large, DefaultLarge}, {&c.SmallShare, DefaultSmallShare}, {&c.FirstShare, DefaultFirstShare}, {&c.LargeShare, DefaultLargeShare}, {&c.WorkShare, DefaultWorkShare}} {
		if *d.field == 0 {
			*d.field = d.value
		}
	}
	if c.Patience == 0 {
		c.Patience = DefaultPatience
	}
	b := &Budget{
		config: c, small: newPool(c.SmallShare, c.Small), first: newPool(c.FirstShare, c.Small),
		large: newPool(c.LargeShare, c.Large), work: newPool(c.WorkShare, c.Large),
		refused: counter("bodies_refused_total", "Requests answered 503 because the memory for request bodies was full."),
		stopped: counter("bodies_stopped_total", "Requests answered 408 because their body was sent too slowly while others waited for memory."),
	}
	b.work.stay = true
	if c.Metrics != nil {
		c.Metrics.MustRegister(b.refused, b.stopped,
			gauge("bodies_bytes", "Bytes in use of the memory for request bodies.", func() int64 {
				small, large := b.Taken()
				return small + large
			}),
			gauge("bodies_waiting", "Requests whose body waits for memory or for processing.", b.Waiting))
	}
	return b
}

func counter(name, help string) prometheus.Counter {
	return prometheus.NewCounter(prometheus.CounterOpts{Namespace: "curt", Name: name, Help: help})
}

func gauge(name, help string, read func() int64) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Namespace: "curt", Name: name, Help: help}, func() float64 { return float64(read()) })
}

// Taken returns how many bytes small and large bodies take.
func (b *Budget) Taken() (small, large int64) {
	return b.small.taken.Load() + b.first.taken.Load(), b.large.taken.Load()
}

// Waiting returns how many bodies wait.
func (b *Budget) Waiting() int64 {
	return b.small.waits.Load() + b.large.waits.Load() + b.work.waits.Load()
}

// Body reads the body of one request within the budget. It belongs to one goroutine, which
// calls Close when nothing of the body, or made of it, is in memory any more.
type Body struct {
	budget *Budget
	ctx    context.Context //nolint:containedctx // of the request, as its Body is
	from   io.Reader
	limit  int64
	stop   func() // has from's Read return

	read, held int64
	loan       *loan // nil = nothing is held
	working    *loan
}

// Open returns the body of a request that may have at most limit bytes. Who reads further
// gets a byte at a time, which is enough to see that there is one. Nothing is taken yet. Stop
// makes a Read of from that waits return an error, at once and for good; it must not block. Nil =
// the body is never stopped, however slow.
func (b *Budget) Open(ctx context.Context, from io.Reader, limit int64, stop func()) *Body {
	return &Body{budget: b, ctx: ctx, from: from, limit: min(limit, b.config.Large), stop: stop}
}

// Request is Open for the body of a request that w answers.
func (b *Budget) Request(w http.ResponseWriter, r *http.Request, limit int64) *Body {
	return b.Open(r.Context(), r.Body, limit, func() {
		_ = http.NewResponseController(w).SetReadDeadline(time.Unix(1, 0)) // a writer that cannot is a test's
	})
}

// Read implements io.Reader. It waits for room before it waits for the client. Errors: those
// of the reader below, ErrFull, ErrSlow, the context's.
func (b *Body) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if b.read >= b.limit {
		return b.fill(p[:1])
	}
	if b.read >= b.held {
		if err := b.grow(min(b.read+min(max(b.read, firstStep), maxStep), b.limit)); err != nil {
			return 0, err
		}
	}
	n, err := b.fill(p[:min(int64(len(p)), b.held-b.read)])
	b.read += int64(n)
	return n, err
}

// fill waits for the client.
func (b *Body) fill(p []byte) (int, error) {
	if b.loan == nil {
		return b.from.Read(p)
	}
	b.loan.reading()
	n, err := b.from.Read(p)
	if stopped := b.loan.arrived(); stopped && err != nil && !errors.Is(err, io.EOF) {
		b.budget.stopped.Inc()
		err = ErrSlow
	}
	return n, err //nolint:wrapcheck // who reads knows the errors of the reader that it gave
}

// Small reports whether what has been read by now is a small body's.
func (b *Body) Small() bool { return b.loan == nil || b.loan.pool != b.budget.large }

// grow takes n bytes in all. The large share is asked for all of them before the first one
// has its own back, so nothing is ever held that was not taken.
func (b *Body) grow(n int64) error {
	if b.loan == nil {
		b.loan = &loan{pool: b.budget.small, stop: b.stop}
		if b.limit > b.budget.config.Small {
			b.loan.pool = b.budget.first
		}
	}
	l := b.loan
	if n > b.budget.config.Small && l.pool != b.budget.large {
		l = &loan{pool: b.budget.large, stop: b.stop}
	}
	if err := b.wait(l, n); err != nil {
		return err
	}
	if l != b.loan {
		b.loan.end()
		b.loan = l
	}
	b.held = n
	return nil
}

func (b *Body) wait(l *loan, n int64) error {
	err := l.grow(b.ctx, n, b.budget.config.Patience)
	if errors.Is(err, ErrFull) {
		b.budget.refused.Inc()
	}
	return err
}

// Work waits until what has been read may be worked on, until done is called or the Body is
// closed. Small bodies need not wait.
func (b *Body) Work() (done func(), err error) {
	if b.Small() || b.working != nil {
		return func() {}, nil
	}
	l := &loan{pool: b.budget.work}
	if err := b.wait(l, b.held); err != nil {
		return nil, err
	}
	b.working = l
	return b.rest, nil
}

func (b *Body) rest() {
	if b.working != nil {
		b.working.end()
		b.working = nil
	}
}

// Close gives everything back. It does not close the reader below.
func (b *Body) Close() {
	b.rest()
	if b.loan != nil {
		b.loan.end()
		b.loan = nil
	}
	b.held = 0
}
