package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"

	"curt.example/client"
)

// crowd has people of many browsers visit a server by way of one proxy on loopback, which
// says whom it speaks for, and one in the middle without it; and waits until they are counted.
func crowd(t *testing.T, address, folder string, people, visits int, other bool) {
	t.Helper()
	api := admin(t, address, folder)
	l, err := api.Create(t.Context(), client.NewLink{LongURL: "https://example.com/", CustomAlias: "crowd"})
	if err != nil {
		t.Fatal(err)
	}
	from := func(ip net.IP) *http.Client {
		dial := net.Dialer{LocalAddr: &net.TCPAddr{IP: ip}}
		return &http.Client{
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
			Transport: &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
				return dial.DialContext(ctx, network, address)
			}},
		}
	}
	proxy, direct := from(net.IPv4(127, 0, 0, 1)), from(net.IPv4(127, 0, 0, 9))
	for i := range visits {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address+"/"+l.ShortCode, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("User-Agent", fmt.Sprintf("Mozilla/5.0 (X11; Linux x86_64; rv:%d.0) Gecko/20100101 Firefox/%[1]d.0", 100+i%people))
		req.Header.Set("X-Forwarded-For", fmt.Sprintf("192.0.2.%d", 1+i%people))
		by := proxy
		if other && i == visits/2 {
			by = direct
		}
		answer, err := by.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
	}
	proxy.CloseIdleConnections()
	direct.CloseIdleConnections()
	counted(t, api, l.ShortCode, uint64(visits))
}

func TestDoctorFindsVisitorsThatAreNotToldApart(t *testing.T) {
	trust := func(proxy string) []string { return []string{"--trusted-proxies=" + proxy} }
	for name, c := range map[string]struct {
		settings       []string
		people, visits int
		other          bool
		warned         string // of what the advice speaks
	}{
		"a proxy that nobody knows of": {nil, 15, 120, false, "add its addresses to CURT_TRUSTED_PROXIES"},
		"another proxy is trusted":     {trust("198.51.100.7/32"), 15, 120, false, "X-Forwarded-For"},
		"a proxy that is trusted":      {trust("127.0.0.0/8"), 15, 120, false, ""},
		"not all by way of it":         {nil, 15, 120, true, ""},
		"one who tries it out":         {nil, 2, 120, false, ""},
		"few clicks":                   {nil, 15, 40, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address, folder := serving(t, c.settings...)
			crowd(t, address, folder, c.people, c.visits, c.other)
			_, found := examine(t, folder, c.settings...)
			advice := ""
			for _, f := range found {
				if f.Check == "addresses" && f.Level == "warning" && strings.Contains(f.Text, "came from one address") {
					advice = f.Advice
				}
			}
			if c.warned == "" && advice != "" || !strings.Contains(advice, c.warned) {
				t.Errorf("the advice is %q, want %q", advice, c.warned)
			}
		})
	}
}
