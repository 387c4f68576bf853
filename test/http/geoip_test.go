package http_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/maxmind/mmdbwriter"
	"github.com/maxmind/mmdbwriter/mmdbtype"

	"curt/test/internal/curttest"
)

// TestCountriesOutOfTheBox: clicks have countries without a file; a trusted proxy may state
// another one, in the lane and at net/http alike, and nobody else.
func TestCountriesOutOfTheBox(t *testing.T) {
	t.Parallel()
	const berlin, nowhere = "193.99.144.80", "203.0.113.5" // heise.de; documentation
	for _, lane := range []string{"on", "off"} {
		for name, c := range map[string]struct {
			env  []string
			want string
		}{
			"trusted":  {[]string{"CURT_TRUSTED_PROXIES=127.0.0.0/8", "CURT_COUNTRY_HEADER=CF-IPCountry"}, `[{"value":"DE","clicks":2},{"value":"NO","clicks":2}]`},
			"no name":  {[]string{"CURT_TRUSTED_PROXIES=127.0.0.0/8"}, `[{"value":"DE","clicks":3}]`},
			"stranger": {[]string{"CURT_TRUSTED_PROXIES=10.0.0.0/8", "CURT_COUNTRY_HEADER=CF-IPCountry"}, `[]`},
			"off":      {[]string{"CURT_TRUSTED_PROXIES=127.0.0.0/8", "CURT_COUNTRIES=off"}, `[]`},
		} {
			t.Run(name+", lane "+lane, func(t *testing.T) {
				t.Parallel()
				s := curttest.Start(t, curttest.Options{Env: append(c.env, "CURT_LANE="+lane)})
				make201(t, s, `{"long_url":"https://example.com/","custom_alias":"there"}`)
				for _, fields := range [][]string{
					{"X-Forwarded-For: " + berlin},
					{"X-Forwarded-For: " + berlin, "CF-IPCountry: XX"},
					{"X-Forwarded-For: " + nowhere},
					{"X-Forwarded-For: " + berlin, "CF-IPCountry: no"},
					{"X-Forwarded-For: " + nowhere, "CF-IPCountry: NO"},
				} {
					if a := as(t, s, "GET", "/there", "", fields...); a.Status != http.StatusFound {
						t.Fatalf("%v: %d", fields, a.Status)
					}
				}
				s.AwaitTotal(t, []curttest.Link{{Code: "there"}}, 5, 3*time.Minute)
				stats := asAdmin(t, s, "GET", "/api/v1/links/there/stats?dimensions=country", "")
				if !strings.Contains(string(stats.Body), `"country":`+c.want) {
					t.Errorf("want %s, the statistics say %s", c.want, stats.Body)
				}
				self := asAdmin(t, s, "GET", "/api/v1/keys/self", "")
				if got := strings.Contains(string(self.Body), "IP2Location LITE"); got != (name != "off") {
					t.Errorf("the attribution: %s", self.Body)
				}
			})
		}
	}
}

// TestUpdateOfTheFile: the command takes what is whole and newer, and nothing else.
func TestUpdateOfTheFile(t *testing.T) {
	t.Parallel()
	body := places(t, time.Date(2026, 10, 1, 0, 0, 0, 0, time.UTC))
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(body) }))
	t.Cleanup(origin.Close)
	path := filepath.Join(t.TempDir(), "places.mmdb")
	if err := os.WriteFile(path, body, 0o600); err != nil {
		t.Fatal(err)
	}
	built := time.Date(2026, 10, 1, 0, 0, 0, 0, time.UTC)
	least := time.Since(built).Seconds() - 1
	s := curttest.Start(t, curttest.Options{Env: []string{"CURT_GEOIP=" + path}})
	age, _, err := s.Metric(t.Context(), "curt_geoip_age_seconds")
	if most := time.Since(built).Seconds() + 1; err != nil || age < least || age > most {
		t.Errorf("the age is %v, %v, want %v to %v", age, err, least, most)
	}
	update := func(sum, want string) {
		t.Helper()
		c := exec.CommandContext(t.Context(), curttest.Binary(t), "geoip", "update", "--sha256="+sum)
		c.Env = []string{"CURT_GEOIP=" + path, "CURT_GEOIP_URL=" + origin.URL + "/places.mmdb?key=hunter2"}
		said, err := c.CombinedOutput()
		if !strings.Contains(string(said), want) || strings.Contains(string(said), "hunter2") {
			t.Errorf("%v: %s; want %q", err, said, want)
		}
	}
	sum := func() string { return fmt.Sprintf("%x", sha256.Sum256(body)) }
	update(sum(), "unchanged")
	body = places(t, time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC))
	update(hex.EncodeToString(make([]byte, 32)), "SHA-256")
	update("", "https")
	update("abc", "64")
	update(sum(), "replaced")
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, body) {
		t.Errorf("the file is another one: %v", err)
	}
	if !curttest.Long() {
		return
	}
	for end := time.Now().Add(3 * time.Minute); ; {
		if now, _, err := s.Metric(t.Context(), "curt_geoip_age_seconds"); err == nil && now < age-86400 {
			return
		} else if time.Now().After(end) {
			t.Fatalf("the server has the file before: %v, %v", now, err)
		}
		time.Sleep(time.Second)
	}
}

// places returns a database that was built at a time.
func places(t *testing.T, at time.Time) []byte {
	t.Helper()
	tree, err := mmdbwriter.New(mmdbwriter.Options{DatabaseType: "Country", BuildEpoch: at.Unix(), RecordSize: 24, IncludeReservedNetworks: true})
	if err != nil {
		t.Fatal(err)
	}
	_, network, err := net.ParseCIDR("203.0.113.0/24")
	if err != nil {
		t.Fatal(err)
	}
	if err := tree.Insert(network, mmdbtype.Map{"country": mmdbtype.Map{"iso_code": mmdbtype.String("NO")}}); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if _, err := tree.WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
