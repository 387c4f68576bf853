package signals_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"curt/internal/abuse"
	"curt/internal/abuse/abusetest"
	"curt/internal/abuse/listfile"
	"curt/internal/abuse/signals"
	"curt/internal/ratelimit"
)

func TestAddresses(t *testing.T) {
	abusetest.Check(t, signals.IPLiteral{},
		[]string{"http://192.0.2.7/", "http://0x7f.1/", "http://[2001:db8::7]/", "https://8.8.8.8:8443/x", "http://１２７.０.０.１/"},
		[]string{"https://example.com/", "https://192.0.2.7.example/", "https://host1/", "https://a.b.c.d1/", "https://example.com/192.0.2.7"})
}

func TestPrivateAddresses(t *testing.T) {
	abusetest.Check(t, signals.PrivateAddress{},
		[]string{
			"http://0.0.0.0/", "http://10.1.2.3/", "http://100.64.0.1/", "http://127.0.0.1/", "http://127.1/", "http://0x7f000001/", "http://0177.0.0.1/",
			"http://169.254.169.254/latest/meta-data", "http://172.31.255.255/", "http://192.0.0.1/", "http://192.0.2.1/", "http://192.88.99.1/", "http://192.168.1.1/",
			"http://198.19.0.1/", "http://198.51.100.1/", "http://203.0.113.9/", "http://224.0.0.1/", "http://255.255.255.255/", "http://240.0.0.1/",
			"http://[::]/", "http://[::1]/", "http://[::ffff:10.0.0.1]/", "http://[::10.0.0.1]/", "http://[64:ff9b::a00:1]/", "http://[64:ff9b:1::1]/", "http://[2002:a00:1::]/",
			"http://[100::1]/", "http://[2001::1]/", "http://[2001:db8::1]/", "http://[3fff::1]/", "http://[5f00::1]/", "http://[fc00::1]/", "http://[fd12::1]/",
			"http://[fe80::1]/", "http://[fec0::1]/", "http://[ff02::1]/", "http://[4000::1]/",
			"http://localhost/", "http://a.localhost/", "http://localhost./", "http://printer.local/", "http://db.internal/", "http://x.home.arpa/", "http://nas.lan/", "http://wiki.corp/", "http://a.home./", "http://x.intranet/", "http://x.private/", "http://box.localdomain/", "http://intranet/",
			"http://127.0.0.1.nip.io/", "http://app.10.0.0.1.nip.io./", "http://app-192-168-1-250.nip.io/", "http://magic-7f000001.nip.io/", "http://0A000001.nip.io/", "http://10-0-0-1.sslip.io/",
			"http://www.192-168-0-1.sslip.io/", "http://--1.sslip.io/", "http://fd00--1.sslip.io/", "http://8.8.8.8.10.0.0.1.sslip.io/", "http://10.0.0.1.traefik.me/", "http://localtest.me/", "http://a.lvh.me/",
		},
		[]string{
			"http://8.8.8.8/", "http://1.1.1.1/", "http://172.32.0.1/", "http://100.128.0.1/", "http://192.0.0.9/", "http://192.0.1.1/", "http://198.20.0.1/", "http://223.255.255.255/",
			"http://[2606:4700::1111]/", "http://[64:ff9b::808:808]/", "http://[2002:808:808::]/", "http://[2001:4860::8888]/", "http://[2001:20::1]/", "http://[::ffff:8.8.8.8]/",
			"https://mylocal.example/", "https://notlocalhost.com/", "https://internal.example.com/", "https://example.com/10.0.0.1",
			"http://8.8.8.8.nip.io/", "http://8-8-8-8.sslip.io/", "http://08080808.nip.io/", "https://nip.io/", "https://sslip.io/", "http://2606-4700--1111.sslip.io/", "http://10.0.0.nip.io/",
			"http://10.0.0.1.example.com/", "http://127.0.0.1.notnip.io/", "http://mylocaltest.me/", "http://mylan.example/", "http://corp.example/", "http://10.0.0.256.nip.io/",
		})
	if got := abusetest.Evidence(t, signals.PrivateAddress{}, abusetest.Morning(), abusetest.Facts(t, "http://[64:ff9b::a00:1]/")); got != "10.0.0.1 is private (10.0.0.0/8, RFC 1918)" {
		t.Errorf("the evidence is %q", got)
	}
}

