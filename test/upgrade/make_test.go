package upgrade_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"curt/test/internal/curttest"
)

// release is the name of the folder to make.
var release = flag.String("make", "", "make the fixture of this release")

// TestMake makes a fixture; scripts/upgrade-fixture calls it.
func TestMake(t *testing.T) {
	if *release == "" {
		t.Skip("nothing to make: scripts/upgrade-fixture does it")
	}
	dir := filepath.Join("testdata", filepath.Base(*release))
	if err := errors.Join(os.MkdirAll("testdata", 0o755), os.Mkdir(dir, 0o755)); err != nil {
		t.Fatalf("a fixture is made once: %v", err)
	}
	data := t.TempDir()
	s := start(t, data)
	all := populate(t, s)
	stop(t, s)
	packFolder(t, data, filepath.Join(dir, "data.tar.gz"))

	again := t.TempDir()
	unpackFolder(t, filepath.Join(dir, "data.tar.gz"), again)
	s = start(t, again)
	said := look(t, s, all)
	stop(t, s)
	writeZipped(t, filepath.Join(dir, "expected.json.gz"), func(w io.Writer) error { return json.NewEncoder(w).Encode(said) })
}

// population is what a fixture holds, and how to ask about it.
type population struct {
	Codes []code            // of every link, deleted ones among them
	Keys  map[string]string // secrets by name; none of them is of use anywhere
	From  time.Time         // of the clicks
	To    time.Time
}

type code struct{ Domain, Code string }

// path of the API.
func (c code) path(more string, query ...string) string {
	if c.Domain != "" {
		query = append(query, "domain="+c.Domain)
	}
	return "/api/v1/links/" + c.Code + more + "?" + strings.Join(query, "&")
}

// shapes are links of every kind. The names are their titles.
func shapes() []object {
	return []object{
		{"title": "plain"},
		{"title": "an alias", "custom_alias": "spring-sale"},
		{"title": "another case", "custom_alias": "Spring-Sale"},
		{"title": "on the second domain", "domain": domain},
		{"title": "an alias there", "domain": domain, "custom_alias": "spring-sale"},
		{"title": "moved", "redirect_status": 301},
		{"title": "307", "redirect_status": 307},
		{"title": "308 with a query", "redirect_status": 308, "forward_query": true},
		{"title": "for CDNs", "cacheable": true},
		{"title": "for search engines", "noindex": false},
		{"title": "not yet", "starts_at": "2990-01-01T00:00:00Z"},
		{"title": "ends late", "expires_at": "2035-12-31T23:59:59.999Z", "starts_at": "2001-01-01T00:00:00.001Z"},
		{"title": "over", "expires_in": 1},
		{"title": "over, with a fallback", "expires_in": 1, "fallback_url": "https://example.com/over"},
		{"title": "three clicks", "max_clicks": 3},
		{"title": "used up", "max_clicks": 2},
		{"title": "used up, with a fallback", "max_clicks": 1, "fallback_url": "https://example.com/used"},
		{"title": "tagged", "tags": []string{"a", "ä ö", "x:y", "2025"}},
		{"title": "Grüße, 世界 🚀 <b>\"'&", "long_url": "https://münchen.example/straße?q=ü#frag"},
		{"title": "long", "long_url": "https://example.com/" + strings.Repeat("long/", 1500)},
		{"title": "off"},
		{"title": "off, with a fallback", "fallback_url": "https://example.com/off"},
		{"title": "deleted"},
		{"title": "a deleted alias", "custom_alias": "gone-for-good"},
		{"title": "changed"},
		{"title": "warned of"},
		{"title": "blocked"},
		{"title": "forbidden"},
		{"title": "reported"},
		{"title": "of a host that is banned", "long_url": "https://banned.example/"},
	}
}

