package reserve

import (
	"fmt"
	"testing"
	"time"

	"curt/internal/link"
)

// However many aliases are asked for, so many are remembered, and each new one is.
func TestRememberedAliasesAreBounded(t *testing.T) {
	m, now := newMemory(), time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	for i := range mostRemembered + 500 {
		k := link.Key{Code: link.Code(fmt.Sprintf("alias-%d", i))}
		m.keep(now, k, known{Occupant: link.Occupant{Linked: true}})
		if _, ok := m.recall(now, k); !ok {
			t.Fatalf("%s is not remembered", k)
		}
	}
	if len(m.aliases) != mostRemembered {
		t.Errorf("%d are remembered", len(m.aliases))
	}
	for i := range 1000 { // those whose time is over go first
		m.keep(now.Add(time.Hour), link.Key{Code: link.Code(fmt.Sprintf("later-%d", i))}, known{Occupant: link.Occupant{Linked: true}})
	}
	for i := range 1000 {
		if k := (link.Key{Code: link.Code(fmt.Sprintf("later-%d", i))}); m.aliases[k] == nil {
			t.Errorf("%s made room for another", k)
		}
	}
}

// What is left of a reservation counts down while it is remembered.
func TestWhatIsLeftCountsDown(t *testing.T) {
	m, now := newMemory(), time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	k := link.Key{Code: "sale"}
	for _, left := range []time.Duration{Hold, 30 * time.Second} {
		m.keep(now, k, known{Occupant: link.Occupant{Reservation: link.Reservation{Workspace: "acme", Left: left}}})
		found, ok := m.recall(now.Add(20*time.Second), k)
		if !ok || found.Reservation.Left != left-20*time.Second {
			t.Errorf("%s after 20 s: %s, %t", left, found.Reservation.Left, ok)
		}
		if _, ok := m.recall(now.Add(min(left, remembered)), k); ok {
			t.Errorf("%s is remembered beyond its time", left)
		}
	}
}
