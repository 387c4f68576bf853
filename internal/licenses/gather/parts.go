package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// part is something that is compiled in.
type part struct {
	name, version string
	source        string // how to get it
	texts         []string
	kinds         []string
}

// texted are the files that hold licences, or have to be passed on with them.
var texted = regexp.MustCompile(`(?i)^(licen[cs]e|copying|unlicense|notice|patents|copyright)([-_.].*)?$`)

// notices are passed on and judged by no licence; nor is that of a picture in a readme.
var notices = regexp.MustCompile(`(?i)^(notice|patents|copyright)|-logo$`)

// add takes the texts of a folder.
func (p *part) add(folder string) error {
	files, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	for _, f := range files {
		if f.IsDir() || !texted.MatchString(f.Name()) || strings.HasSuffix(f.Name(), ".go") {
			continue
		}
		b, err := os.ReadFile(filepath.Join(folder, f.Name()))
		if err != nil {
			return err
		}
		text := strings.TrimSpace(strings.ReplaceAll(string(b), "\r\n", "\n"))
		if text == "" || slices.Contains(p.texts, text) {
			continue
		}
		p.texts = append(p.texts, text)
		if notices.MatchString(f.Name()) {
			continue
		}
		kind, err := classify(text)
		if err != nil {
			return fmt.Errorf("%s: %w", f.Name(), err)
		}
		if !slices.Contains(p.kinds, kind) {
			p.kinds = append(p.kinds, kind)
		}
	}
	return nil
}

// module is what go list says of a package's module.
type module struct {
	Path, Version, Dir string
	Main               bool
	Replace            *module
}

// goParts are Go's own library and all modules of which the programs have packages, on any of the
// systems that releases are for.
func goParts(ctx context.Context, programs, systems []string) ([]part, error) {
	root, err := run(ctx, nil, "go", "env", "GOROOT", "GOVERSION")
	if err != nil {
		return nil, err
	}
	where, version, _ := strings.Cut(strings.TrimSpace(root), "\n")
	library := part{name: "Go", version: version, source: "its standard library, at go.dev"}
	if err := library.add(where); err != nil || len(library.kinds) == 0 {
		return nil, fmt.Errorf("the licence of Go itself, in %s: %v", where, err) //nolint:errorlint // may be nil
	}
	parts := map[string]*part{}
	for _, system := range systems {
		goos, arch, _ := strings.Cut(system, "/")
		out, err := run(ctx, []string{"GOOS=" + goos, "GOARCH=" + arch, "CGO_ENABLED=0"}, "go", append([]string{"list", "-deps", "-json=Dir,Module,Standard"}, programs...)...)
		if err != nil {
			return nil, err
		}
		if err := readPackages(out, parts); err != nil {
			return nil, err
		}
	}
	all := []part{library}
	for _, p := range parts {
		all = append(all, *p)
	}
	slices.SortFunc(all[1:], func(a, b part) int { return cmp.Compare(a.name, b.name) })
	return all, nil
}

func readPackages(listed string, parts map[string]*part) error {
	for d := json.NewDecoder(strings.NewReader(listed)); ; {
		var p struct {
			Dir      string
			Module   *module
			Standard bool
		}
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("read go list: %w", err)
		}
		m := p.Module
		if m == nil || p.Standard || m.Main || m.Replace != nil && strings.HasPrefix(m.Replace.Path, ".") {
			continue // ours
		}
		if m.Replace != nil {
			m = m.Replace
		}
		known := parts[m.Path]
		if known == nil {
			known = &part{name: m.Path, version: m.Version, source: "unchanged; go mod download " + m.Path + "@" + m.Version}
			parts[m.Path] = known
		}
		for dir := p.Dir; strings.HasPrefix(dir, m.Dir); dir = filepath.Dir(dir) { // a folder may have one of its own
			if err := known.add(dir); err != nil {
				return fmt.Errorf("%s: %w", m.Path, err)
			}
		}
	}
}

// npmParts are the packages that the dashboard is built with, but for those that only build it.
// Without the installed packages there is no dashboard to build.
func npmParts(folder string) (parts []part, err error) {
	text, err := os.ReadFile(filepath.Join(folder, "package-lock.json"))
	if err != nil {
		return nil, err
	}
	var lock struct {
		Packages map[string]struct {
			Version   string
			Dev, Peer bool
		}
	}
	if err := json.Unmarshal(text, &lock); err != nil {
		return nil, fmt.Errorf("read package-lock.json: %w", err)
	}
	for place, p := range lock.Packages {
		if place == "" || p.Dev || p.Peer {
			continue
		}
		_, name, _ := strings.Cut(place, "node_modules/")
		found := part{name: name, version: p.Version, source: "unchanged; npm pack " + name + "@" + p.Version}
		err := found.add(filepath.Join(folder, filepath.FromSlash(place)))
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%s is not installed: run scripts/web first", name)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if len(found.texts) == 0 { // some name it only
			if err := found.named(filepath.Join(folder, filepath.FromSlash(place), "package.json")); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
		}
		parts = append(parts, found)
	}
	slices.SortFunc(parts, func(a, b part) int { return cmp.Compare(a.name, b.name) })
	return parts, nil
}

// named takes the licence that package.json names.
func (p *part) named(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var says struct{ License string }
	if err := json.Unmarshal(text, &says); err != nil {
		return err
	}
	if !slices.ContainsFunc(allowed(), func(k kind) bool { return k.name == says.License }) {
		return fmt.Errorf("its licence is %q", says.License)
	}
	p.kinds, p.texts = []string{says.License}, []string{"package.json: \"license\": \"" + says.License + "\""}
	return nil
}

func run(ctx context.Context, env []string, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...) //nolint:gosec // go, with arguments of this program
	cmd.Env, cmd.Stderr = append(os.Environ(), env...), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
	}
	return string(out), nil
}
