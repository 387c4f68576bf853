// Package codefilter keeps in Redis the filter of issued codes that servers share: a Bloom filter that
// says before an insert whether its code is perhaps taken. Read Filter first.
//
//	curt:NAMESPACE:f:CAPACITY:N      the Nth bitmap; bf:N = a filter of RedisBloom
//
// It imports the connection of package redis.
package codefilter

import (
	"context"
	_ "embed"
	"encoding/binary"
	"fmt"
	"math/bits"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/dchest/siphash"
	"github.com/redis/rueidis"

	"curt/internal/backend/redis"
	"curt/internal/background"
	"curt/internal/link"
)

//go:embed has.lua
var hasSource string

//go:embed add.lua
var addSource string

//go:embed fill.lua
var fillSource string

// One of 1,000 codes that nobody added is found at the capacity: 14.4 bits a code, of which each sets ten
// (p = (1-e^(-10/14.4))^10 = 0.00099).
const (
	tenthsOfBits = 144
	bitsOfCode   = 10
	bloomError   = "0.001"
)

const (
	// mostBits of one bitmap, 32 MB. Redis takes 512 MB, but serves nobody while it clears as much memory for
	// a new one.
	mostBits = 1 << 28
	// headBits of a bitmap are no code's: fill.lua.
	headBits = 64
	// addedAtOnce are codes of one call: a thousand bits set keep Redis busy for less than a millisecond.
	addedAtOnce = 100
	// waiting are codes that wait to be added: those of some seconds.
	waiting  = 10_000
	addRetry = 100 * time.Millisecond
)

// Items of a filter of RedisBloom, and no codes: what bits 0 and 1 are to a bitmap.
const (
	itemComplete = "\x00complete"
	itemFilling  = "\x00filling"
)

// Filter is the filter of issued codes that processes share, a Bloom filter for a number of codes. It keeps
// bitmaps, or filters of RedisBloom where the server has them (BF.INSERT), with some part of the codes each.
//
// It is a hint: what Redis forgets, and what was added while it was unavailable, is not found, and costs an insert that
// fails. Nothing is read at a start. It is safe for many goroutines.
type Filter struct {
	// Set once in New.
	part     redis.Part
	k0, k1   uint64
	name     string // of the bitmaps, without their numbers
	parts    uint64
	bits     uint64 // of each, without its head
	codes    uint64 // of each
	has, add *rueidis.Lua
	fill     *rueidis.Lua
	queue    chan link.Code
	bloom    atomic.Bool // the server has RedisBloom; valid when known
	known    atomic.Bool
	counts   struct{ queried, found, unanswered, added, dropped atomic.Uint64 }
}

// New returns the filter for a number of codes. Those for different numbers have nothing in common.
func New(c *redis.Client, codes uint64) *Filter {
	codes = max(codes, 1)
	all := codes * tenthsOfBits / 10
	f := &Filter{
		parts: (all + mostBits - 1) / mostBits, queue: make(chan link.Code, waiting),
		has: rueidis.NewLuaScriptNoSha(hasSource), add: rueidis.NewLuaScriptNoSha(addSource), fill: rueidis.NewLuaScriptNoSha(fillSource),
	}
	f.bits, f.codes = (all+f.parts-1)/f.parts, (codes+f.parts-1)/f.parts
	f.part = redis.NewPart(c, f.try)
	f.name = f.part.Key(fmt.Sprintf("f:%d:", codes))
	key := f.part.Secret("filter of issued codes")
	f.k0, f.k1 = binary.LittleEndian.Uint64(key), binary.LittleEndian.Uint64(key[8:])
	return f
}

// try does once what a filter does, on a bitmap that is no filter's, and leaves nothing behind.
func (f *Filter) try(ctx context.Context, conn rueidis.Client) error {
	keys := []string{f.part.Key("f:try")}
	for _, call := range []struct {
		script *rueidis.Lua
		args   []string
	}{{f.add, []string{"7", "3"}}, {f.has, []string{"1", "3"}}, {f.fill, []string{"7", "end"}}} {
		if err := call.script.Exec(ctx, conn, keys, call.args).Error(); err != nil {
			return err
		}
	}
	return conn.Do(ctx, conn.B().Pexpire().Key(keys[0]).Milliseconds(1).Build()).Error()
}

// Ready reports whether it is known what the server has; until then no code is.
func (f *Filter) Ready() bool { return f.known.Load() }

// locate returns the bitmap of a code, and what its bits follow from.
func (f *Filter) locate(code link.Code) (part, first, step uint64) {
	hi, lo := siphash.Hash128(f.k0, f.k1, []byte(code))
	part, _ = bits.Mul64(hi, f.parts)
	return part, lo, bits.RotateLeft64(hi, 32) | 1
}

