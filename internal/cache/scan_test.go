package cache_test

import (
	"context"
	"strings"

	"curt/internal/link"
)

// scan is a source of any number of links that keeps none; codes that begin with
// "none" do not exist.
type scan struct{}

func (scan) Lookup(_ context.Context, k link.Key) (link.Target, error) {
	if strings.HasPrefix(string(k.Code), "none") {
		return link.Target{}, link.ErrNotFound
	}
	return link.Target{
		Destination: "https://example.com/" + strings.Repeat("x", 80) + string(k.Code),
		Version:     1, Redirect: 302, Status: link.Active, Safety: link.Clean,
	}, nil
}

func (scan) Get(context.Context, link.Key) (link.Link, error) {
	return link.Link{}, link.ErrUnavailable
}
