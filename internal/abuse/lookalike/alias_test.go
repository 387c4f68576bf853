package lookalike_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"

	"curt/internal/abuse/lookalike"
)

func signal(tb testing.TB, path string) *lookalike.Signal {
	tb.Helper()
	s, err := lookalike.New(path)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// TestAliasesThatImitate: what the built-in names refuse of aliases, and what they do not.
func TestAliasesThatImitate(t *testing.T) {
	s := signal(t, "")
	for alias, want := range map[string]string{
		"googel": "google", "g00gle": "google", "goog1e": "google", "gogle": "", "gooogle": "google", "goo9le": "google",
		"paypa1": "paypal", "paypai": "paypal", "papyal": "paypal", "paypall": "paypal", "paypa": "", "rnicrosoft": "microsoft",
		"micros0ft": "microsoft", "arnazon": "amazon", "app1e": "apple", "netfllx": "netflix", "faceb00k": "facebook", "1nstagram": "instagram",
		"google": "", "paypal": "", "apple": "", "ebay": "", "applet": "", "aple": "", "ebey": "", "goggle": "", "googol": "", "twister": "", "oogle": "",
		"target": "", "targets": "", "finance": "", "horizon": "", "a": "", "": "", "googleplus": "", "githubb": "github", "gtihub": "github", "outlok": "outlook", "easter": "", "stripes": "", "primee": "", "paypal2026": "", "sparkassen": "", "trevor": "", "goodie": "",
	} {
		got, found := s.Imitated([]byte(alias))
		if got != want || found != (want != "") {
			t.Errorf("%q: %q, %v, want %q", alias, got, found, want)
		}
	}
}

// TestProtectedNames: a name that moderators add is refused itself, and "~" excludes one edit.
func TestProtectedNames(t *testing.T) {
	names := lookalike.NewNames([]string{"acmebank", "~initech", "dot5"})
	for alias, want := range map[string]string{
		"acmebank": "acmebank", "acm3bank": "acmebank", "acmebnak": "acmebank", "acmebanks": "acmebank", "acmebansk1": "",
		"initech": "initech", "1n1tech": "initech", "initech5": "", "intiech": "", "dot5": "dot5", "d0t5": "dot5", "dots": "", "dotss": "",
	} {
		if got, _ := names.Imitated([]byte(alias)); got != want {
			t.Errorf("%q: %q, want %q", alias, got, want)
		}
	}
	for _, wrong := range []string{"", "~", "ab", "Acme", "a-b", "acme corp", "münchen", strings.Repeat("a", 33), "~~acme"} {
		if lookalike.ParseName(wrong) == nil {
			t.Errorf("%q is a name", wrong)
		}
	}
}

// TestAnAliasCostsNoAllocation: the check is on the path of a create.
func TestAnAliasCostsNoAllocation(t *testing.T) {
	s, long := signal(t, ""), bytes.Repeat([]byte("vv"), 40)
	for _, alias := range [][]byte{[]byte("summer-sale"), []byte("googel"), long[:64], long} {
		if n := testing.AllocsPerRun(100, func() { s.Imitated(alias) }); n != 0 {
			t.Errorf("%q: %v allocations", alias, n)
		}
	}
}

// TestFewWordsImitate counts the words of English that the built-in names refuse: less than one of
// a thousand. The dictionary is Debian's wamerican where it is installed; the everyday words of this
// package, which are chosen to be near brands, are always counted.
func TestFewWordsImitate(t *testing.T) {
	s := signal(t, "")
	lists := map[string][]string{"everyday words": strings.Fields(usualWords)}
	switch dictionary, err := os.ReadFile("/usr/share/dict/american-english"); {
	case err == nil:
		lists["wamerican"] = strings.Fields(string(dictionary))
	case !errors.Is(err, fs.ErrNotExist):
		t.Fatal(err)
	}
	for name, words := range lists {
		var aliases int
		var refused []string
		for _, word := range words {
			bare := strings.ToLower(strings.ReplaceAll(word, "-", ""))
			if len(bare) < 3 || strings.Trim(bare, "abcdefghijklmnopqrstuvwxyz") != "" {
				continue
			}
			aliases++
			if of, imitates := s.Imitated([]byte(bare)); imitates {
				refused = append(refused, word+" ("+of+")")
			}
		}
		t.Logf("%s: %d of %d refused (%.4f %%): %v", name, len(refused), aliases, 100*float64(len(refused))/float64(aliases), refused)
		if len(refused)*1000 >= aliases {
			t.Errorf("%s: %d of %d words are refused, want fewer than 0.1 %%", name, len(refused), aliases)
		}
	}
}

func FuzzImitated(f *testing.F) {
	s, names := signal(f, ""), lookalike.NewNames([]string{"acmebank", "~initech"})
	for _, seed := range []string{"googel", "rnrnrn", "vvvv", "clclcl", "\xff\xfe", "раураl", strings.Repeat("1", 64)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, alias string) {
		if name, found := s.Imitated([]byte(alias)); found && name == alias {
			t.Errorf("%q imitates itself", alias)
		}
		if name, found := names.Imitated([]byte(alias)); found != (name != "") {
			t.Errorf("%q: %q, %v", alias, name, found)
		}
	})
}
