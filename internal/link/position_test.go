package link_test

import (
	"errors"
	"slices"
	"testing"

	"curt/internal/link"
)

// Text of positions is stored: it stays what it is.
func TestPositionsAsText(t *testing.T) {
	for text, heads := range map[link.Position]link.Heads{
		"":                        nil,
		"1":                       {1},
		"9223372036854775807":     {1<<63 - 1},
		"1:17,0,4":                {17, 0, 4},
		"1:0,9223372036854775807": {0, 1<<63 - 1},
	} {
		got, err := text.Heads()
		if err != nil || !slices.Equal(got, heads) || heads.Position() != text {
			t.Errorf("%q is %v, %v, and %v is %q", text, got, err, heads, heads.Position())
		}
	}
	for _, h := range []link.Heads{{0}, {0, 0, 0}} {
		if p := h.Position(); p != "" {
			t.Errorf("%v is %q", h, p)
		}
	}
	if p := (link.Heads{7, 0}).Position(); p != "7" {
		t.Errorf("a second partition at its beginning is %q", p)
	}
	for _, text := range []link.Position{"x", "-1", "1,2", "1:", "2:1,2", "1:1,,2", "9223372036854775808", "12/3"} {
		if h, err := text.Heads(); !errors.Is(err, link.ErrInvalid) {
			t.Errorf("%q is %v, %v", text, h, err)
		}
	}
	if s, err := link.Position("0").Sequence(); s != 0 || err != nil { // as an older release may have kept it
		t.Errorf("%d, %v", s, err)
	}
	if _, err := link.Position("1:1,2").Sequence(); !errors.Is(err, link.ErrConflict) {
		t.Errorf("heads of two partitions in a log of one: %v", err)
	}
}

func TestHeadsCover(t *testing.T) {
	for _, c := range []struct {
		h, of link.Heads
		want  bool
	}{
		{nil, nil, true},
		{nil, link.Heads{0, 0}, true},
		{nil, link.Heads{0, 1}, false},
		{link.Heads{3, 1}, link.Heads{3}, true},
		{link.Heads{3, 1}, link.Heads{2, 2}, false},
		{link.Heads{2}, link.Heads{3}, false},
	} {
		if got := c.h.Covers(c.of); got != c.want {
			t.Errorf("%v covers %v: %t", c.h, c.of, got)
		}
	}
}
