package faults_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"curt/test/internal/curttest"
)

func TestMain(m *testing.M) { os.Exit(curttest.MainWithMounts(m)) }

// rounds returns the number of rounds for make test or make soak.
func rounds(short, long int) int {
	if curttest.Long() {
		return long
	}
	return short
}

// someTime lets the load run for a random time between the bounds: the moment of
// the fault must not be one that the program can prepare for.
func someTime(least, most time.Duration) {
	time.Sleep(least + rand.N(most-least))
}

// checkLinks proves that every acknowledged link is there, unchanged and under a
// code of its own, and that nothing was stored twice: the list of all links holds
// no destination twice (each was asked for once).
func checkLinks(t *testing.T, s *curttest.Server, made []curttest.Link) {
	t.Helper()
	codes := map[string]string{}
	for _, l := range made {
		if other, twice := codes[l.Code]; twice {
			t.Errorf("code %s was given to %s and to %s", l.Code, other, l.LongURL)
		}
		codes[l.Code] = l.LongURL
	}
	for _, wrong := range s.Follow(t, made, 8) {
		t.Error("acknowledged, but", wrong)
	}
	seen := map[string]string{}
	for _, l := range s.AllLinks(t) {
		if other, twice := seen[l.LongURL]; twice {
			t.Errorf("%s is stored twice: %s and %s", l.LongURL, other, l.Code)
		}
		seen[l.LongURL] = l.Code
		if l.Version != 1 { // the list holds no deleted link
			t.Errorf("%s has version %d, nobody changed it", l.Code, l.Version)
		}
	}
	missing := 0
	for _, l := range made {
		if seen[l.LongURL] != l.Code {
			missing++
		}
	}
	if missing > 0 {
		t.Errorf("%d of %d acknowledged links are missing from the list", missing, len(made))
	}
}

// only201 fails the test when a creator was answered anything but 201.
func only201(t *testing.T, c *curttest.Creators) {
	t.Helper()
	for status, body := range c.Others() {
		t.Errorf("a create was answered %d: %s", status, bytes.TrimSpace(body))
	}
}

func prefix(t *testing.T, round int) string {
	return fmt.Sprintf("https://example.com/%s/%d", t.Name(), round)
}
