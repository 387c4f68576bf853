package codegen_test

import (
	"context"
	"crypto/rand"
	"fmt"
	mathrand "math/rand/v2"
	"testing"

	"curt/internal/codegen"
	"curt/internal/link"
)

// elsewhere is a codegen.Issued that has to ask others.
type elsewhere struct {
	taken func(link.Code) bool
	asked int // round trips
}

func (*elsewhere) Contains(link.Code) bool { return false }

func (e *elsewhere) Query(_ context.Context, codes ...link.Code) []bool {
	e.asked++
	held := make([]bool, len(codes))
	for i, code := range codes {
		held[i] = e.taken(code)
	}
	return held
}

// created is what the write path does: it tries codes until one is free.
func created(t *testing.T, g codegen.Generator, n codegen.Need, taken func(link.Code) bool) (code link.Code, inserts int) {
	t.Helper()
	for n.Attempt = range 20 {
		code = nextFor(t, g, n)
		if inserts++; !taken(code) {
			return code, inserts
		}
	}
	t.Fatal("20 codes in a row were taken")
	return "", 0
}

// A new destination costs one question, one that comes again a second for all other salts; and
// what was asked a moment ago is not asked again.
func TestHashAsksOthersOnceOrTwice(t *testing.T) {
	issued := map[link.Code]bool{}
	others := &elsewhere{taken: func(code link.Code) bool { return issued[code] }}
	g := codegen.NewHash(codegen.HashConfig{Key: [16]byte(testKey[:]), Length: 7, Issued: others, Random: rand.Reader})
	n := codegen.Need{Destination: "https://example.com/"}
	if !g.Unseen(t.Context(), n) {
		t.Error("a new destination was seen")
	}
	n.Unseen = true
	for again := range 10 {
		others.asked = 0
		code, inserts := created(t, g, n, others.taken)
		n.Unseen = false
		if want := min(2*again, 2); inserts != 1 || others.asked != want {
			t.Errorf("link %d to one destination: %d inserts and %d questions, want 1 and %d", again, inserts, others.asked, want)
		}
		issued[code] = true
	}
	if g.Unseen(t.Context(), n) {
		t.Error("a destination with links is unseen")
	}
	plain := newHash(7, nil)
	if code := nextFor(t, plain, codegen.Need{Destination: n.Destination}); !issued[code] {
		t.Errorf("no link has the destination's own code %s", code)
	}
}

// half is a space of which every second code is taken.
func half(code link.Code) bool { return code[len(code)-1]%2 == 0 }

// Without a filter a link in a space that is half full costs two inserts. One that knows saves all of
// the second ones, one that must be asked nearly all, and costs nothing where codes are free.
func TestTakenCodesArePassedOver(t *testing.T) {
	const links = 20_000
	none := func(link.Code) bool { return false }
	for name, of := range map[string]func(codegen.Issued) codegen.Generator{
		"random": func(i codegen.Issued) codegen.Generator {
			return codegen.NewRandom(mathrand.NewChaCha8(testKey), codegen.MaxLength).Avoid(i)
		},
		"words": func(i codegen.Issued) codegen.Generator {
			return codegen.NewWords(mathrand.NewChaCha8(testKey)).Avoid(i)
		},
	} {
		t.Run(name, func(t *testing.T) {
			per := func(issued codegen.Issued, taken func(link.Code) bool) float64 {
				g, all := of(issued), 0
				for i := range links {
					_, inserts := created(t, g, codegen.Need{Destination: fmt.Sprint(i)}, taken)
					all += inserts
				}
				return float64(all) / links
			}
			blind, knowing := per(here(nil), half), per(here(half), half)
			others := &elsewhere{taken: half}
			asking, asked := per(others, half), float64(others.asked)/links
			t.Logf("inserts a link in a space that is half full: %.3f, with a filter here %.3f, with one elsewhere %.3f for %.2f questions", blind, knowing, asking, asked)
			if blind < 1.9 || blind > 2.1 || knowing != 1 || asking > 1.01 || asked > 2.1 {
				t.Error("want 2, 1, at most 1.01 for at most 2.1 questions")
			}
			idle := &elsewhere{taken: none}
			if n := per(idle, none); n != 1 || idle.asked > 0 {
				t.Errorf("in an empty space: %.3f inserts, %d questions; want 1 and none", n, idle.asked)
			}
		})
	}
}

// A filter that says yes of everything, as one that is full would, stops nobody.
func TestAFilterThatHoldsEverythingStopsNobody(t *testing.T) {
	all := func(link.Code) bool { return true }
	for name, g := range map[string]codegen.Generator{
		"random": codegen.NewRandom(rand.Reader, 7).Avoid(here(all)),
		"words":  codegen.NewWords(rand.Reader).Avoid(here(all)),
		"hash":   newHash(7, all),
		"others": codegen.NewRandom(rand.Reader, 7).Avoid(&elsewhere{taken: all}),
	} {
		seen := map[link.Code]bool{}
		for attempt := range 20 {
			code := nextFor(t, g, codegen.Need{Attempt: attempt, Destination: "https://example.com/"})
			if seen[code] || !link.ValidCode(code) {
				t.Errorf("%s, attempt %d: %q", name, attempt, code)
			}
			seen[code] = true
		}
	}
}
