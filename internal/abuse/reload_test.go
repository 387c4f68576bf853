package abuse_test

import (
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"curt/internal/weburl"
)

// writeMany writes a list of so many hosts of usual length, which begin with prefix, and
// evil.example.
func writeMany(t *testing.T, path, prefix string, hosts int) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	text := []byte("evil.example\n")
	for i := range hosts {
		text = append(strconv.AppendInt(append(text, prefix...), int64(i)*0x9E3779B1, 36), ".example.com\n"...)
		if len(text) > 1<<20 || i == hosts-1 {
			if _, err := f.Write(text); err != nil {
				t.Fatal(err)
			}
			text = text[:0]
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// resident returns the bytes of this process in memory, and 0 where nobody says.
func resident() int64 {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(text))
	pages, err := strconv.ParseInt(fields[1], 10, 64)
	if err != nil {
		return 0
	}
	return pages * int64(os.Getpagesize())
}

// While a new version is read, who asks is answered at once, by a whole version, and
// what is in memory stays below two versions and what the collector leaves. The long
// form is the one of the promise: five million hosts.
func TestLookUpsGoOnDuringAReload(t *testing.T) {
	hosts := 150_000
	if os.Getenv("CURT_TEST_LONG") != "" {
		hosts = 5_000_000
	}
	defer debug.SetGCPercent(debug.SetGCPercent(50)) // as a server has it
	path := filepath.Join(t.TempDir(), "many.txt")
	writeMany(t, path, "first-", hosts)
	debug.FreeOSMemory()
	before := resident()
	b := open(t, path)
	debug.FreeOSMemory()
	loaded := resident()
	writeMany(t, path, "second-", hosts)
	evil, err := weburl.Parse("https://evil.example/")
	if err != nil {
		t.Fatal(err)
	}

	done := make(chan struct{})
	var asking sync.WaitGroup
	took := make([]time.Duration, 0, 100_000) // from the moment at which who asks wanted to
	var most int64
	asking.Go(func() {
		tick := time.NewTicker(500 * time.Microsecond)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case wanted := <-tick.C:
				if _, listed := b.Match(evil); !listed {
					t.Error("evil.example is listed in both versions")
					return
				}
				took = append(took, time.Since(wanted))
				most = max(most, resident())
			}
		}
	})
	begin := time.Now()
	if err := b.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	reload := time.Since(begin)
	close(done)
	asking.Wait()
	debug.FreeOSMemory()
	after := resident()

	if n := b.Stats().Entries; n != hosts+1 {
		t.Errorf("%d entries", n)
	}
	if size := b.Stats().Bytes; size > 6*hosts {
		t.Errorf("%d bytes for %d hosts", size, hosts)
	}
	slices.Sort(took)
	const mib = 1 << 20
	t.Logf("%d hosts, %.1f MiB of entries; resident before %.1f, loaded %.1f, at most during the reload %.1f, after %.1f MiB; reload %v, %d look-ups meanwhile: p50 %v, p99 %v, longest %v",
		hosts, float64(b.Stats().Bytes)/mib, float64(before)/mib, float64(loaded)/mib, float64(most)/mib, float64(after)/mib,
		reload.Round(time.Millisecond), len(took), took[len(took)/2], took[len(took)*99/100], took[len(took)-1])
	if len(took) < 20 {
		t.Errorf("only %d look-ups during a reload of %v", len(took), reload)
	}
	if half := took[len(took)/2]; half > 10*time.Millisecond { // of a machine that others load, too
		t.Errorf("half of the look-ups took %v and more", half)
	}
	if most-before > 100*mib {
		t.Errorf("the reload took %d MiB", (most-before)/mib)
	}
}
