// Package expiry announces links that expired, and removes the content of those that expired long ago, and
// reservations of aliases that have lapsed. The end of both is exact without it, as it is computed whenever one
// is read.
//
// [Sweeper] appends entries of kind [link.WasExpired] to the change log, on one server of a fleet, and
// then replaces links by their tombstones, at a fixed rate (purger.go). Read sweeper.go first;
// expirytest proves both over stores.
//
// The package imports background, feed, joblease, link, repeatlog and the standard library.
package expiry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"curt/internal/background"
	"curt/internal/feed"
	"curt/internal/joblease"
	"curt/internal/link"
	"curt/internal/repeatlog"
)

// Name is that of the sweeper's lease, and of its position.
const Name = "expired-links"

const (
	// sweepEvery is how often the index of ends is read, and followEvery sweeps the logs.
	sweepEvery  = 2 * time.Second
	followEvery = 2
	// settled is how long after its end a link is announced: servers whose clocks are less than that
	// behind answer that it expired, by then.
	settled = time.Second
	// storeEvery is how often a position is stored that moved over entries without effect.
	storeEvery = time.Minute
	logPage    = 1000
)

// Logs are the logs of a store of links.
type Logs interface {
	link.EventLog
	link.CreateLog
}

// Config is what NewSweeper needs.
type Config struct {
	Links     link.Store
	Logs      Logs // of Links
	Positions feed.Positions[link.Position]
	Once      joblease.Once     // but for its name
	Retention time.Duration     // of the content, from the end of a link; 0 = it stays
	Changed   func(link.Change) // called with each link that lost it
	Now       func() time.Time
	Yielder   background.Yielder
	Log       *slog.Logger
}

// Sweeper appends the keys of links that expired to the change log: at least once for each end of a
// link, within five seconds of it.
//
// It moves a cursor over the index of ends. Behind the cursor are the ends of links that became visible
// or were changed too late for it: the logs have these, which it follows too. A link in a log whose end
// lies ahead of the cursor is in the index, for it was visible before the next page is read. All three
// positions are stored together after what they led to was appended, under the fence of the lease.
type Sweeper struct {
	cfg       Config
	announced atomic.Uint64
	swept     atomic.Int64 // when all that had ended was announced, Unix ms; 0 = another server sweeps
	purger    purger

	reserver link.Reserver // nil = the store is none
	emptied  time.Time     // when lapsed reservations were removed
}

// NewSweeper returns a Sweeper that begins with Run.
func NewSweeper(c Config) *Sweeper {
	c.Once.Name = Name
	s := &Sweeper{cfg: c}
	s.purger.cfg = &s.cfg
	s.reserver, _ = c.Links.(link.Reserver)
	return s
}

// Removed returns of how many links the content was removed.
func (s *Sweeper) Removed() uint64 { return s.purger.removed.Load() }

// Announced returns how many links were announced; repeats count too.
func (s *Sweeper) Announced() uint64 { return s.announced.Load() }

// Lag returns how long ago all links that had expired were announced; 0 = another server sweeps.
func (s *Sweeper) Lag() time.Duration {
	swept := s.swept.Load()
	if swept == 0 {
		return 0
	}
	return max(0, s.cfg.Now().Sub(time.UnixMilli(swept)))
}

// Run sweeps while this server holds the lease, until ctx ends. What fails is logged and tried again.
func (s *Sweeper) Run(ctx context.Context) error { return s.cfg.Once.Run(ctx, s.hold) }

