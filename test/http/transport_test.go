package http_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"curt/test/internal/curttest"
)

// apiAddr finds where the API listens, in the log.
func apiAddr(t *testing.T, s *curttest.Server) string {
	t.Helper()
	found := regexp.MustCompile(`api_addr"?[=:]"?([0-9.]+:[0-9]+)`).FindStringSubmatch(s.Log())
	if found == nil {
		t.Fatalf("the log names no address of the API:\n%s", s.Log())
	}
	return found[1]
}

// trusting is a client that believes the certificate alone.
func trusting(t *testing.T, cert string) *http.Client {
	t.Helper()
	pem, err := os.ReadFile(cert)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		t.Fatal("no certificate")
	}
	return &http.Client{
		Transport:     &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Timeout:       3 * time.Minute,
	}
}

// got is what came back.
type got struct {
	status, major int
	header        http.Header
	body          string
}

// get asks with the admin key.
func get(t *testing.T, c *http.Client, url string) got {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+curttest.Key)
	res, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return got{res.StatusCode, res.ProtoMajor, res.Header, string(body)}
}

// TestTheAPIsListenerSpeaksTLS: where certificates are set no key travels in clear, on
// either listener, and all that is answered over https says that it should stay there.
func TestTheAPIsListenerSpeaksTLS(t *testing.T) {
	t.Parallel()
	cert, key := curttest.Certificate(t)
	for _, lane := range []string{"on", "off"} {
		t.Run("lane "+lane, func(t *testing.T) {
			t.Parallel()
			s, err := curttest.Launch(t, curttest.Options{Env: []string{
				"CURT_LANE=" + lane, "CURT_API_LISTEN=127.0.0.1:0", "CURT_TLS_CERT=" + cert, "CURT_TLS_KEY=" + key, "CURT_HSTS=365d",
			}})
			if err != nil {
				t.Fatal(err)
			}
			api, c := apiAddr(t, s), trusting(t, cert)
			const said = "max-age=31536000"
			if a := get(t, c, "https://"+api+"/api/v1/keys/self"); a.status != http.StatusOK || a.major != 2 || a.header.Get("Strict-Transport-Security") != said {
				t.Errorf("the API answers %+v", a)
			}
			plain, err := curttest.Dial(t.Context(), api)
			if err != nil {
				t.Fatal(err)
			}
			defer plain.Close()
			if a, err := plain.Do("GET", "/api/v1/keys/self", []string{"Authorization: Bearer " + curttest.Key}, ""); err == nil && a.Status != http.StatusBadRequest {
				t.Errorf("over plain HTTP it answers %d %s", a.Status, a.Body)
			}

			made, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://"+api+"/api/v1/links", strings.NewReader(`{"long_url":"https://example.com/","custom_alias":"abc"}`))
			if err != nil {
				t.Fatal(err)
			}
			made.Header.Set("Authorization", "Bearer "+curttest.Key)
			made.Header.Set("Content-Type", "application/json")
			res, err := c.Do(made)
			if err != nil || res.StatusCode != http.StatusCreated {
				t.Fatalf("%v %v", res, err)
			}
			_ = res.Body.Close()
			// From the store, and prepared; what is none, and a page.
			for _, path := range []string{"/abc", "/abc", "/none", "/abc+", "/abc/qr", "/"} {
				if a := get(t, c, "https://"+s.Addr+path); a.header.Get("Strict-Transport-Security") != said || len(a.header.Values("Strict-Transport-Security")) != 1 {
					t.Errorf("%s says %v", path, a.header)
				}
			}
		})
	}
}