// appendBits appends the bits of a code, by double hashing (Kirsch and Mitzenmacher, 2006).
func (f *Filter) appendBits(args []string, first, step uint64) []string {
	for i := range uint64(bitsOfCode) {
		args = append(args, strconv.FormatUint(headBits+(first+i*step)%f.bits, 10))
	}
	return args
}

func (f *Filter) key(part uint64) string {
	if f.bloom.Load() {
		return f.name + "bf:" + strconv.FormatUint(part, 10)
	}
	return f.name + strconv.FormatUint(part, 10)
}

func (f *Filter) last() string { return strconv.FormatUint(headBits+f.bits-1, 10) }

// group is the codes of one bitmap.
type group struct {
	part  uint64
	args  []string // bits, or codes for RedisBloom
	codes []int    // by their place in the question
}

func (f *Filter) groups(codes []link.Code) (all []*group) {
	of := make(map[uint64]*group, 1)
	for i, code := range codes {
		part, first, step := f.locate(code)
		g := of[part]
		if g == nil {
			g = &group{part: part}
			of[part], all = g, append(all, g)
		}
		g.codes = append(g.codes, i)
		if f.bloom.Load() {
			g.args = append(g.args, string(code))
		} else {
			g.args = f.appendBits(g.args, first, step)
		}
	}
	return all
}

// Query reports of each code whether it was perhaps added, in one round trip to each node. Where Redis does not say, no code was.
func (f *Filter) Query(ctx context.Context, codes ...link.Code) []bool {
	held := make([]bool, len(codes))
	f.counts.queried.Add(uint64(len(codes)))
	if len(codes) == 0 || !f.known.Load() {
		f.counts.unanswered.Add(uint64(len(codes)))
		return held
	}
	groups := f.groups(codes)
	err := f.part.Call(ctx, true, func(ctx context.Context, conn rueidis.Client) error {
		for i, said := range f.ask(ctx, conn, groups) {
			found, err := said.AsIntSlice()
			if err == nil && len(found) != len(groups[i].codes) {
				err = fmt.Errorf("%d answers for %d codes", len(found), len(groups[i].codes))
			}
			if err != nil {
				return err
			}
			for j, at := range groups[i].codes {
				held[at] = found[j] == 1
			}
		}
		return nil
	})
	if err != nil {
		f.counts.unanswered.Add(uint64(len(codes)))
		return make([]bool, len(codes))
	}
	for _, found := range held {
		if found {
			f.counts.found.Add(1)
		}
	}
	return held
}

func (f *Filter) ask(ctx context.Context, conn rueidis.Client, groups []*group) []rueidis.RedisResult {
	if f.bloom.Load() {
		calls := make([]rueidis.Completed, len(groups))
		for i, g := range groups {
			calls[i] = conn.B().BfMexists().Key(f.key(g.part)).Item(g.args...).Build()
		}
		return conn.DoMulti(ctx, calls...)
	}
	calls := make([]rueidis.LuaExec, len(groups))
	for i, g := range groups {
		calls[i] = rueidis.LuaExec{Keys: []string{f.key(g.part)}, Args: append([]string{strconv.Itoa(bitsOfCode)}, g.args...)}
	}
	return f.has.ExecMulti(ctx, conn, calls...)
}

// Add has codes added soon, and does not wait.
func (f *Filter) Add(code link.Code) {
	select {
	case f.queue <- code:
	default:
		f.counts.dropped.Add(1)
	}
}

