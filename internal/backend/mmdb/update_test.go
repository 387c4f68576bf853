package mmdb_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/maxmind/mmdbwriter"

	"curt/internal/backend/mmdb"
)

// built returns a database of a time with the country of 198.51.100.0/24.
func built(tb testing.TB, at time.Time, country string) []byte {
	tb.Helper()
	tree, err := mmdbwriter.New(mmdbwriter.Options{DatabaseType: "Test-Country", BuildEpoch: at.Unix(), RecordSize: 24, IncludeReservedNetworks: true})
	if err != nil {
		tb.Fatal(err)
	}
	_, network, err := net.ParseCIDR("198.51.100.0/24")
	if err != nil {
		tb.Fatal(err)
	}
	if err := tree.Insert(network, record{"country": record{"iso_code": word(country)}}); err != nil {
		tb.Fatal(err)
	}
	var b bytes.Buffer
	if _, err := tree.WriteTo(&b); err != nil {
		tb.Fatal(err)
	}
	return b.Bytes()
}

func zipped(tb testing.TB, b []byte) []byte {
	tb.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(b); err != nil {
		tb.Fatal(err)
	}
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
	return out.Bytes()
}

func archived(tb testing.TB, name string, b []byte) []byte {
	tb.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, f := range []struct {
		name string
		text []byte
	}{{"x/LICENSE.txt", []byte("a licence")}, {name, b}} {
		if err := w.WriteHeader(&tar.Header{Name: f.name, Mode: 0o600, Size: int64(len(f.text)), Typeflag: tar.TypeReg}); err != nil {
			tb.Fatal(err)
		}
		if _, err := w.Write(f.text); err != nil {
			tb.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
	return out.Bytes()
}

// origin serves a download over TLS.
func origin(tb testing.TB, h http.HandlerFunc) (address string, trust http.RoundTripper) {
	tb.Helper()
	s := httptest.NewTLSServer(h)
	tb.Cleanup(s.Close)
	return s.URL, s.Client().Transport
}

func october() time.Time  { return time.Date(2026, 10, 1, 0, 0, 0, 0, time.UTC) }
func november() time.Time { return time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC) }

func countryIn(tb testing.TB, path string) string {
	tb.Helper()
	return open(tb, path).Country(netip.MustParseAddr("198.51.100.7"))
}

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

func TestUpdate(t *testing.T) {
	fresh := built(t, november(), "DE")
	for name, body := range map[string][]byte{
		"plain": fresh, "gzip": zipped(t, fresh), "tar": archived(t, "x/x.mmdb", fresh), "tar.gz": zipped(t, archived(t, "x/x.mmdb", fresh)),
	} {
		t.Run(name, func(t *testing.T) {
			address, trust := origin(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(body) })
			path := file(t, built(t, october(), "AT"))
			u := mmdb.Update{URL: address + "/x", Path: path, SHA256: strings.ToUpper(digest(body)), Now: november(), Transport: trust}
			got, err := u.Run(t.Context())
			if want := (mmdb.Updated{Kind: "Test-Country", Built: november(), Networks: 1, Replaced: true}); err != nil || got != want {
				t.Fatalf("%+v, %v, want %+v", got, err, want)
			}
			if got := countryIn(t, path); got != "DE" {
				t.Errorf("after the update the country is %q", got)
			}
			if got, err := u.Run(t.Context()); err != nil || got.Replaced {
				t.Errorf("the same file: %+v, %v", got, err)
			}
			if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("the mode is %v, %v", info.Mode(), err)
			}
			alone(t, path)
		})
	}
}

// alone: nothing is left behind.
func alone(t *testing.T, path string) {
	t.Helper()
	if files, err := os.ReadDir(filepath.Dir(path)); err != nil || len(files) != 1 {
		t.Errorf("%v, %v", files, err)
	}
}

func TestTheFirstUpdateCreatesTheFile(t *testing.T) {
	address, trust := origin(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(built(t, november(), "DE")) })
	path := filepath.Join(t.TempDir(), "places.mmdb")
	if got, err := (mmdb.Update{URL: address, Path: path, Now: november(), Transport: trust}).Run(t.Context()); err != nil || !got.Replaced || countryIn(t, path) != "DE" {
		t.Errorf("%+v, %v", got, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("%v", err)
	}
}

