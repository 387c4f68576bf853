package stores

import (
	"slices"
	"testing"

	"curt/internal/link"
)

// TestNewLinksAreNoUpdates: no keys mean that all links may have changed, never that none has.
func TestNewLinksAreNoUpdates(t *testing.T) {
	var h Changes
	var all, updates [][]link.Key
	h.Listen(func(keys ...link.Key) { all = append(all, keys) })
	h.ListenUpdates(func(keys ...link.Key) { updates = append(updates, keys) })
	a, b := link.Key{Code: "created"}, link.Key{Code: "updated"}
	for _, changes := range [][]link.Change{
		{{Key: a, Version: 1}},
		{{Key: a, Version: 1}, {Key: b, Version: 2}},
		{{Key: b}}, // of an unknown version
		nil,
	} {
		h.heard(changes)
	}
	want := [][]link.Key{{a}, {a, b}, {b}, {}}
	if !slices.EqualFunc(all, want, slices.Equal) {
		t.Errorf("changes %v, want %v", all, want)
	}
	if want := [][]link.Key{{b}, {b}, {}}; !slices.EqualFunc(updates, want, slices.Equal) {
		t.Errorf("updates %v, want %v", updates, want)
	}
}
