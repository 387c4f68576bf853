package linkservice_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"curt/internal/link"
	"curt/internal/shorten"
	"curt/internal/shorten/linkservice"
	"curt/internal/shorten/reserve"
)

func TestSuggestions(t *testing.T) {
	b, store := over(t)
	b.mustCreate(t, writer("acme"), alias("sale"))
	b.mustCreate(t, writer("acme"), alias("sale-2"))
	b.hold(t, noon(), writer("acme"), "sale-3")
	seen := map[link.Code]int{}
	for range 4 {
		found, err := b.Check(t.Context(), noon(), writer("rival"), "", "sale")
		if err != nil || !errors.Is(found.Err, shorten.ErrTaken) || len(found.Suggestions) != reserve.Suggestions {
			t.Fatalf("%+v, %v", found, err)
		}
		for _, code := range found.Suggestions {
			seen[code]++
			if err := b.Free(t.Context(), noon(), writer("rival"), "", string(code)); err != nil || !strings.HasPrefix(string(code), "sale") {
				t.Errorf("suggested %s: %v", code, err)
			}
		}
	}
	if len(seen) <= reserve.Suggestions || seen["sale-2"]+seen["sale-3"] > 0 {
		t.Errorf("suggested %v", seen)
	}
	// One that this server has given away since is suggested no more.
	found, _ := b.Check(t.Context(), noon(), writer("rival"), "", "sale")
	given := found.Suggestions[0]
	b.hold(t, noon(), writer("acme"), string(given))
	for range 10 {
		if found, _ := b.Check(t.Context(), noon(), writer("rival"), "", "sale"); slices.Contains(found.Suggestions, given) {
			t.Fatalf("%s is suggested", given)
		}
	}
	reads := store.reads()
	long := strings.Repeat("a", 64)
	b.mustCreate(t, writer("acme"), alias(long))
	if found, err := b.Check(t.Context(), noon(), writer("rival"), "", long); err != nil || len(found.Suggestions) != reserve.Suggestions || len(found.Suggestions[0]) != 64 {
		t.Errorf("%+v, %v", found, err)
	}
	if n := store.reads() - reads; n != 1 {
		t.Errorf("%d reads for an alias and its suggestions", n)
	}
	if found, _ := b.Check(t.Context(), noon(), writer("rival"), "", "free"); found.Err != nil || len(found.Suggestions) != 0 {
		t.Errorf("%+v", found)
	}
}

// TestSuggestionsOfEveryPolicy: whatever is wrong with an alias, and however narrow the policy is, three others are suggested that the
// caller could have, where there are three, for one read in a space that is not nearly full.
func TestSuggestionsOfEveryPolicy(t *testing.T) {
	const lower, upper = "abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	for name, c := range map[string]struct {
		policy shorten.AliasPolicy
		alias  string
		taken  []string
		want   error
		reads  int64
	}{
		"reserved":                {alias: "admin", want: shorten.ErrReserved, reads: 1},
		"of the operator":         {alias: "press", want: shorten.ErrReserved, reads: 1},
		"refused":                 {alias: "rude-1", want: shorten.ErrRefused, reads: 1},
		"resembles one":           {alias: "PayPaI", want: shorten.ErrRefused, reads: 1},
		"over-long":               {alias: strings.Repeat("a", 2000), want: link.ErrInvalid, reads: 1},
		"longer than the policy":  {policy: shorten.AliasPolicy{Max: 8}, alias: "summer-sale", want: link.ErrInvalid, reads: 1},
		"too short":               {alias: "a", want: link.ErrInvalid, reads: 1},
		"shorter than the policy": {policy: shorten.AliasPolicy{Min: 12}, alias: "sale", want: link.ErrInvalid, reads: 1},
		"no characters":           {alias: "\x00/ \xff", want: link.ErrInvalid, reads: 1},
		"as long as may be": {
			policy: shorten.AliasPolicy{Min: 5, Max: 8, Alphabet: lower + "0123456789"}, alias: "abcdefgh", taken: []string{"abcdefgh"},
			want: shorten.ErrTaken, reads: 1,
		},
		"without digits":   {policy: shorten.AliasPolicy{Alphabet: lower}, alias: "sale", taken: []string{"sale"}, want: shorten.ErrTaken, reads: 1},
		"capitals":         {policy: shorten.AliasPolicy{Min: 4, Max: 4, Alphabet: upper}, alias: "SALE", taken: []string{"SALE"}, want: shorten.ErrTaken, reads: 1},
		"other characters": {policy: shorten.AliasPolicy{Alphabet: upper}, alias: "sale", want: link.ErrInvalid, reads: 1},
		"three are left": {
			policy: shorten.AliasPolicy{Min: 3, Max: 3, Alphabet: "ab"}, alias: "aaa", taken: []string{"aaa", "aab", "aba", "abb", "baa"},
			want: shorten.ErrTaken, reads: 1,
		},
		"a letter": {policy: shorten.AliasPolicy{Alphabet: "a"}, alias: "aaaa", taken: []string{"aaaa"}, want: shorten.ErrTaken, reads: 1},
	} {
		t.Run(name, func(t *testing.T) {
			b, store := over(t, wording(t, "press\nteam-*", "~paypal\nrude*"), func(cfg *linkservice.Config) { cfg.Aliases = c.policy })
			for _, alias := range c.taken {
				req := to("https://example.com/")
				req.Alias = shorten.Value(alias)
				b.mustCreate(t, writer("acme"), req)
			}
			before := store.reads()
			for range 3 {
				found, err := b.Check(t.Context(), noon(), writer("rival"), "", c.alias)
				if err != nil || !errors.Is(found.Err, c.want) || len(found.Suggestions) != reserve.Suggestions {
					t.Fatalf("%v, %q, %v", found.Err, found.Suggestions, err)
				}
				if n := store.reads() - before; n != c.reads {
					t.Errorf("%d reads", n)
				}
			}
			found, _ := b.Check(t.Context(), noon(), writer("rival"), "", c.alias)
			t.Log(found.Suggestions)
			for i, code := range found.Suggestions {
				if errors.Is(c.want, shorten.ErrRefused) && strings.HasPrefix(string(code), c.alias) {
					t.Errorf("%s is suggested instead of %s", code, c.alias)
				}
				if slices.Contains(found.Suggestions[:i], code) {
					t.Errorf("%s is suggested twice", code)
				}
				if err := b.Free(t.Context(), noon(), writer("rival"), "", string(code)); err != nil {
					t.Errorf("suggested %s: %v", code, err)
				}
			}
		})
	}
}

// TestSuggestionsOfAFullSpace: three are found among thousands that are taken, and where there are fewer those.
func TestSuggestionsOfAFullSpace(t *testing.T) {
	const alphabet = "abcdefghijkl" // 1,728 aliases
	b, store := over(t, func(cfg *linkservice.Config) { cfg.Aliases = shorten.AliasPolicy{Min: 3, Max: 3, Alphabet: alphabet} })
	n := 0
	for _, x := range alphabet {
		for _, y := range alphabet {
			for _, z := range alphabet {
				if n++; n%600 == 0 {
					continue // two are free
				}
				key := link.Key{Code: link.Code([]rune{x, y, z})}
				if _, _, err := b.store.Reserve(t.Context(), link.Claim{Key: key, Workspace: "acme", For: time.Hour, Most: 2000}); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	found, err := b.Check(t.Context(), time.Now(), writer("rival"), "", "aaa")
	if err != nil || len(found.Suggestions) != 2 || store.reads() > 5 {
		t.Errorf("%+v, %v, %d reads", found, err, store.reads())
	}
}
