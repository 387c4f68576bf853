package lane_test

import (
	"os"
	"os/exec"
	"sync"
	"testing"

	"curt/test/internal/curttest"
)

func TestMain(m *testing.M) { os.Exit(curttest.Main(m)) }

// program returns the path of a program, which Debian may keep where only root looks.
func program(t *testing.T, name, pack string) string {
	t.Helper()
	for _, n := range []string{name, "/usr/sbin/" + name} {
		if path, err := exec.LookPath(n); err == nil {
			return path
		}
	}
	curttest.Need(t, name+" (apt-get install "+pack+")")
	return ""
}

// output is what a program printed.
type output struct {
	mu   sync.Mutex
	text []byte // guarded by mu
}

// Write takes output of the program.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.text = append(o.text, p...)
	return len(p), nil
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return string(o.text)
}