func (s *Sweeper) hold(ctx context.Context, fence uint64) error {
	s.swept.Store(s.cfg.Now().UnixMilli())
	defer s.swept.Store(0)
	s.cfg.Yielder.LowerPriority()
	h := &sweep{Sweeper: s, fence: fence}
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	var failing repeatlog.Condition
	for {
		err := h.turn(ctx)
		if errors.Is(err, joblease.ErrLost) {
			return err
		}
		if err != nil {
			failing.Log(ctx, s.cfg.Now(), s.cfg.Log, slog.LevelWarn, "announcing expired links failed, retrying", err)
		} else {
			failing.LogRecovery(ctx, s.cfg.Now(), s.cfg.Log, "announcing expired links recovered")
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
}

// sweep is the sweeper while it holds the lease.
type sweep struct {
	*Sweeper

	fence  uint64
	at     position // "" until it was read
	stored string   // what is stored of it
	when   time.Time
	rounds int
}

// position is how far the sweeper came in the logs and in the index of ends.
type position struct {
	changes, creates link.Position
	passed           int64 // no end at or before the cursor is later, Unix ms
	ends             link.Cursor
}

// String returns p as it is stored.
func (p position) String() string {
	return fmt.Sprintf("%s %s %d %s", p.changes, p.creates, p.passed, p.ends)
}

func parsePosition(text link.Position) (p position, err error) {
	parts := strings.SplitN(string(text), " ", 4)
	if len(parts) != 4 {
		return p, fmt.Errorf("position %q of the sweeper: %w", text, link.ErrInvalid)
	}
	p = position{changes: link.Position(parts[0]), creates: link.Position(parts[1]), ends: link.Cursor(parts[3])}
	if p.passed, err = strconv.ParseInt(parts[2], 10, 64); err != nil {
		return p, fmt.Errorf("position %q of the sweeper: %w", text, link.ErrInvalid)
	}
	return p, nil
}

// turn announces what has expired, and then removes content. A link that was found before the round is
// announced by it, whatever its cursor and the logs had reached: after an outage no link loses its
// content without having been announced.
func (s *sweep) turn(ctx context.Context) error {
	found, failed := s.purger.find(ctx)
	complete, err := s.round(ctx, len(found.links) > 0)
	if err == nil && failed == nil && complete {
		if failed = s.announce(ctx, found.lateCreates()); failed == nil {
			failed = s.purger.remove(ctx, found)
		}
	}
	if failed == nil {
		failed = s.removeReservations(ctx)
	}
	s.purger.log(ctx, failed)
	return err
}

const (
	// emptyEvery is how often lapsed reservations are removed. They hold nothing, so that nobody waits for it.
	emptyEvery = time.Minute
	emptyPage  = 1000
)

// removeReservations removes lapsed reservations.
func (s *sweep) removeReservations(ctx context.Context) error {
	now := s.cfg.Now()
	if s.reserver == nil || now.Sub(s.emptied).Abs() < emptyEvery {
		return nil
	}
	for {
		s.cfg.Yielder.Yield()
		removed, err := s.reserver.RemoveLapsed(ctx, emptyPage)
		if err != nil {
			return err
		}
		if removed < emptyPage {
			s.emptied = now
			return nil
		}
	}
}

// round announces what has expired since the last one, and reports whether all that had ended when it
// began is announced; of what the index does not have only where it reads the logs.
func (s *sweep) round(ctx context.Context, logs bool) (complete bool, err error) {
	if s.stored == "" {
		if err := s.load(ctx); err != nil {
			return false, err
		}
	}
	by := s.cfg.Now().Add(-settled)
	// Logs come first: what they have ahead of the cursor is announced once, by the index. A cursor that
	// is ahead of the clock was moved under another clock: its links have not expired here.
	ahead := by.UnixMilli() < s.at.passed
	if (logs || s.rounds%followEvery == 0) && !ahead {
		err := s.follow(ctx)
		if errors.Is(err, link.ErrConflict) {
			s.cfg.Log.WarnContext(ctx, "entries of the change log are gone, announcing all expired links again", slog.Any("err", err))
			err = s.restart(ctx)
		}
		if err != nil {
			return false, err
		}
	}
	if err := s.sweepEnds(ctx, by, s.announce); err != nil {
		return false, err
	}
	s.rounds++
	if !ahead {
		s.swept.Store(by.UnixMilli())
	}
	if s.at.String() != s.stored && s.cfg.Now().Sub(s.when).Abs() >= storeEvery {
		err = s.store(ctx)
	}
	return !ahead, err
}

// load reads the position. At the first start nothing is announced: not the links that had expired by
// then.
func (s *sweep) load(ctx context.Context) error {
	text, begun, err := s.cfg.Positions.FollowerPosition(ctx, Name)
	if err != nil {
		return err
	}
	s.when = s.cfg.Now()
	if begun {
		if s.at, err = parsePosition(text); err != nil {
			return s.restart(ctx)
		}
		s.stored = string(text)
		return nil
	}
	if s.at, err = s.heads(ctx); err != nil {
		return err
	}
	skip := func(context.Context, []link.Key) error { return nil }
	if err := s.sweepEnds(ctx, s.cfg.Now().Add(-settled), skip); err != nil {
		return err
	}
	return s.store(ctx)
}

// heads is the position behind the logs, and before all ends.
func (s *sweep) heads(ctx context.Context) (p position, err error) {
	if p.changes, err = s.cfg.Links.Head(ctx); err == nil {
		p.creates, err = s.cfg.Logs.CreatesHead(ctx)
	}
	return p, err
}

// restart has all links announced again, as nobody knows which of them the logs had.
func (s *sweep) restart(ctx context.Context) (err error) {
	if s.at, err = s.heads(ctx); err == nil {
		err = s.store(ctx)
	}
	return err
}

// sweepEnds moves the cursor to a time, and the stored position with it where links are announced.
func (s *sweep) sweepEnds(ctx context.Context, by time.Time, announce func(context.Context, []link.Key) error) error {
	for more := true; more; {
		s.cfg.Yielder.Yield()
		keys, next, err := s.cfg.Links.Expired(ctx, s.at.ends, by, link.MaxEventKeys)
		if err != nil || len(keys) == 0 {
			return err
		}
		if err := announce(ctx, keys); err != nil {
			return err
		}
		s.at.ends, s.at.passed, more = next, by.UnixMilli(), len(keys) == link.MaxEventKeys
		if s.stored != "" {
			if err := s.store(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// announce appends links that expired to the change log.
func (s *sweep) announce(ctx context.Context, keys []link.Key) error {
	if len(keys) == 0 {
		return nil
	}
	if err := s.cfg.Logs.Append(ctx, link.Event{Kind: link.WasExpired, Keys: keys}); err != nil {
		return err
	}
	s.announced.Add(uint64(len(keys)))
	return nil
}

// store keeps the position.
func (s *sweep) store(ctx context.Context) error {
	text := s.at.String()
	err := s.cfg.Positions.MoveFollower(ctx, Name, s.fence, link.Position(text))
	if errors.Is(err, link.ErrConflict) {
		return fmt.Errorf("%w: %w", joblease.ErrLost, err)
	}
	if err == nil {
		s.stored, s.when = text, s.cfg.Now()
	}
	return err
}

// follow announces the links of the logs whose end is behind the cursor.
func (s *sweep) follow(ctx context.Context) error {
	for more := true; more; {
		s.cfg.Yielder.Yield()
		changed, next, further, err := s.cfg.Logs.ExpiryChanges(ctx, s.at.changes, logPage)
		if err != nil {
			return err
		}
		links, err := link.GetMany(ctx, s.cfg.Links, changed)
		if err != nil {
			return err
		}
		var keys []link.Key
		for i := range links {
			if links[i].Ended(time.UnixMilli(s.at.passed)) {
				keys = append(keys, links[i].Key)
			}
		}
		if err := s.announce(ctx, keys); err != nil {
			return err
		}
		s.at.changes, more = next, further
	}
	for more := true; more; {
		s.cfg.Yielder.Yield()
		keys, next, further, err := s.cfg.Logs.CreatesEnded(ctx, s.at.creates, time.UnixMilli(s.at.passed), logPage)
		if err != nil {
			return err
		}
		if err := s.announce(ctx, keys); err != nil {
			return err
		}
		s.at.creates, more = next, further
	}
	return nil
}
