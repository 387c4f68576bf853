package linkitem_test

import (
	"bytes"
	"cmp"
	"errors"
	"math"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"curt/internal/backend/dynamodb/linkitem"
	"curt/internal/link"
	"curt/internal/link/linktest"
)

// TestPlacesKeepTheirOrder: bytes sort as domains and codes do, and as times do before them.
func TestPlacesKeepTheirOrder(t *testing.T) {
	keys := []link.Key{
		{Code: "-"},
		{Code: "A"},
		{Code: "AA"},
		{Code: "a"},
		{Domain: "a", Code: "z"},
		{Domain: "a-b.example", Code: "a"},
		{Domain: "a.example", Code: "a"},
		{Domain: "a.example", Code: "a-"},
		{Domain: "a.example:8080", Code: "0"},
	}
	times := []int64{math.MinInt64, -1, 0, 1, 1 << 40, math.MaxInt64}
	for _, a := range keys {
		if got := linkitem.ParseOrdered(linkitem.Ordered(a)); got != a {
			t.Errorf("%v came back as %v", a, got)
		}
		for _, b := range keys {
			want := cmp.Or(cmp.Compare(a.Domain, b.Domain), cmp.Compare(a.Code, b.Code))
			if got := bytes.Compare(linkitem.Ordered(a), linkitem.Ordered(b)); got != want {
				t.Errorf("%v and %v: order %d, want %d", a, b, got, want)
			}
			for _, early := range times {
				for _, late := range times {
					got := bytes.Compare(linkitem.TimedKey(early, a), linkitem.TimedKey(late, b))
					if got != cmp.Or(cmp.Compare(early, late), want) {
						t.Errorf("%d %v and %d %v: order %d", early, a, late, b, got)
					}
				}
			}
		}
	}
	for _, ms := range times {
		if got, k := linkitem.ParseTimedKey(linkitem.TimedKey(ms, keys[4])); got != ms || k != keys[4] {
			t.Errorf("%d came back as %d of %v", ms, got, k)
		}
	}
}

// TestItems: a link comes back as it was; what Marshal did not write is damaged; a text that is not
// UTF-8 is refused.
func TestItems(t *testing.T) {
	l := linktest.Chosen(1, "code")
	l.Version, l.Tags, l.MaxClicks, l.Title = 3, []string{"b", "a", "b"}, math.MaxUint64, "ü"
	l.Expires = linktest.Epoch()
	item, err := linkitem.Marshal(&l)
	if err != nil {
		t.Fatal(err)
	}
	got, err := linkitem.Unmarshal(item)
	if diff := gocmp.Diff(l, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	delete(item, "id")
	if _, err := linkitem.Unmarshal(item); !errors.As(err, new(*link.DamagedError)) {
		t.Errorf("an item without id: %v", err)
	}
	l.Title = "\xff"
	if _, err := linkitem.Marshal(&l); !errors.Is(err, link.ErrInvalid) {
		t.Errorf("a title that is no text: %v", err)
	}
	dead := l.Tombstone(linktest.Epoch())
	if item, err = linkitem.Marshal(&dead); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{linkitem.OfWorkspace, linkitem.OfAll, linkitem.OfSame, linkitem.Age, linkitem.OfExpiry, linkitem.Expiry} {
		if item[name] != nil {
			t.Errorf("a tombstone is in the index by %s", name)
		}
	}
}
