package keypool

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"strconv"
	"strings"
	"time"

	"curt/internal/codegen"
	"curt/internal/link"
)

// BatchSize is how many keys are moved at once: two writes of 10 KB for 1,000 creates.
const BatchSize = 1000

// Store keeps pools of keys by name: unused keys, and which server uses others. Both are kept in batches, because a
// row for each key would cost four writes a create. It is safe for many goroutines and processes.
//
// No key is ever in two batches, and no batch is ever taken twice: whoever takes it, in any process, before or after any
// crash. Keys may be lost. Errors that are not named leave open whether a write happened.
type Store interface {
	// Put adds a batch of 1 to BatchSize keys to the unused ones of a pool. It is not for keys that another call had,
	// whatever became of that.
	Put(ctx context.Context, pool string, keys []link.Code) error

	// Take moves the batch of a pool that was put first from the unused to the used ones, in one step. The holder has
	// it from then on. ErrEmpty when there is none.
	Take(ctx context.Context, pool, holder string) (Batch, error)

	// Release ends the use of a batch. Its keys are used, but for rest, which is put back as a batch of its own in
	// the same step, and for leaked ones that are neither. link.ErrNotFound, and nothing is put back, when the
	// batch is not held: a call that is repeated, or its keys were counted as leaked.
	Release(ctx context.Context, b Batch, rest []link.Code, leaked int) error

	// Abandon counts all keys of the batches that a holder holds as leaked, for one that has lost its memory, and
	// returns how many.
	Abandon(ctx context.Context, holder string) (leaked uint64, err error)

	// Renew says that a holder is alive, and counts all keys of the batches of others as leaked who have not taken or
	// renewed for so long. It returns how many. Only the clock of the store counts.
	Renew(ctx context.Context, holder string, silence time.Duration) (leaked uint64, err error)

	// Level counts the keys of a pool.
	Level(ctx context.Context, pool string) (Level, error)
}

// Batch is one that was taken.
type Batch struct {
	ID     uint64
	Holder string
	Keys   []link.Code
}

// Level counts keys of a pool.
type Level struct {
	Unused uint64 // the depth of the pool
	Held   uint64 // in batches that servers hold, of which some may be used
	Leaked uint64 // that no link will have; of a server that was killed, up to a batch more than that
	Taken  uint64 // within RateWindow, by the clock of the store
	Filled uint64 // of Taken, what only filled the memory of servers; drivers leave it 0
}

// RateWindow is the time for which Level counts how many keys were taken.
const RateWindow = time.Minute

// Runway returns how long the unused keys last, at the rate at which they were used within RateWindow. ok is false
// while none are used; without keys it is 0.
func (l Level) Runway() (d time.Duration, ok bool) {
	switch {
	case l.Unused == 0:
		return 0, true
	case l.Taken <= l.Filled:
		return 0, false
	}
	return time.Duration(float64(l.Unused) / float64(l.Taken-l.Filled) * float64(RateWindow)), true
}

// ErrEmpty says that a pool has no unused keys.
var ErrEmpty = errors.New("the pool of keys is empty")

// Encode returns the text by which a driver stores the keys of a batch, with a CRC-32C: a key with a flipped bit would
// be the code of another id.
func Encode(keys []link.Code) (string, error) {
	if len(keys) == 0 || len(keys) > BatchSize {
		return "", fmt.Errorf("a batch of %d keys: %w", len(keys), link.ErrInvalid)
	}
	var b strings.Builder
	b.Grow(len(keys)*(codegen.SnowflakeLength+1) + 8)
	for _, k := range keys {
		b.WriteString(string(k))
		b.WriteByte(' ')
	}
	return b.String() + sum(b.String()), nil
}

// Decode returns the keys of a text.
func Decode(text string) ([]link.Code, error) {
	end := strings.LastIndexByte(text, ' ') + 1
	if end == 0 || sum(text[:end]) != text[end:] {
		return nil, link.Unavailable(errors.New("a batch of keys is damaged"))
	}
	words := strings.Fields(text[:end])
	keys := make([]link.Code, len(words))
	for i, w := range words {
		keys[i] = link.Code(w)
	}
	return keys, nil
}

func sum(text string) string {
	return strconv.FormatUint(uint64(crc32.Checksum([]byte(text), crc32.MakeTable(crc32.Castagnoli))), 16)
}
