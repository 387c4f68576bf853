package redis

import (
	"context"
	_ "embed"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"curt/internal/ratelimit"
)

//go:embed charge.lua
var chargeSource string

//go:embed tally.lua
var tallySource string

// tallyKept is how long counts are kept after the last: an hour, with slack for clocks.
const tallyKept = 65 * time.Minute

// Ledger is a ratelimit.Ledger and a ratelimit.Tally. It counts by the clock of Redis. Each bucket is
// charged by itself, so that those of one call may be on several nodes of a Cluster.
type Ledger struct {
	c    *Client
	kind string
}

var (
	_ ratelimit.Ledger = Ledger{}
	_ ratelimit.Tally  = Ledger{}
)

// Ledger returns the ledger of buckets of one kind.
func (c *Client) Ledger(kind string) Ledger { return Ledger{c, kind} }

// Add implements ratelimit.Ledger.
func (l Ledger) Add(ctx context.Context, spent []ratelimit.Spent) ([]ratelimit.Level, error) {
	calls := make([]rueidis.LuaExec, len(spent))
	for i, s := range spent {
		calls[i] = rueidis.LuaExec{Keys: []string{l.key(s.Bucket)}, Args: []string{
			micros(s.Add), micros(s.Size), strconv.FormatInt(bucketSlack.Milliseconds(), 10),
		}}
	}
	levels := make([]ratelimit.Level, 0, len(spent))
	err := l.each(ctx, l.c.charge, calls, func(i int, said rueidis.RedisResult) error {
		full, err := said.AsInt64()
		levels = append(levels, ratelimit.Level{Bucket: spent[i].Bucket, Full: time.Duration(full) * time.Microsecond})
		return err
	})
	return levels, wrap("add charges", err)
}

// Count implements ratelimit.Tally.
func (l Ledger) Count(ctx context.Context, add []ratelimit.Count, since int64) ([]ratelimit.Count, error) {
	var calls []rueidis.LuaExec
	var creators []uint64
	at := map[uint64]int{}
	for _, c := range add {
		i, known := at[c.Creator]
		if !known {
			i = len(calls)
			at[c.Creator], creators = i, append(creators, c.Creator)
			calls = append(calls, rueidis.LuaExec{Keys: []string{l.key(c.Creator)}, Args: []string{
				strconv.FormatInt(since, 10), strconv.FormatInt(tallyKept.Milliseconds(), 10),
			}})
		}
		calls[i].Args = append(calls[i].Args, strconv.FormatInt(c.Minute, 10), strconv.Itoa(c.Links))
	}
	var sums []ratelimit.Count
	err := l.each(ctx, l.c.tally, calls, func(i int, said rueidis.RedisResult) error {
		pairs, err := said.AsIntSlice()
		for n := 0; n+1 < len(pairs); n += 2 {
			sums = append(sums, ratelimit.Count{Creator: creators[i], Minute: pairs[n], Links: int(pairs[n+1])})
		}
		return err
	})
	return sums, wrap("count created links", err)
}

// each calls a script for each list of arguments, all in one round trip to each node.
func (l Ledger) each(ctx context.Context, script *rueidis.Lua, calls []rueidis.LuaExec, read func(i int, said rueidis.RedisResult) error) error {
	if len(calls) == 0 {
		return nil
	}
	return l.c.guarded(ctx, countLimits, l.c.limits.spend, func(ctx context.Context, conn rueidis.Client) error {
		for i, said := range script.ExecMulti(ctx, conn, calls...) {
			if err := read(i, said); err != nil {
				return err
			}
		}
		return nil
	})
}

func (l Ledger) key(bucket uint64) string {
	return fmt.Sprintf("%sr:%s:%016x", l.c.keys, l.kind, bucket)
}

// micros rounds up.
func micros(d time.Duration) string {
	return strconv.FormatInt(int64((d+time.Microsecond-1)/time.Microsecond), 10)
}
