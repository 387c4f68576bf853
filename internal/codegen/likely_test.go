package codegen_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math"
	mathrand "math/rand/v2"
	"testing"
	"testing/iotest"

	"curt/internal/codegen"
	"curt/internal/codegen/codegentest"
	"curt/internal/link"
	"curt/internal/testkit"
)

func newHash(length int, known here) *codegen.Hash {
	return codegen.NewHash(codegen.HashConfig{Key: [16]byte(testKey[:]), Length: length, Issued: known, Random: rand.Reader})
}

// here is a codegen.Issued that knows by itself; nil = nothing.
type here func(link.Code) bool

func (h here) Contains(code link.Code) bool { return h != nil && h(code) }

func (here) Query(_ context.Context, codes ...link.Code) []bool { return make([]bool, len(codes)) }

func TestRandom(t *testing.T) {
	codegentest.RunLikely(t, func(length int) codegen.Generator { return codegen.NewRandom(rand.Reader, length) })
}

func TestHash(t *testing.T) {
	codegentest.RunLikely(t, func(length int) codegen.Generator { return newHash(length, nil) })
}

// few is a source of so few numbers that codes collide all the time.
type few struct{ rand *mathrand.Rand }

func (f few) Read(p []byte) (int, error) {
	clear(p)
	binary.LittleEndian.PutUint64(p, f.rand.Uint64N(200)<<40)
	return len(p), nil
}

// TestRandomGrowsPastACrowdedSpace gives 1,000 links codes out of 200 of each length.
func TestRandomGrowsPastACrowdedSpace(t *testing.T) {
	g := codegen.NewRandom(few{mathrand.New(mathrand.NewPCG(1, 2))}, 4)
	taken := map[link.Code]bool{}
	lengths := map[int]int{}
	for n := range 500 {
		attempt := 0
		for ; attempt < 20; attempt++ {
			code, err := g.Next(t.Context(), codegen.Need{Attempt: attempt})
			if err != nil {
				t.Fatal(err)
			}
			if !taken[code] {
				taken[code] = true
				lengths[len(code)]++
				break
			}
		}
		if attempt == 20 {
			t.Fatalf("link %d has no code", n)
		}
	}
	if lengths[4] < 150 || lengths[5] < 50 || g.Grown() < uint64(lengths[5]) {
		t.Errorf("codes by length %v, grown %d", lengths, g.Grown())
	}
}

func TestRandomSaysWhenItsSourceFails(t *testing.T) {
	broken := errors.New("no entropy")
	for _, source := range []io.Reader{iotest.ErrReader(broken), bytes.NewReader(nil)} {
		if code, err := codegen.NewRandom(source, 7).Next(t.Context(), codegen.Need{}); !errors.Is(err, link.ErrUnavailable) {
			t.Errorf("got %q, %v; want ErrUnavailable", code, err)
		}
	}
}

func nextFor(t *testing.T, g codegen.Generator, n codegen.Need) link.Code {
	t.Helper()
	code, err := g.Next(t.Context(), n)
	if err != nil {
		t.Fatal(err)
	}
	return code
}

// The code of a destination is the same for good: this one must never change, or
// links made after an upgrade would have other codes than before it.
func TestHashIsTheSameForGood(t *testing.T) {
	n := codegen.Need{Domain: "go.example", Workspace: "acme", Destination: "https://example.com/"}
	if got, want := nextFor(t, newHash(7, nil), n), link.Code("KwoJBwD"); got != want {
		t.Errorf("code %s, want %s", got, want)
	}
}

func TestHashTellsNeedsApart(t *testing.T) {
	other := codegen.NewHash(codegen.HashConfig{Key: [16]byte{1}, Length: 7, Random: rand.Reader})
	g := newHash(7, nil)
	seen := map[link.Code]string{}
	for name, code := range map[string]link.Code{
		"plain":           nextFor(t, g, codegen.Need{Workspace: "acme", Destination: "https://example.com/"}),
		"other URL":       nextFor(t, g, codegen.Need{Workspace: "acme", Destination: "https://example.com/a"}),
		"other workspace": nextFor(t, g, codegen.Need{Workspace: "acm", Destination: "ehttps://example.com/"}),
		"other domain":    nextFor(t, g, codegen.Need{Domain: "acme", Destination: "https://example.com/"}),
		"second salt":     nextFor(t, g, codegen.Need{Workspace: "acme", Destination: "https://example.com/", Attempt: 1}),
		"other key":       nextFor(t, other, codegen.Need{Workspace: "acme", Destination: "https://example.com/"}),
	} {
		if twin := seen[code]; twin != "" {
			t.Errorf("%s and %s have the same code", name, twin)
		}
		seen[code] = name
	}
}