// populate fills an empty server.
func populate(t *testing.T, s *curttest.Server) population {
	t.Helper()
	p := population{Keys: map[string]string{}, From: time.Now().UTC().Truncate(24 * time.Hour)}
	byTitle := map[string]code{}
	for i, shape := range shapes() {
		if shape["long_url"] == nil {
			shape["long_url"] = fmt.Sprintf("https://example.com/shape/%d?x=1", i)
		}
		l := must(t, s, http.MethodPost, "/api/v1/links", shape)
		made := code{text(l["domain"]), text(l["short_code"])}
		if made.Domain == host {
			made.Domain = ""
		}
		byTitle[text(shape["title"])] = made
		p.Codes = append(p.Codes, made)
	}
	var many []object
	for i := range 250 {
		many = append(many, object{"long_url": fmt.Sprintf("https://site%d.example/page/%d", i%20, i), "title": fmt.Sprintf("number %d", i), "tags": []string{fmt.Sprintf("tag%d", i%7)}})
	}
	results, _ := must(t, s, http.MethodPost, "/api/v1/links/bulk", object{"links": many})["results"].([]any)
	for _, r := range results {
		l, _ := r.(object)["link"].(object)
		p.Codes = append(p.Codes, code{Code: text(l["short_code"])})
	}
	changeSome(t, s, byTitle)
	makeKeys(t, s, &p)
	decide(t, s, byTitle)
	click(t, s, p.Codes, byTitle)
	time.Sleep(1100 * time.Millisecond) // until what expires in a second has
	p.To = time.Now().UTC().Truncate(24 * time.Hour).Add(48 * time.Hour)
	return p
}

func text(v any) string { s, _ := v.(string); return s }

func changeSome(t *testing.T, s *curttest.Server, of map[string]code) {
	t.Helper()
	for _, title := range []string{"off", "off, with a fallback"} {
		must(t, s, http.MethodPatch, of[title].path(""), object{"status": "disabled"})
	}
	for _, title := range []string{"deleted", "a deleted alias"} {
		must(t, s, http.MethodDelete, of[title].path(""), nil)
	}
	for i := range 3 {
		must(t, s, http.MethodPatch, of["changed"].path(""), object{"long_url": fmt.Sprintf("https://example.com/changed/%d", i), "tags": []string{"changed"}})
	}
}

// decide fills the journal and the queue of moderators.
func decide(t *testing.T, s *curttest.Server, of map[string]code) {
	t.Helper()
	for title, safety := range map[string]string{"warned of": "warn", "blocked": "blocked", "forbidden": "legal"} {
		must(t, s, http.MethodPut, of[title].path("/safety"), object{"safety": safety, "reason": "because it is " + title})
	}
	must(t, s, http.MethodPut, of["changed"].path("/safety"), object{"safety": "quarantined", "reason": "a mistake"})
	must(t, s, http.MethodPut, of["changed"].path("/safety"), object{"safety": "clean", "reason": "it was one"})
	must(t, s, http.MethodPost, "/api/v1/bans", object{"kind": "domain", "name": "banned.example", "reason": "does harm"})
	lifted := must(t, s, http.MethodPost, "/api/v1/bans", object{"kind": "network", "name": "192.0.2.0/24", "reason": "too much"})
	must(t, s, http.MethodDelete, fmt.Sprintf("/api/v1/bans/%v?reason=enough", lifted["sequence"]), nil)
	eventually(t, "the ban reaches the link that was there", func() bool {
		return must(t, s, http.MethodGet, of["of a host that is banned"].path(""), nil)["safety"] == "blocked"
	})
	report := object{"code": of["reported"].Code, "category": "phishing", "text": "asks for my password"}
	if status, o := api(t, s, "", http.MethodPost, "/api/v1/reports", report); status >= http.StatusBadRequest {
		t.Fatalf("a report: %d %v", status, o)
	}
}

