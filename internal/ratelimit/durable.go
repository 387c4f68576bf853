package ratelimit

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"curt/internal/background"
	"curt/internal/repeatlog"
)

const (
	// exchangeAfter is how long charges gather before they are stored: what a server that is killed
	// forgets. With the write it is less than a second.
	exchangeAfter = 500 * time.Millisecond
	// learnEvery is how often the charges of other servers are read.
	learnEvery = time.Second
	// exchangeRows bounds the buckets of one transaction, which others wait for.
	exchangeRows = 500
	// lastExchange bounds the last exchange, when the server stops.
	lastExchange = 3 * time.Second
)

// Durable is a Memory that exchanges charges with a Ledger in the background: its buckets survive a restart but
// for the charges of the last second, and servers that share the Ledger know of each other's charges
// a second later. A charge waits for nothing.
type Durable struct {
	*Memory
	cfg  DurableConfig
	wake chan struct{} // has an element when there are charges to store
}

// DurableConfig is what a Durable needs.
type DurableConfig struct {
	Key    HashKey // of all that share the Ledger
	Ledger Ledger
	Shared bool // other servers use it, too
	Log    *slog.Logger
}

// OpenDurable returns a Durable with the levels that the Ledger has. If it fails, Run retries: a
// server without it has limits all the same.
func OpenDurable(ctx context.Context, cfg DurableConfig) *Durable {
	d := &Durable{Memory: newMemory(cfg.Key), cfg: cfg, wake: make(chan struct{}, 1)}
	for i := range d.shards {
		d.shards[i].spent = make(map[uint64]Spent)
	}
	if err := d.exchange(ctx, nil); err != nil {
		cfg.Log.WarnContext(ctx, "reading rate limits failed, retrying", slog.Any("err", err))
		d.poke()
	}
	return d
}

// Spend implements Store.
func (d *Durable) Spend(ctx context.Context, now time.Time, charges []Charge) ([]Verdict, error) {
	verdicts, err := d.Memory.Spend(ctx, now, charges)
	if err == nil && len(d.wake) == 0 && !slices.ContainsFunc(verdicts, refuses) {
		d.poke()
	}
	return verdicts, err
}

// poke has Run exchange soon.
func (d *Durable) poke() {
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// Run exchanges until ctx ends, and once more then.
func (d *Durable) Run(ctx context.Context) error {
	var failures repeatlog.Condition
	for ctx.Err() == nil {
		var learn <-chan time.Time
		if d.cfg.Shared {
			learn = time.After(learnEvery)
		}
		select {
		case <-ctx.Done():
		case <-learn:
		case <-d.wake:
			background.Sleep(ctx, exchangeAfter)
		}
		if ctx.Err() != nil {
			break
		}
		err := d.exchangeAll(ctx)
		if err == nil {
			failures.LogRecovery(ctx, time.Now(), d.cfg.Log, "storing rate limits recovered")
		} else {
			failures.Log(ctx, time.Now(), d.cfg.Log, slog.LevelWarn, "storing rate limits failed, they hold on this server only", err)
			d.poke()
			background.Sleep(ctx, learnEvery)
		}
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastExchange)
	defer cancel()
	if err := d.exchangeAll(last); err != nil {
		d.cfg.Log.WarnContext(last, "storing rate limits failed on shutdown", slog.Any("err", err))
	}
	return nil
}

// exchangeAll stores all charges, in transactions of exchangeRows buckets. Those of one that failed are
// stored with the next.
func (d *Durable) exchangeAll(ctx context.Context) error {
	select {
	case <-d.wake:
	default:
	}
	spent := d.takeSpent()
	for {
		now := spent[:min(len(spent), exchangeRows)]
		if err := d.exchange(ctx, now); err != nil {
			d.putSpent(spent)
			return err
		}
		if spent = spent[len(now):]; len(spent) == 0 {
			return nil
		}
	}
}

func (d *Durable) exchange(ctx context.Context, spent []Spent) error {
	began := time.Now()
	levels, err := d.cfg.Ledger.Add(ctx, spent)
	if err != nil {
		return err //nolint:wrapcheck // it names the operation
	}
	for _, l := range levels {
		now := d.monotonic(began)
		s := d.shard(l.Bucket)
		s.mu.Lock()
		if full := now + int64(l.Full) + int64(s.spent[l.Bucket].Add); full > s.full[l.Bucket] {
			s.put(l.Bucket, full, now)
		}
		s.mu.Unlock()
	}
	return nil
}

// takeSpent returns the charges that are not stored.
func (d *Durable) takeSpent() (all []Spent) {
	for i := range d.shards {
		s := &d.shards[i]
		s.mu.Lock()
		for _, spent := range s.spent {
			all = append(all, spent)
		}
		clear(s.spent)
		s.mu.Unlock()
	}
	return all
}

// putSpent returns charges that could not be stored.
func (d *Durable) putSpent(all []Spent) {
	for _, spent := range all {
		s := d.shard(spent.Bucket)
		s.mu.Lock()
		s.spend(spent)
		s.mu.Unlock()
	}
}

// spend counts a charge as not stored. The shard is locked.
func (s *shard) spend(spent Spent) {
	sum, known := s.spent[spent.Bucket]
	if !known && len(s.spent) >= shardBuckets {
		return // a flood of buckets: the limit of this process holds
	}
	spent.Add = min(sum.Add+spent.Add, spent.Size)
	s.spent[spent.Bucket] = spent
}
