package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestFailures(t *testing.T) {
	t.Parallel()
	const log = "    server.go:109: log of curt (pid 7):\n        panic: twice and lost\n"
	for name, c := range map[string]struct {
		o    outcome
		want []failure
	}{
		"passed": {outcome{passed: true}, nil},
		"a part, and the test that it is of": {
			outcome{failed: []told{{"TestA/x", "=== RUN   TestA/x\n    a_test.go:7: up is 0\n" + log}, {"TestA", "--- FAIL: TestA (1.0s)\n"}}},
			[]failure{{test: "TestA/x", says: "a_test.go:7: up is 0\n"}},
		},
		"both": {
			outcome{failed: []told{{"TestA/x", "    a_test.go:7: up is 0\n"}, {"TestA", "    a_test.go:9: waited\n"}}},
			[]failure{{test: "TestA/x", says: "a_test.go:7: up is 0\n"}, {test: "TestA", says: "a_test.go:9: waited\n"}},
		},
		"a promise": {
			outcome{failed: []told{{"TestA", "    a_test.go:7: acknowledged, but https://example.com/a is 404\n" + log}}},
			[]failure{{test: "TestA", says: "a_test.go:7: acknowledged, but https://example.com/a is 404\n", final: true}},
		},
		"a promise in a line below": {
			outcome{failed: []told{{"TestA", "    a_test.go:7: 2 wrong:\n        code x was given to a and to b\n"}}},
			[]failure{{test: "TestA", says: "a_test.go:7: 2 wrong:\ncode x was given to a and to b\n", final: true}},
		},
		"a data race": {
			outcome{failed: []told{{"TestA", "==================\nWARNING: DATA RACE\nRead at 0x00c0 by goroutine 8:\n    testing.go:1617: race detected during execution of test\n"}}},
			[]failure{{test: "TestA", says: "WARNING: DATA RACE\ntesting.go:1617: race detected during execution of test\n", final: true}},
		},
		"a panic": {
			outcome{rest: "panic: nil map\n\ngoroutine 7 [running]:\n"},
			[]failure{{says: "panic: nil map\n", final: true}},
		},
		"a binary that says nothing": {outcome{}, []failure{{final: true}}},
	} {
		if diff := cmp.Diff(c.want, c.o.failures(job{}), cmp.AllowUnexported(failure{}, job{}, pkg{}, build{})); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
}

// TestRepeat runs binaries whose tests fail at their first runs.
func TestRepeat(t *testing.T) {
	t.Parallel()
	converter, err := exec.CommandContext(t.Context(), "go", "tool", "-n", "test2json").Output()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		tests, fails int    // how many tests there are, and how often each fails
		says         string // by t.Error
		unstable     bool
	}{
		"once":            {tests: 1, fails: 1, says: "up is 0", unstable: true},
		"again":           {tests: 1, fails: 2, says: "up is 0"},
		"a promise":       {tests: 1, fails: 1, says: "acknowledged, but gone"},
		"too many":        {tests: mostRepeated + 1, fails: 1, says: "up is 0"},
		"as many as that": {tests: mostRepeated, fails: 1, says: "up is 0", unstable: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := failing(t, c.tests, c.fails, c.says)
			var out bytes.Buffer
			r := newReport(&out, time.Now(), 1)
			failed, err := j.run(strings.TrimSpace(string(converter)), r)
			if err != nil || len(failed) != c.tests {
				t.Fatalf("%d tests failed, %v; want %d", len(failed), err, c.tests)
			}
			if err := repeat(strings.TrimSpace(string(converter)), failed, r); err != nil {
				t.Fatal(err)
			}
			if r.summary(time.Now()) == c.unstable {
				t.Errorf("want unstable %t:\n%s", c.unstable, &out)
			}
			if says := "unstable, it passed 3 times when repeated alone: " + j.label() + " Test0: m_test.go:"; strings.Contains(out.String(), says) != c.unstable {
				t.Errorf("%q: want it %t:\n%s", says, c.unstable, &out)
			}
		})
	}
}

// failing compiles a package of tests that fail so often before they pass.
func failing(t *testing.T, tests, fails int, says string) job {
	t.Helper()
	dir := t.TempDir()
	var b strings.Builder
	b.WriteString("package m\n\nimport (\n\t\"os\"\n\t\"testing\"\n)\n")
	for i := range tests {
		fmt.Fprintf(&b, `
func Test%[1]d(t *testing.T) {
	ran, _ := os.ReadFile("ran%[1]d")
	if err := os.WriteFile("ran%[1]d", append(ran, '.'), 0o600); err != nil {
		t.Fatal(err)
	}
	if len(ran) < %[2]d {
		t.Error(%[3]q)
	}
}
`, i, fails, says)
	}
	for name, text := range map[string]string{"go.mod": "module m\n\ngo 1.26\n", "m_test.go": b.String()} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	j := job{pkg: pkg{path: "m", dir: dir}, build: build{folder: dir, dir: dir, packages: []string{"."}}}
	if err := j.build.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	return j
}
