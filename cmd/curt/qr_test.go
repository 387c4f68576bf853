package main

import (
	"bytes"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"curt.example/client"
	"curt/internal/cli"
	"curt/internal/cli/links"
	"curt/internal/qr"
)

func TestQRIsWrittenAsItIsAskedFor(t *testing.T) {
	address, folder := serving(t)
	t.Setenv("CURT_SERVER", address)
	t.Setenv("CURT_API_KEY_FILE", filepath.Join(folder, "admin.key"))
	if code, _, errs := curt(t.Context(), "shorten", "https://example.com/", "--alias=abc"); code != 0 {
		t.Fatal(errs)
	}
	code, svg, errs := curt(t.Context(), "qr", "abc")
	if code != 0 || !strings.HasPrefix(svg, "<svg ") || !strings.HasSuffix(svg, "</svg>\n") {
		t.Errorf("%d %.60q %s", code, svg, errs)
	}
	file := filepath.Join(t.TempDir(), "code.PNG")
	if code, out, errs := curt(t.Context(), "qr", "abc", "-o", file, "--size=300", "--margin=0", "--level=H", "--fg=#003366", "--bg=ffee88"); code != 0 || out != "" {
		t.Errorf("%d %q %s", code, out, errs)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if img, err := png.Decode(bytes.NewReader(text)); err != nil || img.Bounds().Dx() != 300 {
		t.Errorf("%v", err)
	}

	key, err := os.ReadFile(filepath.Join(folder, "admin.key"))
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(address, client.WithKey(strings.TrimSpace(string(key))))
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := new(links.QR).Draw(t.Context(), cli.Terminal{Out: &b}, c, "abc", ""); err != nil {
		t.Fatal(err)
	}
	says, err := c.QRText(t.Context(), "abc", "")
	if err != nil {
		t.Fatal(err)
	}
	if want, err := qr.Terminal(says, qr.M, qr.DefaultMargin); err != nil || b.String() != want {
		t.Errorf("a terminal is shown:\n%s", &b)
	}
}

func TestQRFailsInOneLineAndWritesNothing(t *testing.T) {
	address, folder := serving(t)
	t.Setenv("CURT_SERVER", address)
	t.Setenv("CURT_API_KEY_FILE", filepath.Join(folder, "admin.key"))
	if code, _, errs := curt(t.Context(), "shorten", "https://example.com/", "--alias=abc"); code != 0 {
		t.Fatal(errs)
	}
	file := filepath.Join(t.TempDir(), "code.svg")
	for want, args := range map[string][]string{
		"no such link":     {"none", "-o", file},
		"size: expected":   {"abc", "-o", file, "--size=1"},
		"format: expected": {"abc", "-o", file + ".gif"},
		"contrast":         {"abc", "-o", file, "--fg=dddddd"},
		"no such file":     {"abc", "-o", filepath.Join(file, "x.svg")},
		"neither":          {"a/b", "-o", file},
	} {
		code, out, errs := curt(t.Context(), append([]string{"qr"}, args...)...)
		if code == 0 || out != "" || strings.Count(errs, "\n") != 1 || !strings.Contains(errs, want) {
			t.Errorf("%q: %d %q %q", args, code, out, errs)
		}
	}
	code, _, errs := curt(t.Context(), "qr", "abc", "-o", file, "--format=png")
	if code != cli.ExitUsage || strings.Count(errs, "\n") != 1 || !strings.Contains(errs, "with the extension .svg") {
		t.Errorf("a name and a format that disagree: %d %q", code, errs)
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("a refused picture left a file")
	}
}
