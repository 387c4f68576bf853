package codegen

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"curt/internal/background"
	"curt/internal/link"
	"curt/internal/repeatlog"
)

// placeShift leaves 60 bits of a place for the id, which hold 62^10, and puts each length of
// codes into a range of places of its own.
const placeShift = 60

// Position returns where in a store a code lies, so that codes that are created one after the other
// are stored one after the other: by length and by id. ok is false of a code that the permutation
// cannot issue.
func (p *Permutation) Position(code link.Code) (place int64, ok bool) {
	id, ok := p.ID(code)
	return FirstPosition(len(code)) | int64(id), ok
}

// FirstPosition returns the place of the first id of a length.
func FirstPosition(length int) int64 { return int64(length-MinLength) << placeShift }

// IDAt returns the id and the length whose place this is; ok is false where none has it.
func IDAt(place int64) (id uint64, length int, ok bool) {
	length = int(place>>placeShift) + MinLength
	return uint64(place) & (1<<placeShift - 1), length, place >= 0 && length <= MaxLength
}

// Strategy tells which codes were certainly never issued by it, so that somebody who tries
// codes at random costs no query.
type Strategy interface {
	// Perhaps reports whether the strategy may have issued the code by now, in any process. It
	// asks nobody, and stays true once it is.
	Perhaps(code link.Code) bool

	// Refresh reads how far all processes together have got. Perhaps is right for a minute after
	// it, whatever they issue meanwhile.
	Refresh(ctx context.Context) error
}

// margin is how far above the mark an id must lie to count as not leased: far more than all
// processes lease between two readings, and than a restore skips (10 million). To lease it
// within a minute would take 1.6 million codes a second.
const margin = 100_000_000

// Counts is the Strategy of link.Counted codes: those beyond all leases were never issued. It
// is safe for many goroutines.
type Counts struct {
	ids   IDs
	mark  Mark
	marks [MaxLength + 1]atomic.Uint64 // by length of code
}

// IDs finds the id that a code was made from; Permutation is one.
type IDs interface {
	ID(code link.Code) (id uint64, ok bool)
}

// Mark returns the lowest id that was never leased for codes of a length.
type Mark func(ctx context.Context, length int) (uint64, error)

// NewCounts returns a Strategy that has read no mark yet.
func NewCounts(ids IDs, mark Mark) *Counts { return &Counts{ids: ids, mark: mark} }

// Perhaps implements Strategy.
func (c *Counts) Perhaps(code link.Code) bool {
	id, ok := c.ids.ID(code)
	return ok && id < c.marks[len(code)].Load()+margin
}

// Refresh implements Strategy.
func (c *Counts) Refresh(ctx context.Context) error {
	for length := MinLength; length <= MaxLength; length++ {
		mark, err := c.mark(ctx, length)
		if err != nil {
			return fmt.Errorf("read the mark of length %d: %w", length, err)
		}
		// Marks that went down (a restore under our feet) would rule out what exists.
		if mark > c.marks[length].Load() {
			c.marks[length].Store(mark)
		}
	}
	return nil
}

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
	high, ok := decode62(code[:MaxLength])
	low := strings.IndexByte(alphabet, code[MaxLength])
	size := uint64(1) << (millisecondBits + machineBits + sequenceBits)
	if !ok || low < 0 || high > size/62 { // 62^11 exceeds 64 bits
		return 0, false
	}
	id := high*62 + uint64(low)
	if id >= size {
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
