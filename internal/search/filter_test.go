package search_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"curt/internal/link"
	"curt/internal/search"
)

// Who looks for a host finds every link that may lead there, whatever else is written
// into the link.
func TestNothingHidesAHost(t *testing.T) {
	var many []string
	for i := range 300 {
		many = append(many, fmt.Sprintf("word%d", i))
	}
	text := strings.Join(many, " ")
	for name, l := range map[string]link.Link{
		"destination":          {Destination: "https://pay.evil.example:8443/x"},
		"fallback":             {Destination: "https://example.com/", Fallback: "https://pay.evil.example/x"},
		"fallback of a query":  {Destination: "https://example.com/", Fallback: "https://pay.evil.example?x"},
		"destination, crowded": {Destination: "https://pay.evil.example/" + text, Title: text, Tags: many},
		"fallback, crowded":    {Destination: "https://example.com/" + text, Fallback: "https://evil.example/", Title: text, Tags: many},
	} {
		l.Key, l.Status, l.Safety = link.Key{Code: "abc"}, link.Active, link.Clean
		words, err := search.ParseWords("evil.example")
		if err != nil {
			t.Fatal(err)
		}
		if f := (search.Filter{Words: words}); !f.Matches(&l, l.Created) {
			t.Errorf("%s: not found", name)
		}
		if terms := search.NewDocument(&l).Terms; !slices.Contains(terms, "xevil") || !slices.Contains(terms, "xexample") {
			t.Errorf("%s: not in the index", name)
		}
	}
}
