package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// suite is what is known of a package's tests without any mutant.
type suite struct {
	Sources string   // hash of the package, and of the suites of contracts below it
	Flags   []string // for every run of its tests
	Tests   []tested
}

// tested is one test: how long it takes alone, and the lines that it runs.
type tested struct {
	Name  string
	Took  time.Duration
	Fails bool
	Lines map[string][][2]int // by file, from the module's root
}

// covers says whether the test runs a line.
func (t tested) covers(file string, line int) bool {
	return slices.ContainsFunc(t.Lines[file], func(r [2]int) bool { return r[0] <= line && line <= r[1] })
}

// measure runs every test of a package alone, once, and keeps the answer until the
// package changes: a mutant is then tried by the tests that reach it, the fast ones first.
// Tests that are new meanwhile are added.
func (b bench) measure(ctx context.Context, t target) (suite, error) {
	sources, err := digest(filepath.Join(b.root, t.Dir))
	if err != nil {
		return suite{}, err
	}
	kept := filepath.Join(b.dir, "..", "suite-"+strings.ReplaceAll(t.Dir, "/", "-")+".json")
	var s, before suite
	if data, err := os.ReadFile(kept); err == nil && json.Unmarshal(data, &before) == nil && before.Sources != sources {
		before = suite{}
	}
	binary := filepath.Join(b.dir, "cover.test")
	if err := b.build(ctx, t.Dir, "", binary, "-cover"); err != nil {
		return suite{}, fmt.Errorf("build %s: %w", t.Dir, err)
	}
	list := exec.CommandContext(ctx, binary, "-test.list", "^(Test|Fuzz|Example)") //nolint:gosec // built above
	list.Dir = filepath.Join(b.root, t.Dir)
	names, err := list.Output()
	if err != nil {
		return suite{}, fmt.Errorf("list the tests of %s: %w", t.Dir, err)
	}
	s = suite{Sources: sources}
	// rapid would leave the inputs of mutants beside the tests, and begin with them for ever.
	quiet := []string{"-rapid.nofailfile"}
	if o, err := b.try(ctx, t.Dir, false, time.Minute, nil, append([]string{binary, "-test.run", "^$"}, quiet...)...); err == nil && len(o.Failed) == 0 {
		s.Flags = quiet
	}
	for name := range strings.FieldsSeq(string(names)) {
		i := slices.IndexFunc(before.Tests, func(t tested) bool { return t.Name == name && !t.Fails })
		if i >= 0 {
			s.Tests = append(s.Tests, before.Tests[i])
			continue
		}
		one, err := b.measureOne(ctx, t, binary, name)
		if err != nil {
			return suite{}, err
		}
		s.Tests = append(s.Tests, one)
	}
	data, err := json.Marshal(s)
	if err != nil {
		return suite{}, fmt.Errorf("encode a suite: %w", err)
	}
	return s, os.WriteFile(kept, data, 0o600)
}

func (b bench) measureOne(ctx context.Context, t target, binary, name string) (tested, error) {
	profile := filepath.Join(b.dir, "cover.out")
	_ = os.Remove(profile)
	o, err := b.try(ctx, t.Dir, false, 10*time.Minute, nil, binary, "-test.run", only([]string{name}), "-test.coverprofile", profile)
	one := tested{Name: name, Took: o.Took, Fails: len(o.Failed) > 0, Lines: map[string][][2]int{}}
	if err != nil {
		return one, err
	}
	if one.Fails {
		fmt.Printf("%s: %s fails without any mutant, and is left out\n", t.Dir, name)
		return one, nil
	}
	f, err := os.Open(profile)
	if err != nil {
		return one, fmt.Errorf("read what %s covers: %w", name, err)
	}
	defer f.Close() //nolint:errcheck // only read
	for lines := bufio.NewScanner(f); lines.Scan(); {
		file, rest, _ := strings.Cut(strings.TrimPrefix(lines.Text(), module+"/"), ":")
		var from, to, column, count int
		if n, _ := fmt.Sscanf(rest, "%d.%d,%d.%d %d %d", &from, &column, &to, &column, &column, &count); n == 6 && count > 0 {
			one.Lines[file] = append(one.Lines[file], [2]int{from, to})
		}
	}
	return one, nil
}

// reaching are the tests that run the mutant's line: those that take less than a second,
// and the others.
func (s suite) reaching(m mutant) (fast, slow []tested) {
	for _, t := range s.Tests {
		switch {
		case t.Fails || !t.covers(m.File, m.reach):
		case t.Took < time.Second:
			fast = append(fast, t)
		default:
			slow = append(slow, t)
		}
	}
	slices.SortStableFunc(slow, func(a, b tested) int { return int(a.Took - b.Took) })
	return fast, slow
}

// digest is a hash of all Go files under a folder but tests; the suites of contracts are
// among them.
func digest(dir string) (string, error) {
	var all strings.Builder
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(p) != ".go" || strings.HasSuffix(p, "_test.go") {
			return err
		}
		data, err := os.ReadFile(p) //nolint:gosec // our own source
		all.Write(data)
		return err
	})
	if err != nil {
		return "", errors.Join(errors.New("read "+dir), err)
	}
	return hash(all.String()), nil
}
