package blocklist_test

import (
	"fmt"
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

// While a new version is read, who asks is answered meanwhile, by a whole version, and
// what is in memory stays below two versions and what the collector leaves. The long
// form is the one of the promise: five million hosts. Where a reload holds look-ups up it
// does so each time; a machine that is busy may hold up the goroutine that asks, so one of
// several reloads has to show it.
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
	evil, err := weburl.Parse("https://evil.example/")
	if err != nil {
		t.Fatal(err)
	}

	var took []time.Duration // from the moment at which who asks wanted to
	var most int64
	var reload time.Duration
	end := time.Now().Add(time.Minute)
	for try := 0; ; try++ {
		writeMany(t, path, fmt.Sprint("next-", try, "-"), hosts)
		took = took[:0]
		over := asking(t, func() {
			wanted := time.Now()
			if _, listed := b.Match(evil); !listed {
				t.Error("evil.example is listed in both versions")
			}
			took = append(took, time.Since(wanted))
			most = max(most, resident())
		})
		begin := time.Now()
		if err := b.Reload(t.Context()); err != nil {
			t.Fatal(err)
		}
		reload = time.Since(begin)
		over()
		slices.Sort(took)
		if len(took) >= 5 && took[len(took)-1] < reload/4 || t.Failed() {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("%d look-ups during a reload of %v, that took up to %v", len(took), reload, took[max(0, len(took)-1):])
		}
	}
	debug.FreeOSMemory()
	after := resident()

	if n := b.Stats().Entries; n != hosts+1 {
		t.Errorf("%d entries", n)
	}
	if size := b.Stats().Bytes; size > 6*hosts {
		t.Errorf("%d bytes for %d hosts", size, hosts)
	}
	const mib = 1 << 20
	t.Logf("%d hosts, %.1f MiB of entries; resident before %.1f, loaded %.1f, at most during the reload %.1f, after %.1f MiB; reload %v, %d look-ups meanwhile: p50 %v, p99 %v, longest %v",
		hosts, float64(b.Stats().Bytes)/mib, float64(before)/mib, float64(loaded)/mib, float64(most)/mib, float64(after)/mib,
		reload.Round(time.Millisecond), len(took), took[len(took)/2], took[len(took)*99/100], took[len(took)-1])
	if most-before > 100*mib {
		t.Errorf("the reload took %d MiB", (most-before)/mib)
	}
}

// asking calls ask again and again, until what it returns is called.
func asking(t *testing.T, ask func()) (over func()) {
	t.Helper()
	done := make(chan struct{})
	var asked sync.WaitGroup
	asked.Go(func() {
		tick := time.NewTicker(500 * time.Microsecond)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				ask()
			}
		}
	})
	return func() { close(done); asked.Wait() }
}
