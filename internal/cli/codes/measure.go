package codes

import (
	"cmp"
	"context"
	"fmt"
	"hash/maphash"
	"math"
	"runtime"
	"slices"
	"strings"
	"time"

	"curt/internal/cache/issued"
	"curt/internal/codegen"
	"curt/internal/link"
)

// measured is what one strategy does in this process.
type measured struct {
	Strategy   string  `json:"strategy"`
	InUse      bool    `json:"in_use"`
	Example    string  `json:"example"`
	Exhausted  bool    `json:"exhausted"` // all codes are used: creates are refused
	Length     int     `json:"length"`    // of the longest code that a new link got
	Rate       float64 `json:"codes_per_second"`
	Lookups    float64 `json:"lookups_per_create"` // inserts, and look-ups before them
	Unfiltered float64 `json:"lookups_per_create_without_filter"`
	PerCode    float64 `json:"bytes_per_code"`
	Memory     float64 `json:"memory_bytes"` // of all codes that exist, in each server
	Guesses    float64 `json:"guesses_per_link"`
	NextGuess  float64 `json:"next_guessed"`      // the share of codes that follow from the two before
	Order      float64 `json:"order_correlation"` // of codes with the time of their creation, 0 to 1
}

// measure generates codes of a strategy.
func measure(ctx context.Context, s strategy, in installation) (m measured, err error) {
	m = measured{Strategy: s.name, InUse: s.name == in.inUse, Exhausted: s.ends(in)}
	m.Guesses = math.Max(1, s.space(in)/math.Max(1, float64(in.existing))) // each finds a link, at most
	codes, rate, err := generate(ctx, s.open(in, unknown{}), in.sample)
	if err != nil {
		return m, fmt.Errorf("%s: %w", s.name, err)
	}
	m.Rate, m.Example = rate, string(codes[0])
	m.NextGuess, m.Order = nextGuessed(codes), order(codes[:min(len(codes), 10_000)])
	if s.open(in, unknown{}).Kind() == link.Chosen { // others follow from a counter
		m.PerCode = bytesOf(codes)
	}
	m.Memory = m.PerCode*float64(in.existing) + float64(s.held)*bytesHeld(codes)
	if m.Exhausted { // what was generated are codes of links that exist
		m.Example = ""
		return m, nil
	}
	fill := math.Min(1, float64(in.existing)/s.space(in))
	filtered, err := create(ctx, s, in, fill, true)
	if err != nil {
		return m, fmt.Errorf("%s: %w", s.name, err)
	}
	blind, err := create(ctx, s, in, fill, false)
	if err != nil {
		return m, fmt.Errorf("%s: %w", s.name, err)
	}
	m.Lookups, m.Unfiltered = filtered.perCreate, blind.perCreate
	m.Example, m.Length = string(filtered.example), filtered.longest
	return m, nil
}

// measureFor is for how long codes are generated, at least.
const measureFor = 200 * time.Millisecond

// generate returns codes, and how many there were in a second.
func generate(ctx context.Context, g codegen.Generator, sample int) (codes []link.Code, rate float64, err error) {
	destinations := make([]string, 1024)
	for i := range destinations {
		destinations[i] = fmt.Sprintf("https://example.com/%d/a-path-of-the-usual-length?with=a&query=too", i)
	}
	codes = make([]link.Code, 0, sample)
	n, began := 0, time.Now()
	for ; n < sample || n%256 != 0 || time.Since(began) < measureFor; n++ {
		code, err := g.Next(ctx, codegen.Need{Workspace: "default", Destination: destinations[n%len(destinations)]})
		if err != nil {
			return nil, 0, err
		}
		if len(codes) < sample {
			codes = append(codes, code)
		}
	}
	return codes, float64(n) / time.Since(began).Seconds(), nil
}

// bytesOf returns the memory that the filter of a server takes for a code.
func bytesOf(codes []link.Code) float64 {
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	filter, before := issued.New(nil), heap()
	for _, code := range codes {
		filter.Created(code)
	}
	after := heap()
	runtime.KeepAlive(codes)
	return float64(after-min(before, after)) / float64(filter.Len())
}

// bytesHeld returns the memory that a code takes before it is used.
func bytesHeld(codes []link.Code) float64 {
	const header = 16 // of a string: its address and its length
	return float64(header + len(codes[0]))
}

