package main

import (
	"context"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// plan is what is compiled, and then run.
type plan struct {
	set      string // "test" or "faults"
	binaries string // the folder of test binaries
	builds   []build
	jobs     []job
	inMemory bool // files of tests, see scratch
	together int  // jobs at a time
	note     bool // the durations, in usual.json
}

// underRace are the packages whose goroutines share memory. SQLite, which is C transpiled to
// Go, takes ten to twenty times as long under the race detector: packages that have it in a
// hot loop run without.
func underRace() []string {
	return []string{
		"./internal/auth/...", "./internal/cache/...", "./internal/clicks/...", "./internal/codegen/...", "./internal/httpapi/...",
		"./internal/lane/...", "./internal/link/...", "./internal/moderation/...", "./internal/ratelimit/...", "./internal/redirect/...",
		"./internal/review/...", "./internal/shorten/...", "./internal/web/...", "./internal/worker/...",
	}
}

// modules are the other modules of the project.
func modules() []string { return []string{"bench"} }

// correctness is `make test`. Most tests wait now and then, so that three packages for each of
// two processors keep these busy.
func correctness(ctx context.Context, binaries string) (plan, error) {
	p := plan{set: "test", binaries: binaries, inMemory: true, together: 6}
	all, err := list(ctx, "", "./...")
	if err != nil {
		return plan{}, err
	}
	race, err := list(ctx, "", underRace()...)
	if err != nil {
		return plan{}, err
	}
	unraced, err := marked("Unraced")
	if err != nil {
		return plan{}, err
	}
	short, err := unmarked("Faults")
	if err != nil {
		return plan{}, err
	}
	p.add(build{folder: "race", args: []string{"-race"}, packages: paths(race)}, race, "race", nil)
	rest := slices.DeleteFunc(slices.Clone(all), func(k pkg) bool {
		return slices.Contains(race, k) && unraced[k.dir] == nil || short[k.dir] == nil
	})
	p.add(build{folder: "plain", env: static(), packages: paths(rest)}, rest, "", func(k pkg) []string {
		if slices.Contains(race, k) {
			return only(unraced[k.dir])
		}
		return nil
	})
	for _, m := range modules() {
		own, err := list(ctx, m, "./...")
		if err != nil {
			return plan{}, err
		}
		p.add(build{folder: m, dir: m, env: static(), packages: paths(own)}, own, m, nil)
	}
	return p, nil
}

// proofs is `make test-faults`: the tests that call testkit.Faults, and no others.
func proofs(ctx context.Context, binaries string) (plan, error) {
	p := plan{set: "faults", binaries: binaries, together: 2}
	all, err := list(ctx, "", "./...")
	if err != nil {
		return plan{}, err
	}
	long, err := marked("Faults")
	if err != nil {
		return plan{}, err
	}
	all = slices.DeleteFunc(all, func(k pkg) bool { return long[k.dir] == nil })
	p.add(build{folder: "plain", env: static(), packages: paths(all)}, all, "", func(k pkg) []string { return only(long[k.dir]) })
	return p, nil
}

// add adds packages to compile, and a job for each.
func (p *plan) add(b build, packages []pkg, note string, args func(pkg) []string) {
	b.folder = filepath.Join(p.binaries, b.folder)
	for _, part := range b.split() {
		p.builds = append(p.builds, part)
		for _, path := range part.packages {
			k := packages[slices.IndexFunc(packages, func(k pkg) bool { return k.path == path })]
			j := job{pkg: k, note: note, build: part}
			if args != nil {
				j.args = args(k)
			}
			p.jobs = append(p.jobs, j)
		}
	}
}

// static is how bin/curt is compiled, so that nothing is compiled twice.
func static() []string { return []string{"CGO_ENABLED=0"} }

// only has a test binary run exactly these tests.
func only(tests []string) []string {
	slices.Sort(tests)
	return []string{"-test.run", "^(" + strings.Join(tests, "|") + ")$"}
}

// pkg is a package that has tests.
type pkg struct{ path, dir string } // dir from the project's folder

func paths(all []pkg) (s []string) {
	for _, k := range all {
		s = append(s, k.path)
	}
	return s
}

// list returns the packages of a module that have tests and match a pattern.
func list(ctx context.Context, module string, patterns ...string) ([]pkg, error) {
	const format = "{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}} {{.Module.Path}}{{end}}"
	cmd := exec.CommandContext(ctx, "go", append([]string{"list", "-f", format}, patterns...)...) //nolint:gosec // the arguments are ours
	cmd.Dir = module
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list %s: %w", strings.Join(patterns, " "), err)
	}
	found := map[string]pkg{}
	for line := range strings.Lines(string(out)) {
		path, of, _ := strings.Cut(strings.TrimSpace(line), " ")
		if path == "" {
			continue
		}
		dir := strings.TrimPrefix(strings.TrimPrefix(path, of), "/")
		if module != "" {
			dir = strings.TrimSuffix(module+"/"+dir, "/")
		}
		found[path] = pkg{path, dir}
	}
	return slices.SortedFunc(maps.Values(found), func(a, b pkg) int { return strings.Compare(a.path, b.path) }), nil
}
