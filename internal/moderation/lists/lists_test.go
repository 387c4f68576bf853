package lists_test

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"curt/internal/abuse"
	"curt/internal/abuse/lookalike"
	"curt/internal/moderation"
	"curt/internal/moderation/lists"
	"curt/internal/moderation/moderationtest"
	"curt/internal/shorten"
	"curt/internal/weburl"
)

const (
	word    = moderation.KindRefusedWord
	alike   = moderation.KindLookAlike
	allowed = moderation.KindAllowedDestination
)

func noon() time.Time { return time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC) }

func open(tb testing.TB, s moderation.Lists) *lists.Keeper {
	tb.Helper()
	brands, err := lookalike.New("")
	if err != nil {
		tb.Fatal(err)
	}
	k, err := lists.Open(tb.Context(), lists.Config{Store: s, Brands: brands, Random: rand.Reader})
	if err != nil {
		tb.Fatal(err)
	}
	return k
}

func edit(tb testing.TB, k *lists.Keeper, action moderation.Action, kind moderation.Kind, values ...string) []moderation.Entry {
	tb.Helper()
	lines := make([]lists.Line, len(values))
	for i, v := range values {
		lines[i].Value = v
	}
	stored, err := k.Change(tb.Context(), noon(), "admin", action, kind, lines, "because")
	if err != nil {
		tb.Fatalf("%s %v: %v", action, values, err)
	}
	return stored
}

// allows reports whether a destination is allowed.
func allows(tb testing.TB, k *lists.Keeper, url string) bool {
	tb.Helper()
	u, err := weburl.Parse(url)
	if err != nil {
		tb.Fatal(err)
	}
	found, err := k.Inspect(tb.Context(), noon(), &abuse.Facts{URL: u})
	if err != nil {
		tb.Fatal(err)
	}
	return len(found) == 1 && found[0].Signal == abuse.Allowed
}

// TestCanonicalLines: what a moderator writes has one form, and errors say what would be right.
func TestCanonicalLines(t *testing.T) {
	builtin := []string{"google", "~fuck"}
	for _, c := range []struct {
		kind        moderation.Kind
		value, want string
	}{
		{word, " Casino ", "casino"},
		{word, "Bingo*", "bingo*"},
		{word, "~Münze", "~münze"},
		{word, "-~fuck", "-~fuck"},
		{word, "-~FUCK", "-~fuck"},
		{alike, "AcmeBank", "acmebank"},
		{alike, "~ACME", "~acme"},
		{alike, "-Google", "-google"},
		{alike, "!Gogle-Eyes", "!gogleeyes"},
		{allowed, "Good.EXAMPLE.", "good.example"},
		{allowed, "bücher.example", "xn--bcher-kva.example"},
		{allowed, "192.0.2.1", "192.0.2.1"},
		{allowed, "0300.0.2.1", "192.0.2.1"},
		{allowed, "[2001:DB8::1]", "2001:db8::1"},
	} {
		if got, err := lists.Parse(c.kind, c.value, builtin); err != nil || got != (moderation.Entity{Kind: c.kind, Name: c.want}) {
			t.Errorf("%s %q: %v, %v, want %q", c.kind, c.value, got, err, c.want)
		}
	}
	long := strings.Repeat("a", 256)
	for kind, values := range map[moderation.Kind][]string{
		word:                {"", " ", "a b", "a#b", "*", "~", "~*", "-casino", "é", "\x00", "a\nb", "\xff", "~\u202e", long, "~" + long, strings.Repeat("a", 65)},
		alike:               {"", "ab", "a-b", "acme corp", "-acme", "-", "!", "!-", "!a b", "~", "~ab", "münchen", "acme#", long, strings.Repeat("a", 33)},
		allowed:             {"", "com", "co.uk", "https://good.example/", "good.example/a", "good.example:80", "a b", "*.good.example", "good..example", "192.0.2.0/24", long},
		moderation.KindHost: {"evil.example"},
	} {
		for _, value := range values {
			got, err := lists.Parse(kind, value, builtin)
			if invalid := new(moderation.InvalidError); !errors.As(err, &invalid) || invalid.Reason == "" {
				t.Errorf("%s %.20q: %v, %v", kind, value, got, err)
			}
		}
	}
}

