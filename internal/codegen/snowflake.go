package codegen

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"curt/internal/background"
	"curt/internal/link"
	"curt/internal/repeatlog"
)

// SnowflakeLength is the length of all Snowflake codes. 62^11 exceeds 2^64, so that these codes have
// no Space; 62^10 is less than the 2^63 ids.
const SnowflakeLength = 11

// Bits of an id: milliseconds since 2026-01-01T00:00:00Z, which last until 2095, the machine id, and
// the sequence within the millisecond.
const (
	millisecondBits = 41
	machineBits     = 10
	sequenceBits    = 12

	epoch     = 1_767_225_600_000 // Unix milliseconds
	machines  = 1 << machineBits
	sequences = 1 << sequenceBits
)

const (
	// clockTolerance is how long Next waits for a clock that went backwards.
	clockTolerance = 10 // milliseconds

	// machineLease is how far ahead milliseconds are leased: how long a machine id stays leased after
	// its process was killed, and how far the clocks of two servers may differ before they lease the same machine id
	// by turns.
	machineLease = 60_000 // milliseconds
)

// MachineLeases are the leases of machine ids, the part of a [Leaser] that Snowflake needs. The counter
// of a machine id is the first millisecond that no process owns: while it lies in the future, the
// machine id is leased.
type MachineLeases interface {
	Leased(ctx context.Context, counter string) (uint64, error)
	Raise(ctx context.Context, counter string, from, to uint64) error
}

// SnowflakeConfig says how a Snowflake leases and writes ids.
type SnowflakeConfig struct {
	Leases      MachineLeases
	Permutation *Permutation     // nil = codes are the ids themselves, in the order of their creation
	Now         func() time.Time // the wall clock
	Log         *slog.Logger     // nil = silence
}

// Snowflake is the strategy "snowflake": an id of time, machine and sequence, permuted, in base62. Its
// guarantee is Unique.
//
// A process issues ids only in milliseconds that it owns with its machine id. It raises the counter of the
// machine id before it issues, and only from the value that it knows, so that no millisecond of a machine id ever
// belongs to two processes: whatever the clocks show, however long a process was paused, and after
// any restart. The counter is the lease, its fence, and the highest timestamp written ahead.
//
// A clock that goes backwards by more than 10 ms ends the use of the machine id. Next refuses until
// Run has leased another one, whose milliseconds from the new time on were never issued.
type Snowflake struct {
	leases MachineLeases
	perm   *Permutation
	now    func() time.Time
	log    *slog.Logger

	wake   chan struct{} // capacity 1: Run should renew
	refill chan struct{} // holds one token; its owner may renew

	mu       sync.Mutex
	machine  int64 // guarded by mu, as the next three; -1 = none
	at       int64 // the millisecond of the last id
	sequence int64 // of the last id
	end      int64 // the first millisecond that is not owned

	behind repeatlog.Condition
	stats  snowflakeCounters
}

// NewSnowflake returns a Snowflake without a machine id.
func NewSnowflake(c SnowflakeConfig) *Snowflake {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	s := &Snowflake{
		leases: c.Leases, perm: c.Permutation, now: c.Now, log: c.Log,
		wake: make(chan struct{}, 1), refill: make(chan struct{}, 1), machine: -1, at: -1,
	}
	s.refill <- struct{}{}
	return s
}

var (
	errNoLease   = errors.New("no millisecond is leased")
	errClockBack = errors.New("the clock went backwards")
)

