package qr_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"

	"curt/internal/qr"
)

// TestBytesAndTagsStay holds what is drawn, and its tags, to what they were. Who
// changes the bytes raises the version of the drawing, so that the tags change too.
func TestBytesAndTagsStay(t *testing.T) {
	for format, want := range map[qr.Format][2]string{
		qr.SVG: {"0b96aecdddcc4fe8", `"e877272fe586a7a2d750b3e7"`},
		qr.PNG: {"14ad9371031abd72", `"84a8a241d2d0dc4f956a9231"`},
	} {
		o := qr.Defaults()
		o.Format = format
		b, err := qr.NewDrawer().Draw(t.Context(), texts()[0], o)
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(b)
		if got := [2]string{hex.EncodeToString(sum[:8]), o.Tag(texts()[0])}; got != want {
			t.Errorf("%s: %q, want %q", format.MediaType(), got, want)
		}
	}
}

func TestTagsDiffer(t *testing.T) {
	seen := map[string]string{}
	for _, raw := range []string{"format=svg", "format=png", "size=100", "margin=0", "level=L", "fg=000001", "bg=fffffe"} {
		o, err := qr.ParseQuery(raw)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range texts() {
			tag := o.Tag(text)
			if other, ok := seen[tag]; ok {
				t.Errorf("%s and %s have one tag", other, raw+" "+text)
			}
			seen[tag] = raw + " " + text
		}
	}
}

func TestSVGHasNothingActive(t *testing.T) {
	o := qr.Defaults()
	o.Format = qr.SVG
	b, err := qr.NewDrawer().Draw(t.Context(), texts()[0]+`"/><script>alert(1)</script>`, o)
	if err != nil {
		t.Fatal(err)
	}
	allowed := map[string]bool{
		"svg xmlns": true, "svg width": true, "svg height": true, "svg viewBox": true, "svg shape-rendering": true,
		"path fill": true, "path d": true,
	}
	for d := xml.NewDecoder(strings.NewReader(string(b))); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if e, ok := token.(xml.StartElement); ok {
			for _, a := range e.Attr {
				if !allowed[e.Name.Local+" "+a.Name.Local] {
					t.Errorf("%s has %s", e.Name.Local, a.Name.Local)
				}
			}
		}
	}
}

func TestWhoWaitsTooLongIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := qr.NewDrawer()
		release := d.Occupy()
		o := qr.Defaults()
		if _, err := d.Draw(t.Context(), "x", o); !errors.Is(err, qr.ErrBusy) {
			t.Errorf("%v", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := d.Draw(ctx, "x", o); !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
		release()
	})
	d := qr.NewDrawer()
	d.Occupy()()
	if _, err := d.Draw(t.Context(), "x", qr.Defaults()); err != nil {
		t.Error(err)
	}
}
