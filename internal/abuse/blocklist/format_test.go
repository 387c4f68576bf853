package blocklist_test

import (
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"curt/internal/abuse/blocklist"
	"curt/internal/abuse/listfile"
	"curt/internal/weburl"
)

// a SHA-256, as lists write them.
const sum = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

func TestLines(t *testing.T) {
	for line, want := range map[string]string{
		"evil.example":                           "host evil.example",
		"  EVIL.example.\t\r":                    "host evil.example",
		"\ufeffevil.example":                     "host evil.example",
		"*.evil.example":                         "host evil.example",
		".evil.example":                          "host evil.example",
		"0.0.0.0 evil.example":                   "host evil.example",
		"127.0.0.1\ta.example b.example # both":  "host a.example,host b.example",
		"::1 localhost ip6-loopback six.example": "host six.example",
		"fe80::1%lo0 localhost":                  "",
		"0.0.0.0 0.0.0.0":                        "host 0.0.0.0",
		"evil.example # why":                     "host evil.example",
		"evil.example ## why":                    "host evil.example",
		"evil.example ; why":                     "host evil.example",
		"evil.example\t!why":                     "host evil.example",
		"evil.example#why":                       "host evil.example",
		"0.0.0.0 a.example b.example ; a.b":      "host a.example,host b.example",
		"0.0.0.0 ; nobody":                       "host 0.0.0.0",
		" ; comment":                             "",
		"münchen.example":                        "host xn--mnchen-3ya.example",
		"evil。example":                           "host evil.example",
		"192.0.2.7":                              "host 192.0.2.7",
		"0xc0.0.2.7":                             "host 192.0.2.7",
		"2001:DB8::7":                            "host 2001:db8::7",
		"[2001:db8::7]":                          "host 2001:db8::7",
		"":                                       "", "# comment": "", "! comment": "", "; comment": "", "   ": "", "##.banner": "",
		"localhost": "", "broadcasthost": "", "1234": "", "com": "", "com.": "",

		"https://evil.example/":                      "url evil.example",
		"HTTP://EVIL.example./a/b":                   "url evil.example/a/b",
		"http://evil.example:80/a#f":                 "url evil.example/a",
		"https://evil.example:80/a/?x=1&y=2 # why":   "url evil.example/a?x=1&y=2",
		"http://evil.example:8080":                   "url evil.example:8080",
		"http://[2001:db8::7]:8080/":                 "url [2001:db8::7]:8080",
		"http://127.1/x ; why":                       "url 127.0.0.1/x",
		"https://evil.example//a/%2e%2E/%62%2563/./": "url evil.example/bc",

		sum:                  "hash " + sum,
		strings.ToUpper(sum): "hash " + sum,
		sum + " # why":       "hash " + sum,

		"||evil.example^":                     "host evil.example",
		"||*.evil.example^":                   "host evil.example",
		"||evil.example^$all":                 "host evil.example",
		"||evil.example^$important,doc":       "host evil.example",
		"||evil.example^|":                    "host evil.example",
		"||evil.example^*":                    "host evil.example",
		"||EVIL.example":                      "host evil.example",
		"||192.0.2.7^":                        "host 192.0.2.7",
		"||[2001:db8::7]^":                    "host 2001:db8::7",
		"||münchen.example^$document":         "host xn--mnchen-3ya.example",
		"||evil.example/a/b^":                 "below evil.example/a/b",
		"||evil.example/a.exe$all":            "below evil.example/a.exe",
		"||evil.example:8080^":                "below evil.example:8080",
		"||192.0.2.7:81/i|":                   "below 192.0.2.7:81/i",
		"|https://evil.example/a^":            "url evil.example/a",
		"|http://evil.example^$document":      "url evil.example",
		"@@||good.example^":                   "not host good.example",
		"@@||good.example^$important":         "not host good.example",
		"@@||good.example/a^":                 "not below good.example/a",
		"@@|https://good.example/a|$document": "not url good.example/a",
	} {
		got, passed, strange, err := blocklist.Meanings(strings.NewReader(line+"\n"), false)
		if err != nil || passed+strange > 0 || strings.Join(got, ",") != want {
			t.Errorf("%q: %q, %d, %d, %v; want %q", line, got, passed, strange, err, want)
		}
	}
	for _, line := range []string{
		"||evil.example^$third-party", "||evil.example^$script,all", "||evil.example^$~document", "||evil.example^$badfilter", "||evil.*^", "||evil.example.*^", "||ev*l.example^",
		"||ads.", "||evil.example/*.js", "||evil^.example^", "||", "||^", "@@", "@@/regex/", "@@good.example", "||com^", "|http", "|https:", "|http://a.example/*/x",
		"example.com##.banner", "example.com,b.example###ad", "example.com#@#.ad", "example.com#?#div", "example.com#$#body{}", "example.com#%#x()", "example.com#@$#x",
		"||evil.example^ # why", "|https://evil.example/" + strings.Repeat("a/", 64),
		"https://evil.example/" + strings.Repeat("a/", 64),
	} {
		got, passed, strange, err := blocklist.Meanings(strings.NewReader(line+"\n"), false)
		if err != nil || passed != 1 || strange != 0 || len(got) > 0 {
			t.Errorf("%q: %q, %d passed over, %d strange, %v", line, got, passed, strange, err)
		}
	}
	for _, line := range []string{
		"evil.example/path", "evil.example:80", "user@evil.example", "evil.example;why", "evil.example!", "evil.example other.example",
		"a..example", strings.Repeat("a", 64) + ".example", "*evil.example", "**.example", "evil.*", "1.2.3.256", "<html>", "404: Not Found", "192.0.2.0/24",
		"\xff\xfe.example", `{"host":"evil.example"}`, "0.0.0.0 http://evil.example/", "0.0.0.0 a.example <b>", "https://", "https://evil.example/ and more", "http://a b/",
		"http://user@evil.example/", "ftp://evil.example/", sum + "0", sum[1:] + "g", "/regex/", "hxxp://evil.example/",
	} {
		got, passed, strange, err := blocklist.Meanings(strings.NewReader("good.example\n"+line+"\n"), false)
		if err != nil || passed != 0 || strange != 1 || len(got) != 1 {
			t.Errorf("%q: %q, %d passed over, %d strange, %v", line, got, passed, strange, err)
		}
	}
}

