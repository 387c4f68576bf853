package codegen_test

import (
	"crypto/rand"
	"errors"
	"io"
	mathrand "math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"curt/internal/codegen"
	"curt/internal/codegen/codegentest"
	"curt/internal/link"
)

func TestWords(t *testing.T) {
	codegentest.RunDrawn(t, codegen.NewWords(rand.Reader))
}

// TestWordsHaveTheirShape draws codes of each form: they are valid aliases of at most 31 characters
// without a word that stands twice in a list.
func TestWordsHaveTheirShape(t *testing.T) {
	g := codegen.NewWords(rand.Reader)
	forms := []*regexp.Regexp{
		regexp.MustCompile(`^[a-z]{2,11}-[a-z]{2,11}-[1-9][0-9]$`),
		regexp.MustCompile(`^[a-z]{2,11}-[a-z]{2,11}-[1-9][0-9]{3}$`),
		regexp.MustCompile(`^[a-z]{2,11}-[a-z]{2,11}-[a-z]{2,11}-[1-9][0-9]{3}$`),
		regexp.MustCompile(`^[a-z]{2,11}-[a-z]{2,11}-[a-z]{2,11}-[1-9][0-9]{3}$`),
	}
	for attempt := range 20 {
		for range 200 {
			code, err := g.Next(t.Context(), codegen.Need{Attempt: attempt})
			if err != nil || !link.ValidCode(code) || !forms[attempt/5].MatchString(string(code)) {
				t.Fatalf("attempt %d: %q, %v", attempt, code, err)
			}
		}
	}
	if g.Grown() != 15*200 {
		t.Errorf("%d codes grew, want %d", g.Grown(), 15*200)
	}
	for _, list := range codegen.WordLists() {
		words := strings.Fields(list)
		slices.Sort(words)
		if twice := len(words) - len(slices.Compact(words)); twice > 0 {
			t.Errorf("%d words stand twice in a list", twice)
		}
	}
}

// TestWordsAreEquallyLikely counts the first adjectives of 48,000 codes: chi-squared stays below its
// 99.99th percentile for 239 degrees of freedom (NIST Handbook, 1.3.6.7.4).
func TestWordsAreEquallyLikely(t *testing.T) {
	g := codegen.NewWords(rand.Reader)
	count := map[string]int{}
	const n = 48_000
	for range n {
		code, err := g.Next(t.Context(), codegen.Need{})
		if err != nil {
			t.Fatal(err)
		}
		first, _, _ := strings.Cut(string(code), "-")
		count[first]++
	}
	words := len(strings.Fields(codegen.WordLists()[0]))
	expected := float64(n) / float64(words)
	sum := float64(words-len(count)) * expected
	for _, seen := range count {
		sum += (float64(seen) - expected) * (float64(seen) - expected) / expected
	}
	if sum > 329.3 {
		t.Errorf("chi-squared = %.1f over %d words", sum, words)
	}
}

func TestWordsWithoutRandomness(t *testing.T) {
	g := codegen.NewWords(iotest.ErrReader(io.ErrUnexpectedEOF))
	if _, err := g.Next(t.Context(), codegen.Need{}); !errors.Is(err, link.ErrUnavailable) || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("%v, want ErrUnavailable and the cause", err)
	}
}

// TestWordsGrowPastACrowdedSpace gives 1,000 links codes from a source of few numbers.
func TestWordsGrowPastACrowdedSpace(t *testing.T) {
	g := codegen.NewWords(few{mathrand.New(mathrand.NewPCG(1, 2))})
	taken := map[link.Code]bool{}
	for n := range 400 {
		attempt, done := 0, false
		for ; attempt < 20 && !done; attempt++ {
			code, err := g.Next(t.Context(), codegen.Need{Attempt: attempt})
			if err != nil {
				t.Fatal(err)
			}
			done = !taken[code]
			taken[code] = true
		}
		if !done {
			t.Fatalf("link %d of 400 found no code", n)
		}
	}
	if g.Grown() == 0 {
		t.Error("no code grew")
	}
}
