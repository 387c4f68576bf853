package curttest

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
)

// FailingSync is a command to put in front of curt that makes fsync and fdatasync
// fail with EIO.
type FailingSync struct {
	Wrap []string
	log  string
}

// Strace returns the path of strace; without it the test ends by Need.
func Strace(t testing.TB) string {
	t.Helper()
	path, err := exec.LookPath("strace")
	if err != nil {
		Need(t, "strace (apt-get install strace)")
	}
	return path
}

// FailSync returns a tracer that fails the n-th sync of each thread (strace counts
// by thread). The program is static, so nothing but a tracer can do this: a
// preloaded library would do nothing and prove nothing.
func FailSync(t testing.TB, n int) *FailingSync {
	t.Helper()
	strace := Strace(t)
	f := &FailingSync{log: filepath.Join(t.TempDir(), "strace")}
	f.Wrap = []string{
		// -D keeps curt our child: signals and the exit code are its own.
		strace, "-D", "-f", "--seccomp-bpf", "-qq", "-y", "-o", f.log, "-e", "signal=none",
		"-e", "trace=fsync,fdatasync", "-e", "inject=fsync,fdatasync:error=EIO:when=" + strconv.Itoa(n),
	}
	return f
}

// Failed returns the files whose sync was made to fail, once for each time.
func (f *FailingSync) Failed(t testing.TB) (files []string) {
	t.Helper()
	text, err := os.ReadFile(f.log)
	if err != nil {
		t.Fatalf("strace wrote nothing, so nothing was tested: %v", err)
	}
	for _, m := range failedSync.FindAllStringSubmatch(string(text), -1) {
		files = append(files, filepath.Base(m[1]))
	}
	return files
}

// failedSync is a line of strace -y: fsync(7</data/curt.db-wal>) = -1 EIO (…) (INJECTED).
var failedSync = regexp.MustCompile(`sync\(\d+<([^>]*)>\) += -1 EIO .*\(INJECTED\)`)
