package site_test

import (
	"html"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"curt/test/internal/curttest"
)

const root = "../.."

func TestSiteHasNoDeadLinks(t *testing.T) {
	if _, err := exec.LookPath("node"); err != nil {
		curttest.Need(t, "node (apt-get install nodejs)")
	}
	if out, err := exec.CommandContext(t.Context(), "../../scripts/npm", "../../site").CombinedOutput(); err != nil {
		curttest.Need(t, "what scripts/npm site installs: "+string(out))
	}
	built := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), "../../scripts/site", built).CombinedOutput(); err != nil {
		t.Fatalf("scripts/site: %v\n%s", err, out)
	}
	pages := read(t, os.DirFS(built))
	for _, fault := range faults(os.DirFS(built), pages) {
		t.Error(fault)
	}
	navigation := pages["index.html"].links
	for _, source := range sources(t) {
		if name := strings.TrimSuffix(source, ".md") + ".html"; pages[name] == nil {
			t.Errorf("%s is no page of the site", source)
		} else if !navigation["/"+strings.TrimSuffix(name, "index.html")] {
			t.Errorf("%s is not in the navigation: list it in site/config.mjs", source)
		}
	}
	if found, err := fs.Glob(os.DirFS(built), "assets/chunks/*localSearchIndex*.js"); err != nil || len(found) != 1 {
		t.Errorf("%d search indexes, want one: %v", len(found), err)
	}
}

// The control: dead links, dead anchors and foreign hosts are found, and nothing else.
func TestFaultsAreFound(t *testing.T) {
	site := fstest.MapFS{
		"index.html":   {Data: []byte(`<a href="/a.html#here">a</a> <a href="./a.html">a</a> <a href="/b/">b</a> <a href="https://example.com">e</a>`)},
		"a.html":       {Data: []byte(`<h2 id="here">h</h2><a href="#gone">x</a><a href="none.html">x</a><img src="https://cdn.example/x.png">`)},
		"b/index.html": {Data: []byte(`<a href="../a.html#gone">x</a>`)},
	}
	said := strings.Join(faults(site, read(t, site)), "\n")
	for _, want := range []string{"a.html: #gone", "a.html: none.html", "a.html: https://cdn.example/x.png", "b/index.html: ../a.html#gone"} {
		if !strings.Contains(said, want) {
			t.Errorf("no fault says %s:\n%s", want, said)
		}
	}
	if n := strings.Count(said, "\n") + 1; n != 4 {
		t.Errorf("%d faults, want 4:\n%s", n, said)
	}
}

// page is what links need of a file of HTML.
type page struct {
	links, loads, ids map[string]bool
}

func read(t *testing.T, site fs.FS) map[string]*page {
	t.Helper()
	attribute := regexp.MustCompile(`<(\w+)[^>]*?\s(?:href|src)="([^"]*)"`)
	identity := regexp.MustCompile(`\sid="([^"]*)"`)
	pages := map[string]*page{}
	err := fs.WalkDir(site, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || path.Ext(name) != ".html" {
			return err
		}
		text, err := fs.ReadFile(site, name)
		p := &page{map[string]bool{}, map[string]bool{}, map[string]bool{}}
		for _, m := range attribute.FindAllStringSubmatch(string(text), -1) {
			if m[1] == "a" {
				p.links[html.UnescapeString(m[2])] = true
			} else {
				p.loads[html.UnescapeString(m[2])] = true
			}
		}
		for _, m := range identity.FindAllStringSubmatch(string(text), -1) {
			p.ids[html.UnescapeString(m[1])] = true
		}
		pages[name] = p
		return err
	})
	if err != nil || len(pages) == 0 {
		t.Fatalf("%d pages: %v", len(pages), err)
	}
	return pages
}

// faults are the links that lead nowhere within the site, and what is loaded from elsewhere.
func faults(site fs.FS, pages map[string]*page) (all []string) {
	for name, p := range pages {
		if name == "404.html" {
			continue
		}
		for to := range p.links {
			if !strings.Contains(to, "://") && !strings.HasPrefix(to, "mailto:") && !leads(site, pages, name, to) {
				all = append(all, name+": "+to+" leads nowhere")
			}
		}
		for to := range p.loads {
			if strings.Contains(to, "//") {
				all = append(all, name+": "+to+" is loaded from elsewhere")
			} else if !strings.HasPrefix(to, "data:") && !leads(site, pages, name, to) {
				all = append(all, name+": "+to+" is not there")
			}
		}
	}
	return all
}

func leads(site fs.FS, pages map[string]*page, from, to string) bool {
	target, err := url.Parse(to)
	if err != nil {
		return false
	}
	file := from
	if target.Path != "" {
		file = path.Join(path.Dir("/"+from), target.Path)
		if path.IsAbs(target.Path) {
			file = path.Clean(target.Path)
		}
		if file = strings.TrimPrefix(file, "/"); strings.HasSuffix(target.Path, "/") {
			file = path.Join(file, "index.html")
		}
	}
	if _, err := fs.Stat(site, file); err != nil {
		return false
	}
	return target.Fragment == "" || pages[file] != nil && pages[file].ids[target.Fragment]
}

// sources are the pages that the site must have, as they are called there.
func sources(t *testing.T) (all []string) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(root, "docs"), func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && filepath.Ext(name) == ".md" {
			shown, rel := filepath.Rel(filepath.Join(root, "docs"), name)
			all, err = append(all, strings.ReplaceAll(filepath.ToSlash(shown), "README.md", "index.md")), rel
		}
		return err
	})
	if err != nil || len(all) < 60 {
		t.Fatalf("%d pages in docs: %v", len(all), err)
	}
	return append(all, "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")
}
