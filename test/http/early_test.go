package http_test

import (
	"strings"
	"testing"

	"curt/test/internal/curttest"
)

// TestALinkBeforeItsStartIsAnUnknownCode compares bytes: what strangers are told of a
// link before its start is what they are told of a code that no link has, on each of
// the addresses that a link has, and at the bound of unknown codes.
func TestALinkBeforeItsStartIsAnUnknownCode(t *testing.T) {
	t.Parallel()
	for _, lane := range []string{"on", "off"} {
		t.Run("lane "+lane, func(t *testing.T) {
			t.Parallel()
			with := func(limit string) *curttest.Server {
				return curttest.Start(t, curttest.Options{Env: []string{
					"CURT_LANE=" + lane, "CURT_BASE_URL=https://sho.rt", "CURT_DOMAINS=go.example", "CURT_UNKNOWN_LIMIT=" + limit,
				}})
			}
			s := with("off")
			for _, more := range []string{`,"custom_alias":"early"`, `,"custom_alias":"early","domain":"go.example"`} {
				make201(t, s, `{"long_url":"https://example.com/","starts_at":"2990-01-01T00:00:00Z"`+more+`}`)
			}
			for _, host := range []string{"sho.rt", "go.example", "stranger.example"} {
				for _, method := range []string{"GET", "HEAD", "POST", "PUT", "OPTIONS", "DELETE"} {
					for _, suffix := range []string{"", "?a=b", "+", "/qr", "/qr?format=png", "/stats", "/stats?share=abc", "/"} {
						for _, accept := range []string{"*/*", "text/html"} {
							want, got := visitAs(t, s, method, host, "nobot"+suffix, accept), visitAs(t, s, method, host, "early"+suffix, accept)
							if bytesOf(want, "nobot") != bytesOf(got, "early") {
								t.Errorf("%s %s/early%s for %s is told from an unknown code:\n%s\nwant\n%s", method, host, suffix, accept, bytesOf(got, "early"), bytesOf(want, "nobot"))
							}
						}
					}
				}
			}
			var stats curttest.Stats
			if err := s.MustDial(t).GetJSON("/api/v1/links/early/stats", &stats); err != nil || stats.Total != 0 {
				t.Errorf("%d clicks were counted for it (%v)", stats.Total, err)
			}
			// Its owner sees where it will lead.
			var l struct {
				State string
				URL   string `json:"long_url"`
			}
			if err := s.MustDial(t).GetJSON("/api/v1/links/early", &l); err != nil || l.State != "not_yet" || l.URL != "https://example.com/" {
				t.Errorf("the owner is told %+v (%v)", l, err)
			}

			s = with("2/d")
			make201(t, s, `{"long_url":"https://example.com/","starts_at":"2990-01-01T00:00:00Z","custom_alias":"early"}`)
			for i, want := range []int{404, 404, 429, 429} {
				if a := visitAs(t, s, "GET", "sho.rt", "early"+[]string{"", "+", "/qr", ""}[i], "*/*"); a.Status != want {
					t.Errorf("visit %d: %d, want %d", i, a.Status, want)
				}
			}
		})
	}
}

// bytesOf returns an answer as it came, less the time of day, the names of failures,
// and the code, where a page repeats what was asked for.
func bytesOf(a curttest.Answer, code string) string {
	var b strings.Builder
	for line := range strings.Lines(a.Raw) {
		if !strings.HasPrefix(line, "Date: ") {
			b.WriteString(line)
		}
	}
	return strings.ReplaceAll(b.String()+"\r\n"+string(a.Body), code, "CODE")
}
