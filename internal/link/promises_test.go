package link_test

import (
	"errors"
	"testing"

	"curt/internal/link"
)

// TestOneTextIsOneID: each hyphen of a UUID is one, and nothing comes before or behind it.
func TestOneTextIsOneID(t *testing.T) {
	const good = "0190b3a1-f0e0-7c3a-8b1d-5e6f7a8b9c0d"
	if _, err := link.ParseID(good); err != nil {
		t.Fatal(err)
	}
	bad := []string{good + "0", good[1:], good[:35], " " + good, "{" + good + "}"}
	for i, c := range good {
		for _, other := range []string{"-", "x", "_", " ", "0"} {
			if c == '-' && other != "-" || c != '-' && other != "0" {
				bad = append(bad, good[:i]+other+good[i+1:])
			}
		}
	}
	for _, text := range bad {
		if id, err := link.ParseID(text); !errors.Is(err, link.ErrInvalid) {
			t.Errorf("%q is %v, %v; want ErrInvalid", text, id, err)
		}
	}
}
