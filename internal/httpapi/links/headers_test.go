package links

import (
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"curt/internal/link"
	"curt/internal/shorten"
)

func TestIfMatch(t *testing.T) {
	only := func(versions ...link.Version) shorten.Match { return shorten.Match{Only: true, Versions: versions} }
	for _, tt := range []struct {
		lines []string
		want  shorten.Match
	}{
		{nil, shorten.Match{}},
		{[]string{"*"}, shorten.Match{}},
		{[]string{" * "}, shorten.Match{}},
		{[]string{`"3"`}, only(3)},
		{[]string{`"3","4"`, ` "5"	`}, only(3, 4, 5)},
		{[]string{`"3", "v4", W/"5", "006", "-7", "+8", "", "99999999999999999999"`}, only(3)},
	} {
		got, err := ifMatch(http.Header{"If-Match": tt.lines})
		if err != nil {
			t.Errorf("%q: %v", tt.lines, err)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", tt.lines, diff)
		}
	}
	for _, bad := range []string{"", "3", `"`, `"3`, `3"`, `"3""4"`, `"3",`, `,"3"`, `*,"3"`, `w/"3"`, `W/3`, `"3" "4"`, `'3'`} {
		if got, err := ifMatch(http.Header{"If-Match": {bad}}); err == nil {
			t.Errorf("%q was read as %+v", bad, got)
		}
	}
}

func TestPreferWait(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]time.Duration{
		"wait": waitLimit, "Wait": waitLimit, "wait=3": 3 * time.Second, ` return=minimal , wait="2" ; x=y`: 2 * time.Second, "wait=0": 0, "wait=900": waitLimit,
		"wait=x": 0, "wait=-1": 0, "wait=1.5": 0, "wait=abc, wait=4": 4 * time.Second, "wait=": waitLimit, "wait=9999999999": waitLimit, "respond-async": 0, "": 0, "waiting": 0,
	} {
		if got := prefersWait(http.Header{"Prefer": {line}}); got != want {
			t.Errorf("Prefer: %q: %s, want %s", line, got, want)
		}
	}
	if got := prefersWait(http.Header{}); got != 0 {
		t.Errorf("without the header: %s", got)
	}
}