// TestWhatListsRefuse: aliases, codes and destinations, with what is built in, disabled and restored.
func TestWhatListsRefuse(t *testing.T) {
	k := open(t, moderationtest.NewMemory())
	check := func(what string, refused bool, aliases ...string) {
		t.Helper()
		for _, alias := range aliases {
			if k.RefusesAlias(alias) != refused {
				t.Errorf("%s: %s: %v", what, alias, !refused)
			}
		}
	}
	check("built in", true, "fuck", "FUCK", "fu-ck", "sh1t", "googel", "Paypa1", "pay-pa1")
	check("built in", false, "google", "summer-sale", "casino", "acmebank", "scunthorpe", "", strings.Repeat("a", 65))
	if !k.RefusesCode("FUck") || k.RefusesCode("googel") || !k.ReadsLikeService("adm1n") || k.ReadsLikeService("summer") {
		t.Error("codes, or names of the service")
	}
	edit(t, k, moderation.ActionList, word, "~casino", "bingo*", "lotto")
	edit(t, k, moderation.ActionList, alike, "acmebank", "~initech", "!Goog-el", "-paypal")
	check("listed", true, "cas1no", "ca-sino", "bingo", "Bingo2026", "LOTTO", "acmebank", "acm3bank", "acmebnak", "initech", "1nitech", "gooogle")
	check("listed", false, "lotto2", "initecj", "googel", "paypa1", "casinos")
	if !k.RefusesCode("biNGOxy") || k.RefusesCode("acmebank") {
		t.Error("codes")
	}
	edit(t, k, moderation.ActionList, word, "-~fuck")
	edit(t, k, moderation.ActionList, alike, "-admin")
	edit(t, k, moderation.ActionUnlist, word, "lotto")
	check("disabled", false, "fuck", "lotto")
	check("disabled", true, "fucker", "cas1no")
	if k.ReadsLikeService("adm1n") || !k.ReadsLikeService("l0gin") || !k.Disabled(word, "~fuck") || !k.Disabled(alike, "admin") || k.Disabled(alike, "login") {
		t.Error("what is disabled")
	}
	edit(t, k, moderation.ActionUnlist, word, "-~fuck")
	edit(t, k, moderation.ActionUnlist, alike, "-admin", "-paypal")
	check("restored", true, "fuck", "paypa1")
	if !k.ReadsLikeService("adm1n") {
		t.Error("adm1n is not restored")
	}

	edit(t, k, moderation.ActionList, allowed, "good.example", "192.0.2.1", "[2001:db8::1]")
	for url, want := range map[string]bool{
		"https://good.example/": true, "https://a.b.GOOD.example:8443/x?y": true, "http://192.0.2.1/": true, "http://0xc0000201/": true, "http://[2001:db8:0::1]/": true,
		"https://bad.example/": false, "https://good.example.evil.example/": false, "https://notgood.example/": false, "http://192.0.2.2/": false,
	} {
		if got := allows(t, k, url); got != want {
			t.Errorf("%s: %v", url, got)
		}
	}
	edit(t, k, moderation.ActionUnlist, allowed, "good.example")
	if allows(t, k, "https://good.example/") || !allows(t, k, "http://192.0.2.1/") {
		t.Error("a removed destination, or the one that stays")
	}
}

// TestAnAllowedDestinationBeatsFindings: the score and lists in files, whatever they say.
func TestAnAllowedDestinationBeatsFindings(t *testing.T) {
	k := open(t, moderationtest.NewMemory())
	edit(t, k, moderation.ActionList, allowed, "good.example")
	u, err := weburl.Parse("https://good.example/")
	if err != nil {
		t.Fatal(err)
	}
	found, err := k.Inspect(t.Context(), noon(), &abuse.Facts{URL: u})
	if err != nil {
		t.Fatal(err)
	}
	d := abuse.Decide(abuse.DefaultPolicy(), append(found, abuse.Finding{Signal: abuse.Listed}, abuse.Finding{Signal: abuse.LookAlike}, abuse.Finding{Signal: abuse.Shortener}))
	if d.Safety != 1 && d.Safety.String() != "clean" || d.Score != 0 || !strings.Contains(fmt.Sprint(d.Findings), "moderators: good.example") {
		t.Errorf("%+v", d)
	}
}

// TestLinesThatRefuseTooMuch: they are not added, and still removed from lists of earlier releases.
func TestLinesThatRefuseTooMuch(t *testing.T) {
	k := open(t, moderationtest.NewMemory())
	for kind, values := range map[moderation.Kind][]string{
		word: {"a*", "ab*", "ab", "~ab", "-*"}, allowed: {"-good.example", "a.-b.example", "a-.example"},
	} {
		for _, value := range values {
			for _, number := range []int{0, 7} {
				_, err := k.Change(t.Context(), noon(), "admin", moderation.ActionList, kind, []lists.Line{{number, value}}, "because")
				if invalid := new(moderation.InvalidError); !errors.As(err, &invalid) || number > 0 != strings.HasPrefix(invalid.Reason, "line 7: ") {
					t.Errorf("%s %q: %v", kind, value, err)
				}
			}
			if value != "-*" {
				edit(t, k, moderation.ActionUnlist, kind, value)
			}
		}
	}
	edit(t, k, moderation.ActionList, word, "abc*", "~abc")
	edit(t, k, moderation.ActionList, allowed, "go--od.example", "2001:db8::1")
}

