package capture_test

import (
	"bytes"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"curt/internal/clicks"
	"curt/internal/clicks/capture"
	"curt/internal/clicks/clicklog"
	"curt/internal/clicks/clicklog/clicklogtest"
	"curt/internal/clicks/useragent"
)

// TestNothingUnseenIsStored: however much is kept of headers, no byte of the log, and nothing
// that is read of it, has what turns a terminal or a page around.
func TestNothingUnseenIsStored(t *testing.T) {
	nasty := "x\x1b\u0085\u009b\u202e\u2066\u200f\xff\xc2y"
	c := *clicklogtest.UsualClick()
	c.UserAgent = []byte("bad" + nasty + "bot/1.0 (+http://bot.example/)")
	var escaped strings.Builder
	for _, b := range []byte(nasty) {
		escaped.WriteString("%" + string("0123456789ABCDEF"[b>>4]) + string("0123456789abcdef"[b&15]))
	}
	c.Query = []byte("keep=%E2%80%AE&utm_source=" + nasty + "&utm_campaign=" + escaped.String() + "&utm_term=fine%20%C3%A4&keep2=1")
	for _, d := range []capture.Detail{capture.DetailStatistics, capture.DetailReferrerPath, capture.DetailFull} {
		read, disk := throughCapture(t, d, []clicks.Raw{c})
		for _, part := range []string{nasty, "\u202e", "\u0085", escaped.String()} {
			if bytes.Contains(disk, []byte(part)) {
				t.Errorf("detail %d: the log has %q", d, part)
			}
		}
		seen := read[0].Click(useragent.NewClassifier())
		if want := [5]string{"xy", "", "xy", "fine ä", ""}; seen.UTM != want {
			t.Errorf("detail %d: UTM fields %q, want %q", d, seen.UTM, want)
		}
		for _, text := range append(seen.UTM[:], seen.BotName, string(read[0].UserAgent)) {
			if !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) }) {
				t.Errorf("detail %d: %q", d, text)
			}
		}
		if d == capture.DetailFull && (!bytes.HasPrefix(read[0].Query, []byte("keep=%E2%80%AE&utm_source=xy&")) || !bytes.HasSuffix(read[0].Query, []byte("&utm_term=fine%20%C3%A4&keep2=1"))) {
			t.Errorf("the rest of the query is %q", read[0].Query)
		}
	}
}

// TestOldSegmentsShowNothingUnseen: a release of before kept headers as they were sent.
func TestOldSegmentsShowNothingUnseen(t *testing.T) {
	c := *clicklogtest.UsualClick()
	c.UserAgent, c.Query = []byte("bad\u202e\u0085bot/1.0 (+http://bot.example/)"), []byte("utm_source=a%C2%85%E2%80%AEb&utm_term=\x80\u2067x")
	log := clicklogtest.Open(t, clicklog.Config{Dir: t.TempDir()})
	if _, err := log.Append(clicklogtest.SealFirst(0, []clicks.Raw{c}), time.Now()); err != nil {
		t.Fatal(err)
	}
	read := clicklogtest.Events(t, log)
	seen := read[0].Click(useragent.NewClassifier())
	if seen.UTM != [5]string{"ab", 3: "x"} || seen.BotName != clicks.Plain(seen.BotName) {
		t.Errorf("%q, bot %q", seen.UTM, seen.BotName)
	}
}