// TestWhomToTellAboutHoles: security.txt is there where somebody is named, and names an
// end that the server's own clock has not reached.
func TestWhomToTellAboutHoles(t *testing.T) {
	t.Parallel()
	for _, lane := range []string{"on", "off"} {
		s := curttest.Start(t, curttest.Options{Env: []string{
			"CURT_LANE=" + lane, "CURT_BASE_URL=https://sho.rt", "CURT_SECURITY_CONTACT=mailto:security@example.com,https://example.com/holes",
		}})
		a := visitAs(t, s, "GET", "sho.rt", ".well-known/security.txt", "*/*")
		date, _ := a.Get("Date")
		now, err := http.ParseTime(date)
		if err != nil {
			t.Fatal(err)
		}
		found := regexp.MustCompile(`\AContact: mailto:security@example\.com\r\nContact: https://example\.com/holes\r\nExpires: (\S+)\r\nCanonical: https://sho\.rt/\.well-known/security\.txt\r\n\z`).FindSubmatch(a.Body)
		if a.Status != http.StatusOK || found == nil {
			t.Fatalf("%d %q", a.Status, a.Body)
		}
		ends, err := time.Parse(time.RFC3339, string(found[1]))
		if err != nil || ends.Before(now.Add(24*time.Hour)) || ends.After(now.AddDate(1, 0, 0)) {
			t.Errorf("Expires is %s, %v", found[1], err)
		}
		if kind, _ := a.Get("Content-Type"); kind != "text/plain; charset=utf-8" {
			t.Errorf("Content-Type %q", kind)
		}
		if a := visitAs(t, s, "HEAD", "sho.rt", ".well-known/security.txt", "*/*"); a.Status != http.StatusOK || len(a.Body) > 0 {
			t.Errorf("HEAD: %d %q", a.Status, a.Body)
		}
		if a := visitAs(t, s, "POST", "sho.rt", ".well-known/security.txt", "*/*"); a.Status != http.StatusMethodNotAllowed {
			t.Errorf("POST: %d", a.Status)
		}
	}
	s := curttest.Start(t, curttest.Options{})
	for _, path := range []string{".well-known/security.txt", "none"} {
		a := visitAs(t, s, "GET", "sho.rt", path, "*/*")
		if a.Status != http.StatusNotFound || a.Has("Strict-Transport-Security") {
			t.Errorf("where nothing is set, %s is %d %s", path, a.Status, a.Raw)
		}
	}
}

// TestKeysInClearAreToldOf: by the start, `config check` and the doctor, where a key
// would leave this machine without TLS, and nowhere else.
func TestKeysInClearAreToldOf(t *testing.T) {
	t.Parallel()
	cert, key := curttest.Certificate(t, "sho.rt")
	for name, c := range map[string]struct {
		env  []string
		told bool
	}{
		"everywhere":       {[]string{"CURT_API_LISTEN=0.0.0.0:0"}, true},
		"everywhere, IPv6": {[]string{"CURT_API_LISTEN=:0"}, true},
		"loopback":         {[]string{"CURT_API_LISTEN=127.0.0.1:0"}, false},
		"with TLS":         {[]string{"CURT_API_LISTEN=0.0.0.0:0", "CURT_TLS_CERT=" + cert, "CURT_TLS_KEY=" + key}, false},
		"declared proxy":   {[]string{"CURT_API_LISTEN=0.0.0.0:0", "CURT_BASE_URL=https://sho.rt", "CURT_TRUSTED_PROXIES=192.0.2.0/24"}, false},
		"an https name":    {[]string{"CURT_API_LISTEN=0.0.0.0:0", "CURT_BASE_URL=https://sho.rt"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := curttest.Launch(t, curttest.Options{Env: c.env})
			if err != nil {
				t.Fatal(err)
			}
			if told := strings.Contains(s.Log(), "api keys are sent unencrypted"); told != c.told {
				t.Errorf("the start told of it: %v, want %v\n%s", told, c.told, s.Log())
			}
			for _, ask := range [][]string{{"config", "check"}, {"doctor"}} {
				ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
				defer cancel()
				cmd := exec.CommandContext(ctx, os.Getenv("CURT_BIN"), ask...)
				cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "CURT_DATA=" + t.TempDir(), "CURT_ADMIN_KEY=" + curttest.Key, "CURT_LISTEN=127.0.0.1:0", "CURT_ADMIN_LISTEN="}, c.env...)
				out, _ := cmd.CombinedOutput() // it fails for other doubts, too
				if told := strings.Contains(string(out), "API keys are sent unencrypted"); told != c.told {
					t.Errorf("%v told of it: %v, want %v\n%s", ask, told, c.told, out)
				}
			}
		})
	}
}