// Next returns the code of the next id. It waits for the next millisecond when the sequence of this one is used
// up, and up to 10 ms for a clock that went backwards. The need does not matter. Errors are those
// of Generator.
func (s *Snowflake) Next(ctx context.Context, _ Need) (link.Code, error) {
	for {
		id, wait, err := s.take()
		switch {
		case errors.Is(err, errNoLease):
			if err := s.renew(ctx, &s.stats.inline); err != nil {
				return "", err
			}
		case err != nil:
			if errors.Is(err, errClockBack) {
				s.stats.refusals.Add(1)
				s.behind.Log(ctx, time.Now(), s.log, slog.LevelWarn, "clock went backwards, creates are refused until another machine id is leased", err)
				s.wakeRun()
			}
			return "", fmt.Errorf("next id: %w", err)
		case wait == 0:
			return s.code(id), nil
		default:
			s.stats.waits.Add(1)
			if !background.Sleep(ctx, wait) {
				return "", link.Unavailable(fmt.Errorf("wait for the next millisecond: %w", context.Cause(ctx)))
			}
		}
	}
}

// take returns the next id, or how long the clock needs to reach the millisecond of the next one.
func (s *Snowflake) take() (id uint64, wait time.Duration, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	clock := s.now()
	now := clock.UnixMilli() - epoch
	at, sequence := s.at, s.sequence+1
	switch {
	case now < 0:
		return 0, 0, link.Unavailable(errors.New("the clock shows a time before 2026"))
	case now > at:
		at, sequence = now, 0
	case at-now > clockTolerance:
		return 0, 0, link.Unavailable(fmt.Errorf("%w, by %d ms", errClockBack, at-now))
	case now < at:
		return 0, time.UnixMilli(epoch + at).Sub(clock), nil
	case sequence == sequences:
		return 0, time.UnixMilli(epoch + at + 1).Sub(clock), nil
	}
	if at >= 1<<millisecondBits {
		return 0, 0, ErrExhausted
	}
	if at >= s.end {
		return 0, 0, errNoLease
	}
	if s.end-at <= machineLease/2 {
		s.wakeRun()
	}
	s.at, s.sequence = at, sequence
	return uint64(at<<(machineBits+sequenceBits) | s.machine<<sequenceBits | sequence), 0, nil
}

// code writes an id with 11 digits.
func (s *Snowflake) code(id uint64) link.Code {
	if s.perm != nil {
		id = s.perm.forward(newSpace(1<<(millisecondBits+machineBits+sequenceBits), SnowflakeLength), id)
	}
	return encode62(SnowflakeLength, id)
}

// Guarantee is Unique.
func (s *Snowflake) Guarantee() Guarantee { return Unique }

// Kind is link.Chosen: releases before this strategy take a code of another kind, with 11 digits, for one that was
// never issued.
func (s *Snowflake) Kind() link.CodeKind { return link.Chosen }

// Burned does nothing: an alias had the code, and the next id has another.
func (s *Snowflake) Burned(link.Code) {}

// Run keeps a machine id leased until ctx ends, and returns nil then. Without creates it renews nothing.
func (s *Snowflake) Run(ctx context.Context) error {
	var failing repeatlog.Condition
	for {
		var retry <-chan time.Time
		if err := s.renewWithin(ctx); err != nil && ctx.Err() == nil {
			failing.Log(ctx, time.Now(), s.log, slog.LevelWarn, "lease of a machine id failed, retrying", err)
			retry = time.After(leaseRetry)
		} else {
			failing.LogRecovery(ctx, time.Now(), s.log, "leases of machine ids recovered")
			s.behind.LogRecovery(ctx, time.Now(), s.log, "clock recovered")
		}
		select {
		case <-ctx.Done():
			return nil
		case <-s.wake:
		case <-retry:
		}
	}
}

func (s *Snowflake) wakeRun() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *Snowflake) renewWithin(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, leaseTimeout)
	defer cancel()
	return s.renew(ctx, &s.stats.ahead)
}

