package pending

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"curt/internal/background"
	"curt/internal/link"
	"curt/internal/repeatlog"
)

// Log is where pending links are until they are written. It is safe for many goroutines.
type Log interface {
	// Append adds records, and returns where each is. nil means that they are durable, on more than one
	// machine, and that a writer will read each at least once. After an error any of them may be there:
	// link.ErrUnavailable says that none is, everything else leaves it open.
	Append(ctx context.Context, records []Record) ([]Location, error)

	// Written returns up to where each partition was written: every record before it is in the link store or
	// refused for good.
	Written(ctx context.Context) (map[int32]int64, error)
}

// Record is a link on its way into the log. Records of one key keep their order.
type Record struct {
	Key   string
	Value []byte
	At    time.Time
}

// Location is where a record is.
type Location struct {
	Partition int32
	Offset    int64
}

const (
	// MaxBytes bounds the memory of pending links in a process, at which creates are refused: 60,000 of the usual size.
	MaxBytes = 64 << 20
	// linkBytes is what a link takes besides its texts.
	linkBytes = 768
	// askEvery is how often the log is asked what was written.
	askEvery = 100 * time.Millisecond
	// askLimit bounds one question.
	askLimit = 5 * time.Second
)

// Config is what [New] needs.
type Config struct {
	Log   Log
	Store link.Store // where writers write; a link.Reserver is asked for reservations

	// Shared has links while they are pending, from before Put returns; nil = nothing is shared.
	Shared Shared

	// Accepted is called with each link once the log has it, Ended with its key once it is written or refused. Both may be nil.
	Accepted func(l *link.Link)
	Ended    func(k link.Key)

	MaxBytes int64 // 0 = MaxBytes
	Logger   *slog.Logger
}

// Links are the pending links of this process. It is safe for many goroutines.
type Links struct {
	cfg      Config
	reserver link.Reserver // nil = there are no reservations

	mu       sync.Mutex
	byKey    map[link.Key]*entry // guarded by mu
	bytes    int64               // guarded by mu: of the entries, and of those that are on their way into the log
	arrived  chan struct{}       // capacity 1: there is something to follow
	accepted atomic.Uint64
	refused  atomic.Uint64
	lastWait atomic.Int64 // of a link that was among the last to be written, in nanoseconds
}

// entry is a pending link.
type entry struct {
	link     link.Link
	location Location
	since    time.Time
	bytes    int64
	done     chan struct{} // closed once the link is not pending any more
}

