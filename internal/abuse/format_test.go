package abuse_test

import (
	"errors"
	"hash/maphash"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"curt/internal/abuse"
	"curt/internal/weburl"
)

func TestLines(t *testing.T) {
	for line, want := range map[string][]string{
		"evil.example":                           {"evil.example"},
		"  EVIL.example.\t\r\n":                  {"evil.example"},
		"\ufeffevil.example":                     {"evil.example"},
		"*.evil.example":                         {"evil.example"},
		".evil.example":                          {"evil.example"},
		"0.0.0.0 evil.example":                   {"evil.example"},
		"127.0.0.1\ta.example b.example # both":  {"a.example", "b.example"},
		"::1 localhost ip6-loopback six.example": {"six.example"},
		"fe80::1%lo0 localhost":                  nil,
		"0.0.0.0 0.0.0.0":                        {"0.0.0.0"},
		"evil.example # why":                     {"evil.example"},
		"evil.example ; why":                     {"evil.example"},
		"evil.example\t!why":                     {"evil.example"},
		"evil.example#why":                       {"evil.example"},
		"0.0.0.0 a.example b.example ; a.b":      {"a.example", "b.example"},
		"0.0.0.0 ; nobody":                       {"0.0.0.0"},
		" ; comment":                             nil,
		"münchen.example":                        {"xn--mnchen-3ya.example"},
		"evil。example":                           {"evil.example"},
		"192.0.2.7":                              {"192.0.2.7"},
		"0xc0.0.2.7":                             {"192.0.2.7"},
		"2001:DB8::7":                            {"2001:db8::7"},
		"[2001:db8::7]":                          {"2001:db8::7"},
		"":                                       nil, "# comment": nil, "! comment": nil, "; comment": nil, "   ": nil,
		"localhost": nil, "broadcasthost": nil, "1234": nil, "com": nil, "com.": nil,
	} {
		got, ok := abuse.HostsOf(line)
		if !ok || !slices.Equal(got, want) {
			t.Errorf("%q: %q %v, want %q", line, got, ok, want)
		}
	}
	for _, line := range []string{
		"https://evil.example/", "evil.example/path", "evil.example:80", "user@evil.example", "||evil.example^", "evil.example;why", "evil.example!", "@@||good.example^", "evil.example other.example",
		"a..example", strings.Repeat("a", 64) + ".example", "*evil.example", "**.example", "evil.*", "1.2.3.256", "<html>", "404: Not Found", "192.0.2.0/24",
		"\xff\xfe.example", `{"host":"evil.example"}`, "0.0.0.0 http://evil.example/",
	} {
		if got, ok := abuse.HostsOf(line); ok {
			t.Errorf("%q is taken for %q", line, got)
		}
	}
}

func TestWhatIsNoWholeListIsDamaged(t *testing.T) {
	for name, text := range map[string]string{
		"empty":       "",
		"half":        "a.example\nb.exam",
		"NUL":         "a.example\n\x00\x00\x00\n",
		"a page":      "<!DOCTYPE html>\n<title>404</title>\n<p>Not found\n",
		"a long line": strings.Repeat("a", 1<<17) + "\n",
		"UTF-16":      "a\x00.\x00e\x00x\x00\n\x00",
		"gzip":        "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\n",
		"adblock":     "[Adblock Plus]\n||a.example^\n||b.example^\n",
	} {
		if _, _, err := abuse.Parse(strings.NewReader(text), func(string) error { return nil }); !errors.Is(err, abuse.ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, text := range map[string]string{"comments": "# none yet\n", "a few strange lines": "a.example\nb.example\nnonsense!\n"} {
		if _, _, err := abuse.Parse(strings.NewReader(text), func(string) error { return nil }); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	broken := errors.New("broken")
	if _, _, err := abuse.Parse(io.MultiReader(strings.NewReader("a.example\n"), failing{broken}), func(string) error { return nil }); !errors.Is(err, broken) {
		t.Errorf("a read that fails: %v", err)
	}
}

func TestLinesThatAreNoHostsAreCounted(t *testing.T) {
	const text = "a.example ; mail\n# note\n||b.example^\nhttps://c.example/p\nd.example\ne.example:443\nf.example\n"
	var kept []string
	lines, first, err := abuse.Parse(strings.NewReader(text), func(host string) error { kept = append(kept, host); return nil })
	if err != nil || lines != 3 || first != 3 || !slices.Equal(kept, []string{"a.example", "d.example", "f.example"}) {
		t.Errorf("%d lines from %d on, kept %q: %v", lines, first, kept, err)
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// Five million hosts in 100 MB, while the next version is made beside the old one,
// leave 10 bytes for each.
func TestAHostTakesEightBytes(t *testing.T) {
	hosts := 100_000
	if os.Getenv("CURT_TEST_LONG") != "" {
		hosts = 5_000_000
	}
	path := filepath.Join(t.TempDir(), "long.txt")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	var text []byte
	for i := range hosts {
		text = append(strconv.AppendInt(append(text, "host-"...), int64(i), 36), ".example\n"...)
		if len(text) > 1<<20 || i == hosts-1 {
			if _, err := f.Write(text); err != nil {
				t.Fatal(err)
			}
			text = text[:0]
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	seed := maphash.MakeSeed()
	digest := func(host string) uint64 { return maphash.String(seed, host) }
	kept, places, err := abuse.Read(path, digest, abuse.MaxHosts)
	if err != nil || kept != hosts || places > hosts*5/4 {
		t.Errorf("kept %d of %d hosts in %d places: %v", kept, hosts, places, err)
	}
	if _, _, err := abuse.Read(path, digest, hosts-1); !errors.Is(err, abuse.ErrTooMany) {
		t.Errorf("one more than there is room for: %v", err)
	}
}

// Whatever a file holds, a host that is kept is the one that URLs are asked about.
func FuzzHosts(f *testing.F) {
	for _, line := range []string{"0.0.0.0 evil.example", "*.münchen.example", "::1 a.b", "1.2.3.4", "xn--a.b # c", "a。b"} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		hosts, _ := abuse.HostsOf(line)
		for _, host := range hosts {
			raw := host
			if strings.Contains(host, ":") {
				raw = "[" + host + "]"
			}
			u, err := weburl.Parse("http://" + raw + "/")
			if err != nil {
				t.Fatalf("%q keeps %q: %v", line, host, err)
			}
			if names := slices.Collect(abuse.Names(u)); names[0] != host {
				t.Fatalf("%q keeps %q, and a link to it is asked about as %q", line, host, names)
			}
		}
	})
}
