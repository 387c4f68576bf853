package clicks_test

import (
	"bytes"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"curt/internal/clicks"
)

// turning are marks that turn the direction of writing.
const turning = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"

func TestPlain(t *testing.T) {
	for sent, want := range map[string]string{
		"a\x00b\x1b[31m\x7f": "ab[31m", "a\u0080b\u009b31m\u009f": "ab31m", "a" + turning + "b": "ab", "a\u2028b\u2029": "ab",
		"a\xff\xc2\xe2\x80b": "ab", "\xed\xa0\x80x": "x", "Köln ½ 😀 \u200d": "Köln ½ 😀 \u200d", "(other)": "(other)", "": "",
	} {
		if got := clicks.Plain(sent); got != want {
			t.Errorf("Plain(%q) = %q, want %q", sent, got, want)
		}
	}
}

// TestNothingUnseenIsStored: however much is kept of headers, no byte of the log, and nothing
// that is read of it, has what turns a terminal or a page around.
func TestNothingUnseenIsStored(t *testing.T) {
	nasty := "x\x1b\u0085\u009b\u202e\u2066\u200f\xff\xc2y"
	c := *usualClick()
	c.UserAgent = []byte("bad" + nasty + "bot/1.0 (+http://bot.example/)")
	var escaped strings.Builder
	for _, b := range []byte(nasty) {
		escaped.WriteString("%" + string("0123456789ABCDEF"[b>>4]) + string("0123456789abcdef"[b&15]))
	}
	c.Query = []byte("keep=%E2%80%AE&utm_source=" + nasty + "&utm_campaign=" + escaped.String() + "&utm_term=fine%20%C3%A4&keep2=1")
	for _, d := range []clicks.Detail{clicks.DetailStatistics, clicks.DetailReferrerPath, clicks.DetailFull} {
		read, disk := throughCapture(t, d, []clicks.Raw{c})
		for _, part := range []string{nasty, "\u202e", "\u0085", escaped.String()} {
			if bytes.Contains(disk, []byte(part)) {
				t.Errorf("detail %d: the log has %q", d, part)
			}
		}
		seen := clicks.NewBotList().Click(&read[0])
		if want := [5]string{"xy", "", "xy", "fine ä", ""}; seen.UTM != want {
			t.Errorf("detail %d: UTM fields %q, want %q", d, seen.UTM, want)
		}
		for _, text := range append(seen.UTM[:], seen.BotName, string(read[0].UserAgent)) {
			if !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) }) {
				t.Errorf("detail %d: %q", d, text)
			}
		}
		if d == clicks.DetailFull && (!bytes.HasPrefix(read[0].Query, []byte("keep=%E2%80%AE&utm_source=xy&")) || !bytes.HasSuffix(read[0].Query, []byte("&utm_term=fine%20%C3%A4&keep2=1"))) {
			t.Errorf("the rest of the query is %q", read[0].Query)
		}
	}
}

// TestOldSegmentsShowNothingUnseen: a release of before kept headers as they were sent.
func TestOldSegmentsShowNothingUnseen(t *testing.T) {
	c := *usualClick()
	c.UserAgent, c.Query = []byte("bad\u202e\u0085bot/1.0 (+http://bot.example/)"), []byte("utm_source=a%C2%85%E2%80%AEb&utm_term=\x80\u2067x")
	log := openLog(t, clicks.LogConfig{Dir: t.TempDir()})
	if _, err := log.Append(clicks.SealFirst(0, []clicks.Raw{c}), time.Now()); err != nil {
		t.Fatal(err)
	}
	read := eventsOf(t, log)
	seen := clicks.NewBotList().Click(&read[0])
	if seen.UTM != [5]string{"ab", 3: "x"} || seen.BotName != clicks.Plain(seen.BotName) {
		t.Errorf("%q, bot %q", seen.UTM, seen.BotName)
	}
}
