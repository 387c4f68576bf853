package codegentest

import (
	"fmt"
	"sync"
	"testing"

	"curt/internal/codegen"
	"curt/internal/link"
)

// NewLikely returns a generator with codes of the length whose promise is Likely.
type NewLikely func(length int) codegen.Generator

// attempts is how many codes the write path tries for one link.
const attempts = 20

// RunLikely proves a strategy whose codes may be taken.
func RunLikely(t *testing.T, fresh NewLikely) {
	RunDrawn(t, fresh(codegen.MinLength))
	t.Run("codes have their shape", func(t *testing.T) { likelyShapes(t, fresh) })
	t.Run("a crowded space makes codes longer", func(t *testing.T) { crowded(t, fresh) })
	t.Run("codes never grow past the largest length", func(t *testing.T) { largestLength(t, fresh(codegen.MaxLength)) })
}

// RunDrawn proves what holds for a Likely strategy whose codes have no set length.
func RunDrawn(t *testing.T, g codegen.Generator) {
	t.Run("it promises no more than it can", func(t *testing.T) { promisesLittle(t, g) })
	t.Run("each attempt has another code", func(t *testing.T) { anotherCode(t, g) })
	t.Run("no code is handed out twice", func(t *testing.T) { oneOwner(t, g) })
}

func need(n, attempt int) codegen.Need {
	return codegen.Need{Workspace: "acme", Destination: fmt.Sprintf("https://example.com/%d", n), Attempt: attempt}
}

func mustNextFor(t *testing.T, g codegen.Generator, n codegen.Need) link.Code {
	t.Helper()
	code, err := g.Next(t.Context(), n)
	if err != nil {
		t.Fatalf("Next(%+v): %v", n, err)
	}
	return code
}

func promisesLittle(t *testing.T, g codegen.Generator) {
	if g.Guarantee() != codegen.Likely || g.Kind() != link.Chosen {
		t.Errorf("promise %d, kind %d; want Likely and chosen codes", g.Guarantee(), g.Kind())
	}
	for _, code := range []link.Code{mustNext(t, g), "alias", "not-base62!", ""} {
		g.Burned(code) // nothing was promised, nothing breaks
	}
	mustNext(t, g)
}

func likelyShapes(t *testing.T, fresh NewLikely) {
	for length := codegen.MinLength; length <= codegen.MaxLength; length++ {
		g := fresh(length)
		for n := range 50 {
			if code := mustNextFor(t, g, need(n, 0)); len(code) != length || !link.ValidCode(code) {
				t.Errorf("code %q does not have %d valid characters", code, length)
			}
		}
	}
}

func anotherCode(t *testing.T, g codegen.Generator) {
	seen := map[link.Code]int{}
	for attempt := range attempts {
		code := mustNextFor(t, g, need(1, attempt))
		if first, twice := seen[code]; twice {
			t.Errorf("attempts %d and %d both have %q", first, attempt, code)
		}
		seen[code] = attempt
	}
}

// owners is a store of codes with a conditional insert.
type owners struct {
	mu    sync.Mutex
	taken map[link.Code]int // guarded by mu
}

// create is what the write path does for link n; ok is false when it ran out of
// attempts.
func (o *owners) create(t *testing.T, g codegen.Generator, n codegen.Need, id int) (code link.Code, ok bool) {
	for n.Attempt = 0; n.Attempt < attempts; n.Attempt++ {
		code, err := g.Next(t.Context(), n)
		if err != nil {
			t.Errorf("Next: %v", err)
			return "", false
		}
		o.mu.Lock()
		_, taken := o.taken[code]
		if !taken {
			o.taken[code] = id
		}
		o.mu.Unlock()
		if !taken {
			return code, true
		}
	}
	return "", false
}

// oneOwner makes 1,000 links at once, half of them to one destination.
func oneOwner(t *testing.T, g codegen.Generator) {
	const links = 1000
	o := owners{taken: map[link.Code]int{}}
	var got [links]link.Code
	var wg sync.WaitGroup
	for i := range links {
		wg.Go(func() {
			n := need(i, 0)
			if i%2 == 0 {
				n = need(0, 0)
			}
			code, ok := o.create(t, g, n, i)
			if !ok {
				t.Errorf("link %d has no code after %d attempts", i, attempts)
			}
			got[i] = code
		})
	}
	wg.Wait()
	for i, code := range got {
		if o.taken[code] != i {
			t.Errorf("links %d and %d both have %q", i, o.taken[code], code)
		}
	}
	if len(o.taken) != links {
		t.Errorf("%d codes for %d links", len(o.taken), links)
	}
}

// crowded takes as many codes for one link as the write path does when all of them
// are taken.
func crowded(t *testing.T, fresh NewLikely) {
	for length := codegen.MinLength; length < codegen.MaxLength; length++ {
		g := fresh(length)
		longest := 0
		for attempt := range attempts {
			code := mustNextFor(t, g, need(7, attempt))
			if len(code) < longest {
				t.Errorf("length %d, attempt %d: %q is shorter than the codes before", length, attempt, code)
			}
			longest = len(code)
		}
		if longest <= length {
			t.Errorf("after %d taken codes of length %d the next has still %d", attempts, length, longest)
		}
	}
}

func largestLength(t *testing.T, g codegen.Generator) {
	for attempt := range attempts {
		if code := mustNextFor(t, g, need(7, attempt)); len(code) != codegen.MaxLength {
			t.Errorf("attempt %d: %q is longer than any code may be", attempt, code)
		}
	}
}