// links are those of a store as full as that of the installation: of all codes that a strategy chooses from a share is
// taken, always the same ones, and so are those of the links created here.
type links struct {
	seed    maphash.Seed
	first   func(link.Code) bool // of the codes that a share of is taken
	below   uint64               // codes whose hash, of 63 bits, lies below it are taken
	created map[link.Code]bool
}

func newLinks(fill float64, first func(link.Code) bool) *links {
	return &links{seed: maphash.MakeSeed(), first: first, below: uint64(fill * (1 << 63)), created: map[link.Code]bool{}}
}

// Contains implements codegen.Issued: a filter that knows all links.
func (l *links) Contains(code link.Code) bool {
	return l.created[code] || l.first(code) && maphash.String(l.seed, string(code))>>1 < l.below
}

// Query implements codegen.Issued.
func (l *links) Query(_ context.Context, codes ...link.Code) []bool { return make([]bool, len(codes)) }

// unknown is a codegen.Issued that knows nothing.
type unknown struct{}

// Contains implements codegen.Issued.
func (unknown) Contains(link.Code) bool { return false }

// Query implements codegen.Issued.
func (unknown) Query(_ context.Context, codes ...link.Code) []bool { return make([]bool, len(codes)) }

// mostTries is what the write path tries for one link.
const mostTries = 20

// made is what creates cost, and the codes that they got.
type made struct {
	perCreate float64 // how often the link store was asked
	example   link.Code
	longest   int
}

// create creates links with destinations of their own, and counts how often the link store is asked for one: the inserts, of
// which all but the last fail, and the look-up of the destination where the strategy has one.
func create(ctx context.Context, s strategy, in installation, fill float64, filtered bool) (m made, err error) {
	store, asked := newLinks(fill, func(code link.Code) bool { return s.first(in, code) }), 0
	var known codegen.Issued = unknown{}
	if filtered {
		known = store
	}
	g := s.open(in, known)
	if g.Guarantee() == codegen.Unique {
		store.below = 0 // the links that exist had other ids
	}
	first, _ := g.(codegen.FirstChecker)
	creates := min(in.sample, 20_000)
	for i := range creates {
		need := codegen.Need{Workspace: "default", Destination: fmt.Sprintf("https://example.com/%d", i)}
		if first != nil {
			if need.Unseen = filtered && first.Unseen(ctx, need); !need.Unseen {
				asked++
			}
		}
		for ; need.Attempt < mostTries; need.Attempt++ {
			code, err := g.Next(ctx, need)
			if err != nil {
				return m, err
			}
			if asked++; !store.Contains(code) {
				store.created[code] = true
				m.example, m.longest = cmp.Or(m.example, code), max(m.longest, len(code))
				break
			}
		}
	}
	m.perCreate = float64(asked) / float64(creates)
	return m, nil
}

// nextGuessed returns the share of codes that somebody guesses who saw the two before and can count: the next one, or as far
// from the last as that is from the one before.
func nextGuessed(codes []link.Code) float64 {
	right := 0
	for i := 2; i < len(codes); i++ {
		a, b, c := number(codes[i-2]), number(codes[i-1]), number(codes[i])
		if c == b+1 || c == b+(b-a) {
			right++
		}
	}
	return float64(right) / float64(max(1, len(codes)-2))
}

// number reads a code as digits, in the order of their bytes.
func number(code link.Code) (n uint64) {
	const digits = "-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz"
	base62 := !strings.ContainsAny(string(code), "-_")
	for i := range len(code) {
		switch c := code[i]; {
		case !base62:
			n = n*64 + uint64(strings.IndexByte(digits, c))
		case c <= '9':
			n = n*62 + uint64(c-'0')
		case c <= 'Z':
			n = n*62 + uint64(c-'A') + 10
		default:
			n = n*62 + uint64(c-'a') + 36
		}
	}
	return n
}

// order returns the absolute rank correlation (Spearman) of codes with the order of their creation: 1 where they sort by time.
func order(codes []link.Code) float64 {
	at := make([]int, len(codes))
	for i := range at {
		at[i] = i
	}
	slices.SortFunc(at, func(a, b int) int { return cmp.Compare(codes[a], codes[b]) })
	sum, n := 0.0, float64(len(codes))
	for rank, i := range at {
		sum += float64(rank-i) * float64(rank-i)
	}
	return math.Abs(1 - 6*sum/(n*(n*n-1)))
}