// Put adds codes.
func (f *Filter) Put(ctx context.Context, codes []link.Code) error {
	if !f.known.Load() {
		return fmt.Errorf("add codes: %w", redis.ErrAway)
	}
	for len(codes) > 0 {
		some := codes[:min(len(codes), addedAtOnce)]
		codes = codes[len(some):]
		groups := f.groups(some)
		err := f.part.Call(ctx, false, func(ctx context.Context, conn rueidis.Client) error {
			for _, said := range f.put(ctx, conn, groups) {
				if err := said.Error(); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("add codes: %w", err)
		}
		f.counts.added.Add(uint64(len(some)))
	}
	return nil
}

func (f *Filter) put(ctx context.Context, conn rueidis.Client, groups []*group) []rueidis.RedisResult {
	if f.bloom.Load() {
		calls := make([]rueidis.Completed, len(groups))
		for i, g := range groups {
			calls[i] = f.insert(conn, g.part, g.args...)
		}
		return conn.DoMulti(ctx, calls...)
	}
	calls := make([]rueidis.LuaExec, len(groups))
	for i, g := range groups {
		calls[i] = rueidis.LuaExec{Keys: []string{f.key(g.part)}, Args: append([]string{f.last()}, g.args...)}
	}
	return f.add.ExecMulti(ctx, conn, calls...)
}

// insert makes the filter, of the right size, where there is none.
func (f *Filter) insert(conn rueidis.Client, part uint64, items ...string) rueidis.Completed {
	words := append([]string{"CAPACITY", strconv.FormatUint(f.codes, 10), "ERROR", bloomError, "ITEMS"}, items...)
	return conn.B().Arbitrary("BF.INSERT").Keys(f.key(part)).Args(words...).Build()
}

// Run adds what Add was given, until ctx ends. What finds no room while Redis is unavailable is left out.
func (f *Filter) Run(ctx context.Context) error {
	for ctx.Err() == nil && !f.look(ctx) {
		background.Sleep(ctx, addRetry)
	}
	for {
		var codes []link.Code
		select {
		case <-ctx.Done():
			return nil
		case code := <-f.queue:
			codes = append(codes, code)
		}
		for more := true; more && len(codes) < addedAtOnce; {
			select {
			case code := <-f.queue:
				codes = append(codes, code)
			default:
				more = false
			}
		}
		for f.Put(ctx, codes) != nil {
			if !background.Sleep(ctx, addRetry) {
				return nil
			}
		}
	}
}

// look finds out whether the server has RedisBloom, and reports whether it did.
func (f *Filter) look(ctx context.Context) bool {
	err := f.part.Call(ctx, false, func(ctx context.Context, conn rueidis.Client) error {
		said := conn.Do(ctx, conn.B().BfExists().Key(f.name+"bf:0").Item(itemComplete).Build()).Error()
		text := fmt.Sprint(said)
		if strings.Contains(text, "unknown command") || strings.HasPrefix(text, "NOPERM") { // the second of one that has it, and nobody may use it
			return nil
		}
		f.bloom.Store(said == nil)
		return said
	})
	f.known.Store(err == nil)
	return err == nil
}

// Begin returns the bitmaps that lack codes from before they were made, because they are new or were lost.
func (f *Filter) Begin(ctx context.Context) (missing []uint64, err error) {
	for part := range f.parts {
		lacks, err := f.mark(ctx, part, "begin")
		if err != nil {
			return nil, err
		}
		if lacks {
			missing = append(missing, part)
		}
	}
	return missing, nil
}

// End says that all codes were added to bitmaps of Begin. Those that were lost meanwhile are not complete.
func (f *Filter) End(ctx context.Context, missing []uint64) error {
	for _, part := range missing {
		if _, err := f.mark(ctx, part, "end"); err != nil {
			return err
		}
	}
	return nil
}

// mark reports whether a bitmap lacks codes.
func (f *Filter) mark(ctx context.Context, part uint64, step string) (lacks bool, err error) {
	if !f.known.Load() {
		return true, fmt.Errorf("mark a filter of codes: %w", redis.ErrAway)
	}
	err = f.part.Call(ctx, false, func(ctx context.Context, conn rueidis.Client) error {
		if f.bloom.Load() {
			lacks, err = f.markBloom(ctx, conn, part, step)
			return err
		}
		n, err := f.fill.Exec(ctx, conn, []string{f.key(part)}, []string{f.last(), step}).AsInt64()
		lacks = n == 1
		return err
	})
	if err != nil {
		return true, fmt.Errorf("mark a filter of codes: %w", err)
	}
	return lacks, nil
}

func (f *Filter) markBloom(ctx context.Context, conn rueidis.Client, part uint64, step string) (bool, error) {
	held, err := conn.Do(ctx, conn.B().BfMexists().Key(f.key(part)).Item(itemComplete, itemFilling).Build()).AsIntSlice()
	switch {
	case err != nil || len(held) != 2 || held[0] == 1:
		return err != nil, err
	case step == "begin":
		return true, conn.Do(ctx, f.insert(conn, part, itemFilling)).Error()
	case held[1] == 1:
		return false, conn.Do(ctx, f.insert(conn, part, itemComplete)).Error()
	}
	return true, nil
}

// Stats are totals since the start, but for Bytes.
type Stats struct {
	Bytes      uint64 // of all bitmaps, by the capacity
	Queried    uint64 // codes
	Found      uint64 // of them
	Unanswered uint64 // of them: Redis was unavailable or slow
	Added      uint64
	Dropped    uint64 // not added
}

// Stats returns the totals. Each is exact; together they are not one moment.
func (f *Filter) Stats() Stats {
	return Stats{
		Bytes: f.parts * (headBits + f.bits) / 8, Queried: f.counts.queried.Load(), Found: f.counts.found.Load(),
		Unanswered: f.counts.unanswered.Load(), Added: f.counts.added.Load(), Dropped: f.counts.dropped.Load(),
	}
}
