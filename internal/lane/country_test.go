package lane_test

import "testing"

// stating has proxies of 127.0.0.0/8 state the visitor's country.
func stating(s *setup) {
	trusting("127.0.0.0/8")(s)
	s.links.CountryHeader, s.lane.CountryHeader = "CF-IPCountry", "CF-IPCountry"
}

// TestCountriesThatProxiesState: the lane and net/http take the same one, and only from a proxy
// that is trusted.
func TestCountriesThatProxiesState(t *testing.T) {
	on, off := start(t, true, stating), start(t, false, stating)
	ignoring := map[string]*rig{"from a stranger": start(t, true, stating, trusting("10.0.0.0/8")), "without a setting": start(t, true, trusting("127.0.0.0/8"))}
	for lines, want := range map[string]string{
		"CF-IPCountry: DE\r\n": "DE", "cf-ipcountry:de\r\n": "DE", "CF-IPCOUNTRY: \t DE \t\r\n": "DE",
		"X-Forwarded-For: 203.0.113.9\r\nCF-IPCountry: US\r\nAccept: */*\r\n": "US",

		"": "", "CF-IPCountry:\r\n": "", "CF-IPCountry: XX\r\n": "", "CF-IPCountry: T1\r\n": "", "CF-IPCountry: DEU\r\n": "", "CF-IPCountry: D E\r\n": "",
		"CF-IPCountry: DE\r\nCF-IPCountry: US\r\n": "", "CF-IPCountry: DE\r\ncf-ipcountry: DE\r\n": "", "CF-IPCountry: DE,US\r\n": "",
		"CF-IPCountry: \xc4\xc5\r\n": "", "CF-IPCountry: (other)\r\n": "",
		"X-CF-IPCountry: DE\r\n": "", "CF-IPCountry-2: DE\r\n": "", "CF_IPCountry: DE\r\n": "", "X: CF-IPCountry: DE\r\n": "", "Cookie: a=\tCF-IPCountry:DE\r\n": "",
	} {
		sent := "GET /live HTTP/1.1\r\nHost: x\r\n" + lines + "Connection: close\r\n\r\n"
		compare(t, on, off, sent, 0)
		check := func(name string, r *rig, want string) {
			r.rec.take()
			if got := statuses(answers(t, r.exchange(t, sent))); got != "302" {
				t.Fatalf("%s: %q: %s", name, lines, got)
			}
			for _, c := range r.rec.take() {
				if got := string(c.Country[:]); got != want && (want != "" || c.Country != [2]byte{}) {
					t.Errorf("%s: %q is %q, want %q", name, lines, got, want)
				}
			}
		}
		check("lane", on, want)
		for name, r := range ignoring {
			check(name, r, "")
		}
	}
}