// TestNothingElseReplacesTheFile: whatever the URL has, the file in place stays as it is.
func TestNothingElseReplacesTheFile(t *testing.T) {
	fresh := built(t, november(), "DE")
	torn := bytes.Clone(fresh)
	for i := range 40 {
		torn[i] = 0xff // nodes that lead nowhere
	}
	empty, err := mmdbwriter.New(mmdbwriter.Options{DatabaseType: "Empty", BuildEpoch: november().Unix()})
	if err != nil {
		t.Fatal(err)
	}
	var none bytes.Buffer
	if _, err := empty.WriteTo(&none); err != nil {
		t.Fatal(err)
	}
	send := func(b []byte) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(b) }
	}
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		sha256 string
		want   string
	}{
		"older":              {send(built(t, october().AddDate(0, -1, 0), "DE")), "", ""},
		"another digest":     {send(fresh), digest([]byte("x")), "SHA-256"},
		"not found":          {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) }, "", "404"},
		"empty answer":       {send(nil), "", "damaged"},
		"a page":             {send(bytes.Repeat([]byte("<p>log in</p>"), 100)), "", "damaged"},
		"cut off":            {send(fresh[:len(fresh)/2]), "", "damaged"},
		"cut off in gzip":    {send(zipped(t, fresh)[:200]), "", "EOF"},
		"damaged":            {send(torn), "", "damaged"},
		"without places":     {send(none.Bytes()), "", "no country"},
		"of the future":      {send(built(t, november().AddDate(0, 1, 0), "DE")), "", "future"},
		"no database in tar": {send(archived(t, "x/x.csv", fresh)), "", "archive"},
		"larger than said": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "5000000000")
			w.WriteHeader(http.StatusOK)
		}, "", "4 GiB"},
		"cut connection": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100000")
			_, _ = w.Write(fresh)
		}, "", "EOF"},
		"away from https": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://"+r.Host+"/", http.StatusFound)
		}, "", "https to http"},
	} {
		t.Run(name, func(t *testing.T) {
			address, trust := origin(t, c.answer)
			before := built(t, october(), "AT")
			path := file(t, before)
			got, err := mmdb.Update{URL: address + "/x?license_key=hunter2", Path: path, SHA256: c.sha256, Now: november(), Transport: trust}.Run(t.Context())
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) || got.Replaced {
				t.Errorf("%+v, %v, want %q", got, err, c.want)
			}
			if err != nil && strings.Contains(err.Error(), "hunter2") {
				t.Errorf("%v shows the key", err)
			}
			if after, err := os.ReadFile(path); err != nil || !bytes.Equal(after, before) {
				t.Errorf("the file has changed: %v", err)
			}
			alone(t, path)
		})
	}
}

func TestURLsOfUpdates(t *testing.T) {
	for _, text := range []string{"", "places.mmdb", "ftp://x.example/a", "https://", "https:///a", "file:///etc/passwd", "https://x.example:hunter2/"} {
		err := mmdb.CheckURL(text)
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: %v", text, err)
		}
	}
	path := file(t, built(t, october(), "AT"))
	if _, err := (mmdb.Update{URL: "http://127.0.0.1:1/x", Path: path, Now: november()}).Run(t.Context()); err == nil || !strings.Contains(err.Error(), "https") {
		t.Errorf("http without a digest: %v", err)
	}
	_, err := mmdb.Update{URL: "http://user:hunter2@127.0.0.1:1/x?k=hunter2", SHA256: digest(nil), Path: path, Now: november()}.Run(t.Context())
	if err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("nobody listens: %v", err)
	}
}

// TestAnOpenDatabaseTakesTheUpdate: without a restart, within a minute.
func TestAnOpenDatabaseTakesTheUpdate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := file(t, built(t, october(), "AT"))
		d := open(t, path)
		go d.Run(t.Context()) //nolint:errcheck // always nil
		fresh := built(t, november(), "DE")
		served := roundTrip(func(*http.Request) (*http.Response, error) {
			recorded := httptest.NewRecorder()
			_, _ = recorded.Write(fresh)
			return recorded.Result(), nil
		})
		if _, err := (mmdb.Update{URL: "https://places.example/x", Path: path, Now: november(), Transport: served}).Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute + time.Second)
		synctest.Wait()
		if got := d.Country(netip.MustParseAddr("198.51.100.7")); got != "DE" || !d.Built().Equal(november()) {
			t.Errorf("%q of %s", got, d.Built())
		}
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