// What Known holds costs no attempt, a wrong no costs one, a wrong yes only the
// destination's own code.
func TestHashPassesOverWhatIsKnown(t *testing.T) {
	n := codegen.Need{Destination: "https://example.com/"}
	plain := newHash(7, nil)
	var salted []link.Code
	for n.Attempt = range 16 {
		salted = append(salted, nextFor(t, plain, n))
	}
	known := map[link.Code]bool{salted[0]: true, salted[1]: true, salted[3]: true}
	g := newHash(7, func(c link.Code) bool { return known[c] })
	for attempt, want := range []link.Code{salted[2], salted[4], salted[5]} {
		if got := nextFor(t, g, codegen.Need{Destination: n.Destination, Attempt: attempt}); got != want {
			t.Errorf("attempt %d: %s, want %s", attempt, got, want)
		}
	}
	for _, code := range salted {
		known[code] = true
	}
	first, second := nextFor(t, g, codegen.Need{Destination: n.Destination}), nextFor(t, g, codegen.Need{Destination: n.Destination})
	if first == second || known[first] || len(first) != 7 {
		t.Errorf("after all salts: %s and %s, want two random codes", first, second)
	}
}

// The codes of counted destinations and of the random source go through the tests
// of pattern that the permutation passes.
func TestLikelyCodesShareNoPattern(t *testing.T) {
	testkit.Unraced(t)
	seeded := codegen.NewRandom(mathrand.NewChaCha8(testKey), 7)
	hash := newHash(7, nil)
	for name, number := range map[string]func(id uint64) uint64{
		"random": func(uint64) uint64 { return numberOf(t, seeded, codegen.Need{}) },
		"hash": func(id uint64) uint64 {
			return numberOf(t, hash, codegen.Need{Workspace: "default", Destination: fmt.Sprintf("https://example.com/%d", id)})
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := inspect(number)
			t.Logf("%+v", f)
			if n := f.patterns(); n != 0 {
				t.Errorf("%d of 16 tests find a pattern: %+v", n, f)
			}
		})
	}
}

func numberOf(t *testing.T, g codegen.Generator, n codegen.Need) uint64 {
	code, err := g.Next(t.Context(), n)
	v, ok := codegen.Decode62(string(code))
	if err != nil || !ok {
		t.Fatalf("%q, %v", code, err)
	}
	return v
}

// TestUnevenCodesAreFound is the control: usual ways to make codes of digests and of
// random bytes that favour some codes fail the same tests.
func TestUnevenCodesAreFound(t *testing.T) {
	testkit.Unraced(t)
	size := codegen.Space(7)
	source := mathrand.NewChaCha8(testKey)
	digest := func(id uint64) uint64 {
		h := fnv.New64a()
		_, _ = fmt.Fprintf(h, "https://example.com/%d", id)
		return h.Sum64()
	}
	for name, number := range map[string]func(id uint64) uint64{
		"a byte modulo 62 for each digit": func(uint64) (v uint64) {
			for b, i := source.Uint64(), 0; i < 7; i, b = i+1, b>>8 {
				v = v*62 + b&0xff%62
			}
			return v
		},
		"43 bits modulo the space":  func(uint64) uint64 { return source.Uint64() >> 21 % size },
		"32 bits of the digest":     func(id uint64) uint64 { return digest(id) >> 32 },
		"a digest without a secret": func(id uint64) uint64 { return uint64(math.Abs(float64(int64(digest(id))))) % size },
	} {
		t.Run(name, func(t *testing.T) {
			f := inspect(number)
			t.Logf("%+v", f)
			if f.patterns() == 0 {
				t.Error("no test finds a pattern")
			}
		})
	}
}

func BenchmarkLikely(b *testing.B) {
	known := 0
	for name, g := range map[string]codegen.Generator{
		"random":                codegen.NewRandom(rand.Reader, 7),
		"hash":                  newHash(7, nil),
		"hash, all salts known": newHash(7, func(link.Code) bool { known++; return true }),
	} {
		b.Run(name, func(b *testing.B) {
			need := codegen.Need{Workspace: "default", Destination: "https://example.com/a/path/of/the/usual/length?with=a&query=too"}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := g.Next(b.Context(), need); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