func TestListsOfManyLines(t *testing.T) {
	for name, c := range map[string]struct {
		text, want      string
		passed, strange int
		turned          bool
	}{
		"hosts": {text: "a.example ; mail\n# note\nd.example\ne.example:443\nf.example\n", want: "host a.example,host d.example,host f.example", strange: 1},
		"Adblock, where any text is a pattern": {
			text: "[Adblock Plus 2.0]\n! Title: x\n||a.example^\n-banner-\n/ads[0-9]+/\nb.example\nc.example/ad\n<div>\n@@||d.example^\n&ad=1\n",
			want: "host a.example,host b.example,not host d.example", passed: 4,
		},
		"an allow-list in Adblock": {text: "@@||a.example^\n||b.example^\nc.example\n", turned: true, want: "host a.example,host b.example,host c.example"},
		"URLhaus": {
			text: "####\r\n# abuse.ch URLhaus Database Dump (CSV - recent URLs only) #\r\n# Terms, of, use #\r\n# id,dateadded,url,url_status,last_online,threat,tags,urlhaus_link,reporter\r\n" +
				"\"3\",\"2026-11-01 12:00:00\",\"http://192.0.2.7:56/i\",\"online\",\"2026-11-01\",\"malware_download\",\"32-bit,elf\",\"https://urlhaus.abuse.ch/url/3/\",\"x\"\r\n" +
				"\"2\",\"2026-11-01 12:00:00\",\"https://evil.example/a,b?q=\"\"1\"\"\",\"online\",\"\",\"\",\"\",\"https://urlhaus.abuse.ch/url/2/\",\"x\"\r\n" +
				"\"1\",\"2026-11-01 12:00:00\",\"https://gone.example/\",\"offline\",\"\",\"\",\"\",\"https://urlhaus.abuse.ch/url/1/\",\"x\"\r\n" +
				"\"0\",\"2026-11-01 12:00:00\",\"https://half.example/\r\n",
			want: "url 192.0.2.7:56/i,url evil.example/a,b?q=\"1\"", passed: 1, strange: 1,
		},
		"PhishTank": {
			text: "phish_id,url,phish_detail_url,verified\n1,https://evil.example/a,https://phishtank.example/1,yes\n2,\"https://b.example/x,y\", \"z\" ,yes\n3,,x,yes\n4\n",
			want: "url evil.example/a,url b.example/x,y", strange: 1,
		},
		"a comment that is no header": {text: "# host, url and reason\na.example\n", want: "host a.example"},
		"a header too late":           {text: "a.example\nid,url\n", want: "host a.example", strange: 1},
		"a mixture": {
			text: "a.example\n||b.example^\nhttps://c.example/x\n" + sum + "\n@@||d.example^\n", want: "host a.example,host b.example,url c.example/x,hash " + sum + ",not host d.example",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, passed, strange, err := blocklist.Meanings(strings.NewReader(c.text), c.turned)
			if err != nil || strings.Join(got, ",") != c.want || passed != c.passed || strange != c.strange {
				t.Errorf("%q, %d passed over, %d strange, %v", got, passed, strange, err)
			}
		})
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
		"UTF-16 mark": "\xff\xfea\n",
		"gzip":        "\x1f\x8b\x08\n",
		"zip":         "PK\x03\x04\n",
		"old ends":    "a.example\rb.example\r",
		"JSON":        "[\n{\"url\":\"https://evil.example/\"},\n{\"url\":\"https://b.example/\"}\n]\n",
	} {
		if _, _, _, err := blocklist.Meanings(strings.NewReader(text), false); !errors.Is(err, listfile.ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, text := range map[string]string{"comments": "# none yet\n", "a few strange lines": "a.example\nb.example\nnonsense!\n", "all passed over": "||a.example^$script\n"} {
		if _, _, _, err := blocklist.Meanings(strings.NewReader(text), false); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	broken := errors.New("broken")
	if _, _, _, err := blocklist.Meanings(io.MultiReader(strings.NewReader("a.example\n"), failing{broken}), false); !errors.Is(err, broken) {
		t.Errorf("a read that fails: %v", err)
	}
	for _, line := range []string{"a.example", "0.0.0.0 a.example b.example", "https://a.example/", "||a.example^", sum} {
		if err := blocklist.MeaningsWith(strings.NewReader(line+"\n"), broken); !errors.Is(err, broken) {
			t.Errorf("%s, which is not kept: %v", line, err)
		}
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func TestExpressions(t *testing.T) {
	for raw, want := range map[string]string{
		"https://evil.example":                        "evil.example|",
		"HTTPS://EVIL.example.:443/#f":                "evil.example|",
		"http://evil.example:443/":                    "evil.example|",
		"http://evil.example:81/":                     "evil.example:81|",
		"https://evil.example/a":                      "evil.example|/a|",
		"https://evil.example/a/":                     "evil.example|/a|",
		"https://evil.example/a//b/?":                 "evil.example|/a|/b|",
		"https://evil.example/a/b?x=1&y=/2":           "evil.example|/a|/b|?x=1|&y=/2|",
		"https://evil.example?x=1&&y":                 "evil.example|?x=1|&|&y|",
		"https://evil.example/%61%2562%25256%33?%78":  "evil.example|/abc|?x|",
		"https://evil.example/%2e%2e/a/%252e%252e/b":  "evil.example|/b|",
		"https://evil.example/a%2Fb":                  "evil.example|/a|/b|",
		"https://evil.example/%zz%0a%20%7f%C3%A9%23x": "evil.example|/%25zz%0A%20%7F%C3%A9%23x|",
		"https://evil.example/%%%25%32%35":            "evil.example|/%25%25%25|",
		"http://[2001:DB8::7]:81/a":                   "[2001:db8::7]:81|/a|",
		"http://127.1/a":                              "127.0.0.1|/a|",
		`https:\\evil.example\a\b`:                    "evil.example|/a|/b|",
	} {
		u, err := weburl.Parse(raw)
		if err != nil {
			t.Fatal(err)
		}
		if got := blocklist.Expression(u); got != want {
			t.Errorf("%s: %s, want %s", raw, got, want)
		}
	}
}

// Who is read twice is found, and a list has no more entries than there is room for.
func TestAListThatIsTooLong(t *testing.T) {
	path := filepath.Join(t.TempDir(), "long.txt")
	writeMany(t, path, "host-", 999)
	entries, _, has, err := blocklist.Read(path, 1000)
	if err != nil || entries != 1000 || !has("evil.example") || has("other.example") {
		t.Errorf("%d entries: %v", entries, err)
	}
	if _, _, _, err := blocklist.Read(path, 999); !errors.Is(err, listfile.ErrTooMany) {
		t.Errorf("one more than there is room for: %v", err)
	}
}