// TestChangesAreIdempotent: a repeated change writes nothing, and one with an invalid line nothing at all.
func TestChangesAreIdempotent(t *testing.T) {
	s := moderationtest.NewMemory()
	k := open(t, s)
	if n := len(edit(t, k, moderation.ActionList, word, "Casino", "casino ", "CASINO")); n != 1 {
		t.Errorf("%d entries", n)
	}
	if n := len(edit(t, k, moderation.ActionList, word, "casino")) + len(edit(t, k, moderation.ActionUnlist, word, "other")); n != 0 {
		t.Errorf("%d entries of repeated changes", n)
	}
	lines := []lists.Line{{1, "good"}, {7, "not good"}}
	_, err := k.Change(t.Context(), noon(), "admin", moderation.ActionList, word, lines, "because")
	if err == nil || !strings.Contains(err.Error(), "line 7") || k.RefusesAlias("good") {
		t.Errorf("%v", err)
	}
	for _, reason := range []string{"", " ", "a\x00", strings.Repeat("a", 1025)} {
		if _, err := k.Change(t.Context(), noon(), "admin", moderation.ActionList, word, []lists.Line{{Value: "good"}}, reason); !errors.Is(err, moderation.ErrInvalid) {
			t.Errorf("reason %.9q: %v", reason, err)
		}
	}
	many := make([]lists.Line, 2500)
	for i := range many {
		many[i] = lists.Line{Number: i, Value: fmt.Sprintf("word%d", i)}
	}
	stored, err := k.Change(t.Context(), noon(), "admin", moderation.ActionList, word, many, "because")
	if err != nil || len(stored) != 2500 || !k.RefusesAlias("WORD2499") || k.Len(word) != 2501 {
		t.Errorf("%d, %v", len(stored), err)
	}
}

// TestAServerCatchesUp: whatever part of the journal a server has read twice, or never, it ends
// with the lists of the store; and one that starts anew has them at once.
func TestAServerCatchesUp(t *testing.T) {
	s := moderationtest.NewMemory()
	first := open(t, s)
	edit(t, first, moderation.ActionList, word, "casino", "lotto")
	second := open(t, s) // has read the lines, and will read the journal from its beginning
	edit(t, first, moderation.ActionUnlist, word, "casino")
	own := edit(t, second, moderation.ActionList, word, "bingo")
	edit(t, first, moderation.ActionList, word, "poker")
	edit(t, first, moderation.ActionUnlist, word, "bingo") // not known to first: the store decides
	for range 2 {
		entries, err := s.Read(t.Context(), 0, 100)
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range []*lists.Keeper{first, second} {
			for i := range entries {
				k.Learn(&entries[i])
			}
			if err := k.Publish(); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i, k := range []*lists.Keeper{first, second, open(t, s)} {
		for alias, want := range map[string]bool{"casino": false, "lotto": true, "bingo": false, "poker": true} {
			if k.RefusesAlias(alias) != want {
				t.Errorf("server %d: %s: %v", i, alias, !want)
			}
		}
	}
	second.Learn(&own[0]) // late
	if err := second.Publish(); err != nil || second.RefusesAlias("bingo") {
		t.Errorf("an old entry overtook a newer one: %v", err)
	}
}

// TestCreatesReadOneSnapshot: changes and creates at once, for the race detector; a change is seen
// as a whole.
func TestCreatesReadOneSnapshot(t *testing.T) {
	k := open(t, moderationtest.NewMemory())
	done := make(chan struct{})
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					k.RefusesAlias("googel")
					allows(t, k, "https://good.example/")
				}
			}
		})
	}
	for i := range 50 {
		edit(t, k, []moderation.Action{moderation.ActionList, moderation.ActionUnlist}[i%2], []moderation.Kind{word, alike, allowed}[i/2%3], "good.example"[:4+8*(i/2%3/2)])
	}
	close(done)
	readers.Wait()
}

