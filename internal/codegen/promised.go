package codegen

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"curt/internal/background"
	"curt/internal/link"
	"curt/internal/repeatlog"
)

// Promised tells which codes were perhaps generated, in any process: between the generation of a code and the write of its link nobody may
// choose the code. It may say yes of a code that will be generated next, never no of one that was.
type Promised struct {
	cfg  PromisedConfig
	mark atomic.Uint64
}

// PromisedConfig says how codes are generated.
type PromisedConfig struct {
	Permutation *Permutation
	Length      int                                       // of counted codes
	Mark        func(ctx context.Context) (uint64, error) // the lowest id of that length that was never leased
	Snowflake   bool                                      // codes are those of Snowflake
	Plain       bool                                      // without the permutation
	Now         func() time.Time
	Log         *slog.Logger
}

const (
	// promisedEvery is how often the mark is read.
	promisedEvery = time.Second
	// promisedAhead is how far above the mark an id may have been leased since: more than all servers lease in a minute.
	promisedAhead = 1_000_000
	// promisedShare is the part of a small space that is held back instead.
	promisedShare = 1000
	// promisedSkew is how far the clock of another server may be ahead, in milliseconds.
	promisedSkew = 60_000
)

// NewPromised returns a Promised that knows no mark before Refresh.
func NewPromised(cfg PromisedConfig) *Promised { return &Promised{cfg: cfg} }

// Perhaps reports whether the code was perhaps generated.
func (p *Promised) Perhaps(code link.Code) bool {
	if p.cfg.Snowflake {
		at, ok := p.milliseconds(code)
		return ok && at <= p.cfg.Now().UnixMilli()-epoch+promisedSkew
	}
	if len(code) != p.cfg.Length {
		return false
	}
	id, ok := p.cfg.Permutation.ID(code)
	return ok && id < p.mark.Load()+min(promisedAhead, Space(p.cfg.Length)/promisedShare)
}

// milliseconds returns the time in a code of Snowflake.
func (p *Promised) milliseconds(code link.Code) (at int64, ok bool) {
	if len(code) != SnowflakeLength {
		return 0, false
	}
	id, ok := decode62(code)
	size := uint64(1) << (millisecondBits + machineBits + sequenceBits)
	if !ok || id >= size {
		return 0, false
	}
	if !p.cfg.Plain {
		id = p.cfg.Permutation.backward(newSpace(size, SnowflakeLength), id)
	}
	return int64(id >> (machineBits + sequenceBits)), true
}

// Refresh reads the mark.
func (p *Promised) Refresh(ctx context.Context) error {
	if p.cfg.Snowflake {
		return nil
	}
	mark, err := p.cfg.Mark(ctx)
	if err != nil {
		return fmt.Errorf("read the mark of length %d: %w", p.cfg.Length, err)
	}
	if mark > p.mark.Load() {
		p.mark.Store(mark)
	}
	return nil
}

// Run keeps the mark up to date until ctx ends, and returns nil then.
func (p *Promised) Run(ctx context.Context) error {
	var unread repeatlog.Condition
	for range background.Every(ctx, promisedEvery) {
		if err := p.Refresh(ctx); err == nil {
			unread.LogRecovery(ctx, time.Now(), p.cfg.Log, "reading leased ids recovered")
		} else if ctx.Err() == nil {
			unread.Log(ctx, time.Now(), p.cfg.Log, slog.LevelWarn, "reading leased ids failed, retrying", err)
		}
	}
	return nil
}