// renew owns milliseconds from now on: more of the machine id, or, where another process has that or the clock is
// behind its last id, those of another machine id. Of several callers one renews and the others find that done.
func (s *Snowflake) renew(ctx context.Context, count *atomic.Uint64) error {
	select {
	case <-s.refill:
	case <-ctx.Done():
		return link.Unavailable(fmt.Errorf("wait for a machine id: %w", context.Cause(ctx)))
	}
	defer func() { s.refill <- struct{}{} }()
	s.mu.Lock()
	machine, at, end := s.machine, s.at, s.end
	s.mu.Unlock()
	now := s.now().UnixMilli() - epoch
	usable := machine >= 0 && at-now <= clockTolerance
	if usable && end-now > machineLease/2 {
		return nil
	}
	count.Add(1)
	err := s.lease(ctx, machine, end, now, usable)
	if err != nil {
		s.stats.failures.Add(1)
		if !errors.Is(err, link.ErrUnavailable) {
			err = link.Unavailable(err)
		}
		return fmt.Errorf("lease a machine id: %w", err)
	}
	return nil
}

// lease extends the lease of the machine id, or takes the first free one after a random one: two copies of one
// store must not issue the same codes.
func (s *Snowflake) lease(ctx context.Context, machine, end, now int64, usable bool) error {
	if now < 0 {
		return errors.New("the clock shows a time before 2026")
	}
	if usable {
		err := s.own(ctx, machine, end, now)
		if !errors.Is(err, link.ErrConflict) {
			return err
		}
		if now < end {
			s.log.WarnContext(ctx, "machine id was leased by another server, leasing another: clocks differ, or an answer of the store was lost",
				slog.Int64("machine_id", machine))
		}
	}
	first := rand.Int64N(machines) // no secret
	for i := range int64(machines) {
		m := (first + i) % machines
		mark, err := s.leases.Leased(ctx, machineCounter(m))
		if err == nil && int64(mark) <= now {
			err = s.own(ctx, m, int64(mark), now)
			if err == nil {
				return nil
			}
		}
		if err != nil && !errors.Is(err, link.ErrConflict) {
			return err
		}
	}
	return fmt.Errorf("all %d machine ids are leased by other servers or for later times", machines)
}

// own takes the milliseconds of a machine id from where nobody owns them. link.ErrConflict = another process was first.
func (s *Snowflake) own(ctx context.Context, machine, from, now int64) error {
	to := now + machineLease
	if err := s.leases.Raise(ctx, machineCounter(machine), uint64(from), uint64(to)); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if machine != s.machine || from != s.end {
		// The millisecond before counts as used up: it is another process's.
		s.machine, s.at, s.sequence = machine, from-1, sequences-1
	}
	s.end = to
	return nil
}

// Counters are the names of all counters that a [Leaser] may have: of each length of codes, and of each
// machine id.
func Counters() []string {
	all := make([]string, 0, MaxLength-MinLength+1+machines)
	for length := MinLength; length <= MaxLength; length++ {
		all = append(all, Counter(DefaultPrefix, length))
	}
	for m := range int64(machines) {
		all = append(all, machineCounter(m))
	}
	return all
}

// machineCounter names the counter of the milliseconds of a machine id.
func machineCounter(machine int64) string { return "snowflake-" + strconv.FormatInt(machine, 10) }

// SnowflakeStats are totals since the Snowflake was created, but for Machine.
type SnowflakeStats struct {
	Machine  int    // id; -1 = none
	Leases   uint64 // attempts to lease
	Inline   uint64 // of them, those that a caller of Next waited for
	Failures uint64 // leases that failed
	Waits    uint64 // for the clock: the sequence was used up, or the clock went backwards
	Refusals uint64 // codes refused because the clock went backwards
}

type snowflakeCounters struct{ ahead, inline, failures, waits, refusals atomic.Uint64 }

// Stats returns the totals. Each is exact; together they are not one moment.
func (s *Snowflake) Stats() SnowflakeStats {
	s.mu.Lock()
	machine := s.machine
	s.mu.Unlock()
	inline := s.stats.inline.Load()
	return SnowflakeStats{
		Machine: int(machine), Leases: inline + s.stats.ahead.Load(), Inline: inline, Failures: s.stats.failures.Load(),
		Waits: s.stats.waits.Load(), Refusals: s.stats.refusals.Load(),
	}
}
