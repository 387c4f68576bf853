package redirect_test

import (
	"testing"

	"curt/internal/cache/cachetest"
	"curt/internal/redirect"
)

func TestHTMLOnlyWhenAcceptNamesIt(t *testing.T) {
	for _, c := range []struct {
		accept []string
		want   bool
	}{
		{nil, false},
		{[]string{""}, false},
		{[]string{"*/*"}, false},
		{[]string{"text/*"}, false},
		{[]string{"application/json"}, false},
		{[]string{browser}, true},
		{[]string{"text/html"}, true},
		{[]string{"TEXT/HTML"}, true},
		{[]string{"application/json", "text/html;q=0.1"}, true},
		{[]string{"application/json, text/html ;level=1; q=0.001"}, true},
		{[]string{"text/html;q=0"}, false},
		{[]string{"text/html; Q=0.000, */*"}, false},
		{[]string{"text/html;q="}, true},
		{[]string{"xtext/html, text/htmlx"}, false},
	} {
		out := resolve(t, cachetest.NewSource(), redirect.Request{Method: "GET", Accept: c.accept}, now())
		if out.HTML != c.want {
			t.Errorf("Accept %q: HTML %v, want %v", c.accept, out.HTML, c.want)
		}
	}
}
