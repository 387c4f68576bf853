package signals_test

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"curt/internal/abuse/abusetest"
	"curt/internal/abuse/lookalike"
	"curt/internal/abuse/signals"
)

// The files of brands and shorteners are taken into use when they change, and what is
// damaged leaves the version in use, as with blocklists.
func TestFilesOfSignalsAreReadAnew(t *testing.T) {
	now, dir := time.Now(), t.TempDir()
	brands, services := filepath.Join(dir, "brands.txt"), filepath.Join(dir, "services.txt")
	abusetest.Put(t, brands, "widgetbank widgetbank.example\n", now.Add(-time.Hour))
	abusetest.Put(t, services, "go.example\n", now.Add(-time.Hour))
	l, s := abusetest.Must[*lookalike.Signal](t)(lookalike.New(brands)), abusetest.Must[*signals.Shorteners](t)(signals.NewShorteners(services))
	var log bytes.Buffer
	files := signals.OpenFiles(t.Context(), slog.New(slog.NewTextHandler(&log, nil)), nil, signals.IPLiteral{}, l, s)
	old := func() {
		t.Helper()
		abusetest.Check(t, l, []string{"https://widgetbank-login.test/"}, []string{"https://gadgetbank-login.test/"})
		abusetest.Check(t, s, []string{"https://go.example/x", "https://bit.ly/x"}, []string{"https://gone.example/x"})
	}
	old()
	if got := files.Stats(); got.Entries != 2 || got.Reloads != 2 || got.Unusable != 0 {
		t.Errorf("%+v", got)
	}
	for name, text := range map[string]string{"a wrong line": "Gadget Bank\n", "bytes": "gadgetbank gadgetbank.example \xff\n", "empty": "", "comments": "# none any more\n"} {
		abusetest.Put(t, brands, text, now.Add(-time.Minute))
		abusetest.Put(t, services, text, now.Add(-time.Minute))
		files.Poll(t.Context(), now)
		if got := files.Stats(); got.Unusable != 2 || got.Entries != 2 {
			t.Errorf("%s: %+v", name, got)
		}
		old()
	}
	if err := os.Remove(brands); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		files.Poll(t.Context(), now)
	}
	old()
	if n := strings.Count(log.String(), "list reload failed, keeping previous version"); n != 9 {
		t.Errorf("%d complaints: %s", n, log.String())
	}

	abusetest.Put(t, brands, "\ufeffgadgetbank gadgetbank.example\n", now.Add(-time.Second*30))
	abusetest.Put(t, services, "gone.example\n-bit.ly\n", now.Add(-time.Second*30))
	log.Reset()
	files.Poll(t.Context(), now)
	abusetest.Check(t, l, []string{"https://gadgetbank-login.test/"}, []string{"https://widgetbank-login.test/"})
	abusetest.Check(t, s, []string{"https://gone.example/x"}, []string{"https://go.example/x", "https://bit.ly/x"})
	if got := files.Stats(); got.Unusable != 0 || got.Entries != 3 || strings.Count(log.String(), "list loaded") != 2 {
		t.Errorf("%+v, %s", got, log.String())
	}
	abusetest.Put(t, brands, "widgetbank widgetbank.example\n", now) // still being written, perhaps
	if err := files.Reload(t.Context()); err != nil {
		t.Error(err)
	}
	abusetest.Check(t, l, []string{"https://widgetbank-login.test/"}, nil)
}

func TestSignalsWithoutFilesHaveNothingToRead(t *testing.T) {
	if files := signals.OpenFiles(t.Context(), nil, nil, abusetest.Must[*lookalike.Signal](t)(lookalike.New("")), signals.IPLiteral{}); files != nil {
		t.Errorf("%+v", files)
	}
}