// TestTheCheckAllocatesNothing: it is on the path of every create.
func TestTheCheckAllocatesNothing(t *testing.T) {
	k := open(t, moderationtest.NewMemory())
	edit(t, k, moderation.ActionList, word, "~casino", "bingo*")
	edit(t, k, moderation.ActionList, alike, "acmebank", "!goggel")
	if n := testing.AllocsPerRun(100, func() { k.RefusesAlias("summer-sale"); k.RefusesAlias("acmebnak"); k.RefusesCode("aB3xY9z") }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestBuiltinLinesAreCanonical: each can be disabled by its name.
func TestBuiltinLinesAreCanonical(t *testing.T) {
	k := open(t, moderationtest.NewMemory())
	for _, kind := range []moderation.Kind{word, alike} {
		all := k.Builtin(kind)
		for _, line := range all {
			if got, err := lists.Parse(kind, line, nil); err != nil || got.Name != line {
				t.Errorf("%s %s: %v, %v", kind, line, got, err)
			}
		}
		slices.Sort(all)
		if len(slices.Compact(slices.Clone(all))) != len(all) || len(all) < 20 {
			t.Errorf("%s: %v", kind, all)
		}
	}
	for line, want := range map[string]bool{"google": true, "github": true, "apple": false, "admin": false} {
		if k.OneEdit(alike, line) != want || k.OneEdit(word, line) {
			t.Errorf("%s with one letter wrong: %v", line, !want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"casino", "~Münze", "bingo*", "-~fuck", "!goog-el", "good.example", "xn--a", "192.0.2.1", "[::1]", "\u202e"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		for _, kind := range moderation.ListKinds() {
			e, err := lists.Parse(kind, value, []string{"~fuck"})
			if err != nil {
				continue
			}
			if again, err := lists.Parse(kind, e.Name, []string{"~fuck"}); err != nil || again != e {
				t.Errorf("%s %q is %q, which is %q, %v", kind, value, e.Name, again.Name, err)
			}
			if len(e.Name) > lists.MaxLine || strings.ContainsAny(e.Name, "#\n\x00") {
				t.Errorf("%s %q is %q", kind, value, e.Name)
			}
		}
	})
}

// TestFalsePositives counts the words of Debian's wamerican, where it is installed, that what is
// built in refuses: refused words on purpose, look-alikes less than one of a thousand. Package
// lookalike has words of its own for this.
func TestFalsePositives(t *testing.T) {
	dictionary, err := os.ReadFile("/usr/share/dict/american-english")
	if errors.Is(err, fs.ErrNotExist) {
		dictionary = []byte("garden window fucker google admin status report payable telegraph googol twister")
	} else if err != nil {
		t.Fatal(err)
	}
	k := open(t, moderationtest.NewMemory())
	var aliases int
	var words, alikes, service []string
	for word := range strings.FieldsSeq(string(dictionary)) {
		switch {
		case shorten.CheckAlias(word) != nil: // no alias, or reserved
			continue
		case k.RefusesCode(word):
			words = append(words, word)
		case k.RefusesAlias(word):
			alikes = append(alikes, word)
		case k.ReadsLikeService(word):
			service = append(service, word)
		}
		aliases++
	}
	t.Logf("of %d aliases: refused words %v, look-alikes %v, names of the service %v", aliases, words, alikes, service)
	if len(words) == 0 || 1000*(len(alikes)+len(service)) >= aliases {
		t.Errorf("%d refused words, want some; %d look-alikes, want fewer than 0.1 %%", len(words), len(alikes)+len(service))
	}
}

// TestAnImportThatIsTooLargeStoresNothing: the lines that fit are not stored either.
func TestAnImportThatIsTooLargeStoresNothing(t *testing.T) {
	k := open(t, moderationtest.NewMemory())
	many := make([]lists.Line, moderation.MaxLookAlikes+1)
	for i := range many {
		many[i] = lists.Line{Number: i + 1, Value: fmt.Sprintf("brandname%d", i)}
	}
	add := func(lines []lists.Line) ([]moderation.Entry, error) {
		return k.Change(t.Context(), time.Now(), "admin", moderation.ActionList, moderation.KindLookAlike, lines, "test")
	}
	var invalid *moderation.InvalidError
	if stored, err := add(many); !errors.As(err, &invalid) || len(stored) != 0 || k.Len(moderation.KindLookAlike) != 0 {
		t.Errorf("%v; %d lines were stored, the list has %d", err, len(stored), k.Len(moderation.KindLookAlike))
	}
	if stored, err := add(many[:moderation.MaxLookAlikes]); err != nil || len(stored) != moderation.MaxLookAlikes {
		t.Errorf("%v; %d lines were stored", err, len(stored))
	}
	if _, err := add(many[:1]); err != nil {
		t.Errorf("a line that is there, on a full list: %v", err)
	}
}
