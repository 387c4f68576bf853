package curttest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// FailingSync is a command to put in front of curt that makes fsync and fdatasync
// fail with EIO.
type FailingSync struct {
	Wrap []string
	log  string
}

// FailSync returns a tracer that fails the n-th sync of each thread (strace counts
// by thread), and from there on every sync of that thread when onward is set. The
// program is static, so nothing but a tracer can do this: a preloaded library
// would do nothing and prove nothing.
func FailSync(t testing.TB, n int, onward bool) *FailingSync {
	t.Helper()
	strace, err := exec.LookPath("strace")
	if err != nil {
		Need(t, "strace (apt-get install strace)")
	}
	f := &FailingSync{log: filepath.Join(t.TempDir(), "strace")}
	when := fmt.Sprint(n)
	if onward {
		when += "+"
	}
	f.Wrap = []string{
		// -D keeps curt our child: signals and the exit code are its own.
		strace, "-D", "-f", "--seccomp-bpf", "-qq", "-o", f.log, "-e", "signal=none",
		"-e", "trace=fsync,fdatasync", "-e", "inject=fsync,fdatasync:error=EIO:when=" + when,
	}
	return f
}

// Fired returns how many syncs failed and how many there were.
func (f *FailingSync) Fired(t testing.TB) (failed, all int) {
	t.Helper()
	text, err := os.ReadFile(f.log)
	if err != nil {
		t.Fatalf("strace wrote nothing, so nothing was tested: %v", err)
	}
	return strings.Count(string(text), "(INJECTED)"), strings.Count(string(text), "sync(")
}
