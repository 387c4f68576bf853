package abuse_test

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"curt/internal/abuse"
)

// The files of brands and shorteners are taken into use when they change, and what is
// damaged leaves the version in use, as with blocklists.
func TestFilesOfSignalsAreReadAnew(t *testing.T) {
	now, dir := time.Now(), t.TempDir()
	brands, services := filepath.Join(dir, "brands.txt"), filepath.Join(dir, "services.txt")
	put(t, brands, "widgetbank widgetbank.example\n", now.Add(-time.Hour))
	put(t, services, "go.example\n", now.Add(-time.Hour))
	l, s := must[*abuse.LookAlikes](t)(abuse.NewLookAlikes(brands)), must[*abuse.Shorteners](t)(abuse.NewShorteners(services))
	var log bytes.Buffer
	files := abuse.OpenSources(t.Context(), abuse.SourcesConfig{Log: slog.New(slog.NewTextHandler(&log, nil))}, abuse.IPLiteral{}, l, s)
	old := func() {
		t.Helper()
		seen(t, l, []string{"https://widgetbank-login.test/"}, []string{"https://gadgetbank-login.test/"})
		seen(t, s, []string{"https://go.example/x", "https://bit.ly/x"}, []string{"https://gone.example/x"})
	}
	old()
	if got := files.Stats(); got.Entries != 2 || got.Reloads != 2 || got.Unusable != 0 {
		t.Errorf("%+v", got)
	}
	for name, text := range map[string]string{"a wrong line": "Gadget Bank\n", "bytes": "gadgetbank gadgetbank.example \xff\n", "empty": "", "comments": "# none any more\n"} {
		put(t, brands, text, now.Add(-time.Minute))
		put(t, services, text, now.Add(-time.Minute))
		files.Round(t.Context(), now)
		if got := files.Stats(); got.Unusable != 2 || got.Entries != 2 {
			t.Errorf("%s: %+v", name, got)
		}
		old()
	}
	if err := os.Remove(brands); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		files.Round(t.Context(), now)
	}
	old()
	if n := strings.Count(log.String(), "a list cannot be used; its version before stays"); n != 9 {
		t.Errorf("%d complaints: %s", n, log.String())
	}

	put(t, brands, "gadgetbank gadgetbank.example\n", now.Add(-time.Second*30))
	put(t, services, "gone.example\n-bit.ly\n", now.Add(-time.Second*30))
	log.Reset()
	files.Round(t.Context(), now)
	seen(t, l, []string{"https://gadgetbank-login.test/"}, []string{"https://widgetbank-login.test/"})
	seen(t, s, []string{"https://gone.example/x"}, []string{"https://go.example/x", "https://bit.ly/x"})
	if got := files.Stats(); got.Unusable != 0 || got.Entries != 3 || strings.Count(log.String(), "list in use") != 2 {
		t.Errorf("%+v, %s", got, log.String())
	}
	put(t, brands, "widgetbank widgetbank.example\n", now) // still being written, perhaps
	if err := files.Reload(t.Context()); err != nil {
		t.Error(err)
	}
	seen(t, l, []string{"https://widgetbank-login.test/"}, nil)
}

func TestSignalsWithoutFilesHaveNothingToRead(t *testing.T) {
	if files := abuse.OpenSources(t.Context(), abuse.SourcesConfig{}, lookAlikes(t), abuse.IPLiteral{}); files != nil {
		t.Errorf("%+v", files)
	}
}