func TestLoginWords(t *testing.T) {
	abusetest.Check(t, abusetest.Must[*signals.LoginWords](t)(signals.NewLoginWords()),
		[]string{
			"https://a.example/login", "https://a.example/Log-In.php", "https://a.example/sign_in?x", "https://a.example/x/verify/", "https://a.example/user/verifyAccount",
			"https://a.example/%6Cogin", "https://a.example/LOGIN", "https://a.example/reset.password", "https://a.example/passwort", "https://a.example/mot-de-passe/",
			"https://a.example/contrase%C3%B1a", "https://a.example/contraseña", "https://a.example/%D0%BF%D0%B0%D1%80%D0%BE%D0%BB%D1%8C", "https://a.example/ログイン", "https://a.example/hasło",
			"https://login.shop.com/", "https://secure-update.a.b.co.uk/", "https://a.example/bestätigen", "https://a.example/webscr", "https://a.example/userLogin", "https://a.example/update",
			"https://verify.user.github.io/", "https://a.example/a/b/c/d/Account#x", "https://a.example/%E2%80%99/login",
			"https://a.example/" + strings.Repeat("a/", 4000) + "login", "https://a.example/login/" + strings.Repeat("b", 8000), "https://a.example/" + strings.Repeat("c-", 1800) + "sign-in",
		},
		[]string{
			"https://a.example/", "https://a.example/blogging", "https://a.example/loginov", "https://a.example/accounting", "https://a.example/verifyx", "https://a.example/log/in/tables",
			"https://a.example/?login", "https://a.example/#login", "https://login.example/", "https://login.com/", "https://a.example/x?next=/login", "https://a.example/authors",
			"https://a.example/securely", "https://a.example/%256Cogin", "https://a.example/sign/in-side", "https://a.example/updates-x", "https://github.io/", "http://192.0.2.1/",
			"https://a.example/" + strings.Repeat("%ff", 300), "https://a.example/" + strings.Repeat("loginlogin", 20),
			"https://a.example/" + strings.Repeat("xlogin", 1300), "https://a.example/" + strings.Repeat("a", 1018) + "login" + strings.Repeat("a/", 3000),
		})
}

