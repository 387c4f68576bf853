package lane_test

import (
	"testing"

	"curt/internal/lane/lanetest"
)

// TestOnlyVersionsOfHTTP1AreReadOn: of a line with any other version nothing more is waited
// for or judged, because net/http has the words for it.
func TestOnlyVersionsOfHTTP1AreReadOn(t *testing.T) {
	for c := range 256 {
		want := "other"
		if c >= '0' && c <= '9' {
			want = "incomplete"
		}
		if c < 0x20 || c == 0x7f {
			want = "bad"
		}
		line := "GET /a HTTP/1." + string([]byte{byte(c)}) + "\r\n"
		if _, got := lanetest.ParseHead([]byte(line)); got != want {
			t.Errorf("%q: %s, want %s", line, got, want)
		}
		if want == "other" {
			if _, got := lanetest.ParseHead([]byte(line + "no field\r\n\r\n")); got != want {
				t.Errorf("%q and what is no field: %s, want %s", line, got, want)
			}
		}
	}
}
