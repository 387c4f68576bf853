package curttest

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"
)

// unavailable is the code with which curt ends while something that it needs does not respond.
const unavailable = 69

// Migrate brings schemas up to date with `curt migrate`, with these settings alone. What a service that has just started does
// not answer in time is asked for again, for three minutes.
func Migrate(t testing.TB, env []string, args ...string) {
	t.Helper()
	for end := time.Now().Add(3 * time.Minute); ; time.Sleep(100 * time.Millisecond) {
		c := exec.CommandContext(t.Context(), Binary(t), append([]string{"migrate"}, args...)...) //nolint:gosec // the program under test
		c.Env = append(slices.DeleteFunc(os.Environ(), func(kv string) bool { return strings.HasPrefix(kv, "CURT_") }), env...)
		said, err := c.CombinedOutput()
		if err == nil {
			return
		}
		if c.ProcessState.ExitCode() != unavailable || time.Now().After(end) {
			t.Fatalf("curt migrate: %v: %s", err, said)
		}
	}
}