func TestShorteners(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mine.txt")
	if err := os.WriteFile(path, []byte("# ours\ngo.example.com\nkürz.example\n-goo.gl\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	abusetest.Check(t, abusetest.Must[*signals.Shorteners](t)(signals.NewShorteners(path)),
		[]string{"https://bit.ly/x", "http://BIT.LY./x", "https://www.tinyurl.com/x", "https://t.co/x", "https://go.example.com/", "https://kürz.example/"},
		[]string{"https://bit.ly.example/", "https://notbit.ly/", "https://example.com/bit.ly", "https://goo.gl/x", "https://example.com/", "https://co/", "http://192.0.2.1/"})
	for name, text := range map[string]string{"no host": "bit.ly/x\n", "one label": "com\n", "a space": "a.example b.example\n", "bytes": "a\xff.example\n", "huge": strings.Repeat("# long\n", 700_000)} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := signals.NewShorteners(path); !errors.Is(err, listfile.ErrDataFile) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, path := range []string{t.TempDir(), "/nowhere.txt"} {
		if _, err := signals.NewShorteners(path); !errors.Is(err, listfile.ErrDataFile) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestVelocity(t *testing.T) {
	r := abusetest.Must[*signals.Rate](t)(signals.NewRate())
	now, f := abusetest.Morning(), abusetest.Facts(t, "https://a.example/")
	for i := range 50 {
		if got := abusetest.Evidence(t, r, now.Add(time.Duration(i)*time.Minute), f); got != "" {
			t.Fatalf("link %d: %s", i+1, got)
		}
	}
	for _, quiet := range []*abuse.Facts{{URL: f.URL, Creator: "k1", Change: true}, {URL: f.URL, Creator: "k1", Fallback: true}, {URL: f.URL, Creator: "k2"}, {URL: f.URL}, {URL: f.URL, Network: f.Network}} {
		for range 40 {
			if got := abusetest.Evidence(t, r, now.Add(50*time.Minute), quiet); got != "" {
				t.Fatalf("%+v: %s", quiet, got)
			}
		}
	}
	if got := abusetest.Evidence(t, r, now.Add(50*time.Minute), f); got != "51 links by this creator within an hour" {
		t.Errorf("the evidence is %q", got)
	}
	if got := abusetest.Evidence(t, r, now.Add(62*time.Minute), f); got != "" { // the first two have slid out
		t.Errorf("after an hour: %s", got)
	}
	if got := abusetest.Evidence(t, r, now.Add(-time.Hour), f); got == "" { // a clock that goes back forgets nothing
		t.Error("a clock that goes back lets more through")
	}
	if got := abusetest.Evidence(t, r, now.Add(24*time.Hour), f); got != "" {
		t.Errorf("a day later: %s", got)
	}
	anonymous := &abuse.Facts{URL: f.URL, Network: netip.MustParsePrefix("2001:db8::/64")}
	for range 50 {
		abusetest.Evidence(t, r, now, anonymous)
	}
	if abusetest.Evidence(t, r, now, anonymous) == "" {
		t.Error("a network without a key is not counted")
	}
}

func TestCountryUnlikeTheHistory(t *testing.T) {
	o := abusetest.Must[*signals.Origin](t)(signals.NewOrigin())
	from := func(country string) string {
		f := abusetest.Facts(t, "https://a.example/")
		f.Country = country
		return abusetest.Evidence(t, o, abusetest.Morning(), f)
	}
	for range 9 {
		if got := from("DE"); got != "" {
			t.Fatal(got)
		}
	}
	if got := from("FR"); got != "" { // nine tell too little
		t.Error(got)
	}
	if got := from(""); got != "" {
		t.Error(got)
	}
	for range 40 {
		if got := from("DE"); got != "" {
			t.Fatal(got)
		}
	}
	if got := from("FR"); got != "from FR, while this account's links come from DE" { // 1 of 50
		t.Errorf("the evidence is %q", got)
	}
	if from("BR") == "" {
		t.Error("a new country is like the history")
	}
	for range 2000 { // it moves
		from("BR")
	}
	if got := from("BR"); got != "" {
		t.Error(got)
	}
	for i := range 300 { // more countries than are remembered
		from(fmt.Sprintf("%c%c", 'A'+i%26, 'A'+i/26))
	}
	if got := from("BR"); got != "" {
		t.Error(got)
	}
	for range 40 { // without a key there is no history
		anonymous := abusetest.Facts(t, "https://a.example/")
		anonymous.Creator = ""
		if got := abusetest.Evidence(t, o, abusetest.Morning(), anonymous); got != "" {
			t.Error(got)
		}
	}
}

func TestYoungDomains(t *testing.T) {
	var missing []string
	a := abusetest.Must[*signals.Ages](t)(signals.NewAges(signals.AgesConfig{Missing: func(d string) { missing = append(missing, d) }}))
	now := abusetest.Morning()
	f := abusetest.Facts(t, "https://www.new.co.uk/x")
	if got := abusetest.Evidence(t, a, now, f); got != "" || len(missing) != 1 || missing[0] != "new.co.uk" {
		t.Errorf("%q, missing %q", got, missing)
	}
	a.Learn(now, "new.co.uk", now.Add(-6*24*time.Hour))
	if got := abusetest.Evidence(t, a, now, f); got != "new.co.uk was registered on 2026-03-08" {
		t.Errorf("the evidence is %q", got)
	}
	if got := abusetest.Evidence(t, a, now.Add(23*time.Hour), f); got == "" {
		t.Error("six days and 23 hours are seven days")
	}
	if got := abusetest.Evidence(t, a, now.Add(25*time.Hour), f); got != "" || len(missing) != 2 {
		t.Errorf("what was learned a day ago is believed: %q, missing %q", got, missing)
	}
	a.Learn(now, "new.co.uk", now.Add(-7*24*time.Hour))
	if got := abusetest.Evidence(t, a, now, f); got != "" {
		t.Errorf("seven days old: %s", got)
	}
	a.Learn(now, "new.co.uk", time.Time{})
	if got := abusetest.Evidence(t, a, now, f); got != "" || len(missing) != 2 {
		t.Errorf("an age that cannot be known: %q, missing %q", got, missing)
	}
	for _, raw := range []string{"http://192.0.2.1/", "http://localhost/", "https://co.uk/"} {
		if got := abusetest.Evidence(t, a, now, abusetest.Facts(t, raw)); got != "" || len(missing) != 2 {
			t.Errorf("%s: %q, missing %q", raw, got, missing)
		}
	}
}

// tally is a ratelimit.Tally in memory that can be away.
type tally struct {
	mu   sync.Mutex
	sums map[ratelimit.Count]int // by creator and minute
	away bool
}

func (c *tally) Count(_ context.Context, add []ratelimit.Count, since int64) (sums []ratelimit.Count, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.away {
		return nil, errors.New("away")
	}
	for _, a := range add {
		c.sums[ratelimit.Count{Creator: a.Creator, Minute: a.Minute}] += a.Links
	}
	for k, n := range c.sums {
		if k.Minute > since && slices.ContainsFunc(add, func(a ratelimit.Count) bool { return a.Creator == k.Creator }) {
			k.Links = n
			sums = append(sums, k)
		}
	}
	return sums, nil
}

// TestRateCountsOverServers has one creator create links on three servers, one of which restarts.
func TestRateCountsOverServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := &tally{sums: map[ratelimit.Count]int{}}
		open := func() (*signals.Rate, func()) {
			r := abusetest.Must[*signals.Rate](t)(signals.NewRate())
			r.Share(signals.RateShare{Tally: shared, Key: ratelimit.NewHashKey(make([]byte, 16)), Log: slog.New(slog.DiscardHandler)})
			ctx, cancel := context.WithCancel(t.Context())
			var running sync.WaitGroup
			running.Go(func() { _ = r.Run(ctx) }) // it has no error
			stop := func() { cancel(); running.Wait() }
			t.Cleanup(stop)
			return r, stop
		}
		now, facts := time.Now(), &abuse.Facts{Creator: "key"}
		found := func(r *signals.Rate, at time.Time) bool {
			f, err := r.Inspect(t.Context(), at, facts)
			if err != nil {
				t.Fatal(err)
			}
			return len(f) > 0
		}
		for i := range 2 {
			r, stop := open()
			for range 25 {
				if found(r, now.Add(-time.Duration(i)*time.Minute)) {
					t.Fatal("25 links are too many")
				}
			}
			stop()
		}
		r, _ := open()
		if found(r, now) {
			t.Error("known before the first exchange")
		}
		for own := 1; !found(r, now); own++ {
			if own == 45 { // its own links would be too many soon
				t.Fatal("the links of other servers do not count")
			}
			time.Sleep(100 * time.Millisecond)
		}
		if found(r, now.Add(2*time.Hour)) {
			t.Error("links of two hours ago count")
		}
		shared.mu.Lock()
		shared.away = true
		shared.mu.Unlock()
		facts.Creator = "another"
		for i := range 55 {
			if found(r, now) != (i >= 50) {
				t.Fatalf("link %d without the tally", i+1)
			}
		}
	})
}