// New returns Links that nothing is pending of. Run follows the log.
func New(cfg Config) *Links {
	if cfg.MaxBytes == 0 {
		cfg.MaxBytes = MaxBytes
	}
	if cfg.Accepted == nil {
		cfg.Accepted = func(*link.Link) {}
	}
	if cfg.Ended == nil {
		cfg.Ended = func(link.Key) {}
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	p := &Links{cfg: cfg, byKey: map[link.Key]*entry{}, arrived: make(chan struct{}, 1)}
	p.reserver, _ = cfg.Store.(link.Reserver)
	return p
}

// ErrFull says that more links are pending than this process keeps in memory. It wraps link.ErrUnavailable.
var ErrFull = link.Unavailable(errors.New("too many links are pending"))

// Put accepts links, each under a generated code, and returns what became of each, in order: the link with version 0,
// which is pending; the stored link, where an earlier try was written; or link.ErrExists, where the code
// has another link or a reservation. nil means that the log has all that are pending. An error is for the whole call: then
// any of them may be in the log, and the same call may be made again.
func (p *Links) Put(ctx context.Context, links []link.Link) ([]link.Result, error) {
	results := make([]link.Result, len(links))
	if err := p.occupied(ctx, links, results); err != nil {
		return nil, err
	}
	var put []int // which are to be appended
	var records []Record
	var size int64
	for i := range links {
		l := &links[i]
		if results[i].Err != nil || results[i].Link.Version != 0 {
			continue
		}
		if known, is := p.Find(l.Key); is && known.ID == l.ID {
			results[i].Link = known
			continue
		}
		if results[i].Err = l.Validate(); results[i].Err != nil {
			continue
		}
		l.Version = 0
		text, err := Encode(l)
		if err != nil {
			results[i].Err = err
			continue
		}
		put, records, size = append(put, i), append(records, Record{l.Key.String(), text, l.Created}), size+sizeOf(l)
	}
	if len(put) == 0 {
		return results, nil
	}
	if !p.reserve(size) {
		p.refused.Add(uint64(len(put)))
		return nil, ErrFull
	}
	locations, err := p.cfg.Log.Append(ctx, records)
	if err != nil {
		p.release(size)
		return nil, fmt.Errorf("queue a link: %w", err)
	}
	now := time.Now()
	for n, i := range put {
		if p.cfg.Shared != nil {
			_ = p.cfg.Shared.Share(ctx, links[i].Key, records[n].Value, sharedFor) // it is shown here, and elsewhere once it is written
		}
		p.accept(&links[i], locations[n], now)
		results[i].Link = links[i]
	}
	return results, nil
}

// occupied fills in what has the codes of links: the links themselves, where an earlier try was written, or
// other links and reservations. Codes of generators are unique among themselves; somebody may have chosen one as an alias
// before it was generated.
func (p *Links) occupied(ctx context.Context, links []link.Link, results []link.Result) error {
	keys := make([]link.Key, len(links))
	for i := range links {
		keys[i] = links[i].Key
	}
	stored, err := link.GetMany(ctx, p.cfg.Store, keys)
	if err != nil {
		return fmt.Errorf("find the codes of links: %w", err)
	}
	for i := range stored {
		switch {
		case stored[i].ID.IsZero():
		case stored[i].ID == links[i].ID:
			results[i].Link = stored[i]
		default:
			results[i].Err = link.ErrExists
		}
	}
	if p.reserver == nil {
		return nil
	}
	found, err := p.reserver.Occupants(ctx, keys)
	if err != nil {
		return fmt.Errorf("find the reservations of codes: %w", err)
	}
	for i := range found {
		if found[i].Held() {
			results[i].Err = link.ErrExists
		}
	}
	return nil
}

func sizeOf(l *link.Link) int64 {
	n := linkBytes + len(l.Key.Domain) + len(l.Key.Code) + len(l.Destination) + len(l.Fallback) + len(l.Title) + len(l.Later.Members)
	for _, t := range l.Tags {
		n += len(t) + 16
	}
	return int64(n)
}

// reserve takes memory, and reports whether there is enough.
func (p *Links) reserve(n int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bytes+n > p.cfg.MaxBytes {
		return false
	}
	p.bytes += n
	return true
}

func (p *Links) release(n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.bytes -= n
}

// accept keeps a link that the log has. Its memory is reserved.
func (p *Links) accept(l *link.Link, at Location, now time.Time) {
	e := &entry{link: *l, location: at, since: now, bytes: sizeOf(l), done: make(chan struct{})}
	p.mu.Lock()
	before := p.byKey[l.Key]
	if before != nil { // two tries of one request at once: the later record is the one to wait for
		p.bytes -= before.bytes
		e.done, e.since = before.done, before.since
	}
	p.byKey[l.Key] = e
	p.mu.Unlock()
	p.accepted.Add(1)
	p.cfg.Accepted(l)
	select {
	case p.arrived <- struct{}{}:
	default:
	}
}

// Find returns a pending link, with version 0. A store that has the link knows better: it is to be asked first.
func (p *Links) Find(k link.Key) (link.Link, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if e := p.byKey[k]; e != nil {
		return e.link, true
	}
	return link.Link{}, false
}

// Await returns once a link is not pending here any more: the store then has what became of it. The error is that of
// ctx, and leaves the link pending.
func (p *Links) Await(ctx context.Context, k link.Key) error {
	p.mu.Lock()
	e := p.byKey[k]
	p.mu.Unlock()
	if e == nil {
		return nil
	}
	select {
	case <-e.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait until %s is written: %w", k, context.Cause(ctx))
	}
}

// Run follows what was written until ctx ends, and returns nil then.
func (p *Links) Run(ctx context.Context) error {
	var failing repeatlog.Condition
	for {
		if p.none() {
			select {
			case <-ctx.Done():
				return nil
			case <-p.arrived:
			}
		}
		if err := p.follow(ctx); err != nil {
			if ctx.Err() == nil {
				failing.Log(ctx, time.Now(), p.cfg.Logger, slog.LevelWarn, "asking which links were written failed, retrying", err)
			}
		} else {
			failing.LogRecovery(ctx, time.Now(), p.cfg.Logger, "asking which links were written recovered")
		}
		if !background.Sleep(ctx, askEvery) {
			return nil
		}
	}
}

func (p *Links) none() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.byKey) == 0
}

// follow ends the waiting of the links that were written.
func (p *Links) follow(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	written, err := p.cfg.Log.Written(ctx)
	if err != nil {
		return err //nolint:wrapcheck // the log says what it did
	}
	ended := p.take(written)
	if n := len(ended); n > 0 {
		p.lastWait.Store(int64(time.Since(ended[n-1].since)))
	}
	for _, e := range ended {
		p.cfg.Ended(e.link.Key)
		close(e.done)
	}
	p.unshare(ctx, ended)
	return nil
}

// waited returns how long links waited that were written last; 0 = none was.
func (p *Links) waited() time.Duration { return time.Duration(p.lastWait.Load()) }

// unshare has links that were written shared for a moment only.
func (p *Links) unshare(ctx context.Context, ended []*entry) {
	if p.cfg.Shared == nil {
		return
	}
	for _, e := range ended {
		if record, err := Encode(&e.link); err == nil {
			_ = p.cfg.Shared.Share(ctx, e.link.Key, record, sharedAfter) // else it ends by itself
		}
	}
}

// take removes the links that were written.
func (p *Links) take(written map[int32]int64) (ended []*entry) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for k, e := range p.byKey {
		if end, known := written[e.location.Partition]; known && e.location.Offset < end {
			delete(p.byKey, k)
			p.bytes -= e.bytes
			ended = append(ended, e)
		}
	}
	return ended
}

// Stats are figures of pending links.
type Stats struct {
	Pending           int
	Bytes             int64
	Oldest            time.Time // when the oldest was accepted; zero = none is pending
	Accepted, Refused uint64
}

// Stats returns the figures.
func (p *Links) Stats() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := Stats{Pending: len(p.byKey), Bytes: p.bytes, Accepted: p.accepted.Load(), Refused: p.refused.Load()}
	for _, e := range p.byKey {
		if s.Oldest.IsZero() || e.since.Before(s.Oldest) {
			s.Oldest = e.since
		}
	}
	return s
}