// makeKeys makes keys of several workspaces: one that works, one that reads statistics
// only, one that was rotated, one that is over and one that was revoked.
func makeKeys(t *testing.T, s *curttest.Server, p *population) {
	t.Helper()
	for name, fields := range map[string]object{
		"works":   {"scopes": []string{"links:read", "links:write", "stats:read"}, "workspace_id": "web", "plan": "verified"},
		"reads":   {"scopes": []string{"stats:read"}, "workspace_id": "web"},
		"rotated": {"scopes": []string{"links:read"}, "workspace_id": "other"},
		"over":    {"scopes": []string{"links:read"}, "expires_at": time.Now().Add(time.Second).UTC().Format(time.RFC3339Nano)},
		"revoked": {"scopes": []string{"links:read"}},
		"admin":   {"scopes": []string{"admin"}},
	} {
		fields["name"] = name
		made := must(t, s, http.MethodPost, "/api/v1/keys", fields)
		p.Keys[name] = text(made["key"])
		switch id := text(made["id"]); name {
		case "rotated":
			p.Keys["before the rotation"] = p.Keys[name]
			p.Keys[name] = text(must(t, s, http.MethodPost, "/api/v1/keys/"+id+"/rotate", object{})["key"])
		case "revoked":
			must(t, s, http.MethodDelete, "/api/v1/keys/"+id, nil)
		}
	}
	for i := range 5 {
		status, l := api(t, s, p.Keys["works"], http.MethodPost, "/api/v1/links", object{"long_url": fmt.Sprintf("https://web.example/%d", i), "title": "of web"})
		if status != http.StatusCreated {
			t.Fatalf("create with a key: %d %v", status, l)
		}
		p.Codes = append(p.Codes, code{Code: text(l["short_code"])})
	}
}

// click visits: people, bots, previews, with referrers, languages and campaigns.
func click(t *testing.T, s *curttest.Server, codes []code, of map[string]code) {
	t.Helper()
	agents := []string{
		"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36",
		"Mozilla/5.0 (iPhone; CPU iPhone OS 18_1 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.1 Mobile/15E148 Safari/604.1",
		"Googlebot/2.1 (+http://www.google.com/bot.html)", "",
	}
	for i := range 600 {
		c := codes[i*7%60]
		header := http.Header{"User-Agent": {agents[i%len(agents)]}}
		if i%3 == 0 {
			header.Set("Referer", fmt.Sprintf("https://from%d.example/private?q=1", i%11))
			header.Set("Accept-Language", []string{"de-DE,de;q=0.9", "pt-BR", "en"}[i%9/3])
		}
		if i%10 == 0 {
			header.Set("Sec-Purpose", "prefetch")
		}
		at := host
		if c.Domain != "" {
			at = c.Domain
		}
		query := ""
		if i%5 == 0 {
			query = fmt.Sprintf("?utm_source=news%d&utm_campaign=spring", i%4)
		}
		visit(t, s, at, c.Code+query, header)
	}
	person := http.Header{"User-Agent": {agents[0]}} // a bot uses nothing up
	for range 3 {
		for _, title := range []string{"used up", "used up, with a fallback"} {
			visit(t, s, host, of[title].Code, person)
		}
	}
	visit(t, s, host, of["three clicks"].Code, person)
	for i := range 20 {
		visit(t, s, host, fmt.Sprintf("nobody%d", i), nil)
	}
}

// packFolder writes the files of a folder.
func packFolder(t *testing.T, from, to string) {
	t.Helper()
	writeZipped(t, to, func(w io.Writer) error {
		archive := tar.NewWriter(w)
		return errors.Join(archive.AddFS(os.DirFS(from)), archive.Close())
	})
}

func writeZipped(t *testing.T, file string, write func(io.Writer) error) {
	t.Helper()
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	z := gzip.NewWriter(f)
	if err := errors.Join(write(z), z.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
}

// readZipped opens what writeZipped wrote.
func readZipped(t *testing.T, file string) io.Reader {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return z
}

// unpackFolder is the inverse.
func unpackFolder(t *testing.T, from, to string) {
	t.Helper()
	for r := tar.NewReader(readZipped(t, from)); ; {
		h, err := r.Next()
		if h == nil {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(to, filepath.Clean("/"+h.Name))
		if h.FileInfo().IsDir() {
			err = os.MkdirAll(path, 0o700)
		} else {
			err = writeFrom(path, r)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func writeFrom(path string, r io.Reader) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	text, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o600)
}
