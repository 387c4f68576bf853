package qr_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"curt/internal/qr"
)

func TestQueriesThatAreTaken(t *testing.T) {
	for raw, change := range map[string]func(*qr.Options){
		"":                           func(*qr.Options) {},
		"format=svg":                 func(o *qr.Options) { o.Format = qr.SVG },
		"format=png&size=64":         func(o *qr.Options) { o.Format, o.Size = qr.PNG, 64 },
		"size=2048&margin=0":         func(o *qr.Options) { o.Size, o.Margin = 2048, 0 },
		"margin=16&level=L":          func(o *qr.Options) { o.Margin, o.Level = 16, qr.L },
		"level=H&fg=1A2b3c":          func(o *qr.Options) { o.Level, o.Foreground = qr.H, 0x1a2b3c },
		"level=Q&fg=cbcbcb":          func(o *qr.Options) { o.Level, o.Foreground = qr.Q, 0xcbcbcb },
		"bg=aaaaaa":                  func(o *qr.Options) { o.Background = 0xaaaaaa },
		"%66ormat=%70ng&bg=ff%66fff": func(o *qr.Options) { o.Format = qr.PNG },
	} {
		want := qr.Defaults()
		change(&want)
		if got, err := qr.ParseQuery(raw); err != nil || got != want {
			t.Errorf("%q: %+v, %v, want %+v", raw, got, err, want)
		}
	}
}

func TestQueriesThatAreRefused(t *testing.T) {
	for raw, field := range map[string]string{
		"x=1": "", "format=svg&utm_source=x": "", "qr=1": "", "%zz": "", "a;b": "", "format=png&%00=1": "",
		"format": "format", "format=": "format", "format=gif": "format", "format=PNG": "format", "format=svg&format=svg": "format",
		"size=63": "size", "size=2049": "size", "size=0x100": "size", "size=+100": "size", "size=0100": "size", "size=1e2": "size",
		"size=99999999999999999999": "size", "size=-100": "size", "size=%D9%A1%D9%A2%D9%A8": "size", "size=100%00": "size",
		"margin=-1": "margin", "margin=17": "margin", "margin=1.5": "margin", "margin=-0": "margin",
		"level=l": "level", "level=X": "level", "level=LM": "level",
		"fg=fff": "fg", "fg=%23000000": "fg", "fg=00000g": "fg", "fg=-00001": "fg", "fg=0000000": "fg", "fg=red": "fg",
		"bg=\"/><script>": "bg", "bg=0x0000": "bg", "bg=0_0000": "bg",
		"fg=ffffff": "fg", "fg=cccccc": "fg", "bg=000000": "fg", "fg=ffffff&bg=000000": "fg", "fg=ff0000&bg=0000ff": "fg",
	} {
		o, err := qr.ParseQuery(raw)
		bad, ok := qr.AsError(err)
		if !ok || bad.Field != field || bad.Reason == "" || o != (qr.Options{}) {
			t.Errorf("%q: %+v, %v, want an error of %q", raw, o, err, field)
		}
	}
}

func TestWhatDoesNotFitIsRefused(t *testing.T) {
	o := qr.Defaults()
	o.Format, o.Size, o.Margin, o.Level = qr.SVG, qr.MinSize, qr.MaxMargin, qr.H
	for _, f := range []qr.Format{qr.SVG, qr.PNG} {
		o.Format = f
		_, err := qr.NewDrawer().Draw(t.Context(), texts()[3], o)
		if bad, ok := qr.AsError(err); !ok || bad.Field != "size" {
			t.Errorf("%v", err)
		}
	}
	if _, err := qr.NewDrawer().Draw(t.Context(), strings.Repeat("x", 3000), o); !errors.Is(err, qr.ErrTooLong) {
		t.Errorf("%v", err)
	}
}

func TestPreferred(t *testing.T) {
	for accept, want := range map[string]qr.Format{
		"": qr.SVG, "*/*": qr.SVG, "image/*": qr.SVG, "text/html": qr.SVG, "image/png": qr.PNG, "IMAGE/PNG;q=0.1": qr.PNG,
		"image/svg+xml, image/png": qr.SVG, "image/svg+xml;q=0.5, image/png": qr.PNG, "*/*, image/svg+xml;q=0": qr.PNG,
		"image/*, image/png;q=0": qr.SVG, "image/png;q=x": qr.SVG, "image/png;q=9": qr.SVG, "image/png; q=NaN": qr.SVG,
		"image/avif,image/webp,image/apng,image/svg+xml,image/*,*/*;q=0.8": qr.SVG,
	} {
		if got := qr.Preferred([]string{accept}); got != want {
			t.Errorf("%q: %v", accept, got)
		}
	}
}

func TestMatches(t *testing.T) {
	for _, tt := range []struct {
		lines []string
		want  bool
	}{
		{nil, false},
		{[]string{""}, false},
		{[]string{`"a"`}, true},
		{[]string{`W/"a"`}, true},
		{[]string{`"b", "a"`}, true},
		{[]string{`"b"`, `"a"`}, true},
		{[]string{"*"}, true},
		{[]string{"a"}, false},
		{[]string{`"A"`}, false},
	} {
		if got := qr.Matches(tt.lines, `"a"`); got != tt.want {
			t.Errorf("%q: %v", tt.lines, got)
		}
	}
}

// FuzzQuery holds every query to its promise: refused in words, or drawn within its
// bounds, and the same each time.
func FuzzQuery(f *testing.F) {
	for _, raw := range []string{"", "format=png&size=100&margin=0&level=H&fg=1a2b3c&bg=ffee88", "format=svg", "size=64&margin=16", "fg=%23fff", "a;b", "size=1&size=2"} {
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		o, err := qr.ParseQuery(raw)
		if err != nil {
			if bad, ok := qr.AsError(err); !ok || bad.Reason == "" || len(bad.Error()) > 200 {
				t.Fatalf("%q: %v", raw, err)
			}
			return
		}
		if o.Format == qr.Any {
			o.Format = qr.SVG
		}
		d, text := qr.NewDrawer(), texts()[0]
		first, err := d.Draw(t.Context(), text, o)
		if err != nil {
			if bad, ok := qr.AsError(err); !ok || bad.Field != "size" {
				t.Fatalf("%q: %v", raw, err)
			}
			return
		}
		second, err := d.Draw(t.Context(), text, o)
		if err != nil || !bytes.Equal(first, second) || len(first) > 1<<20 {
			t.Fatalf("%q: %d bytes, then %d (%v)", raw, len(first), len(second), err)
		}
	})
}
