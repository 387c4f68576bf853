package capture_test

import (
	"bytes"
	"math/rand/v2"
	"net/netip"
	"os"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"curt/internal/clicks"
	"curt/internal/clicks/capture"
	"curt/internal/clicks/capture/capturetest"
	"curt/internal/clicks/clicklog"
	"curt/internal/clicks/clicklog/clicklogtest"
	"curt/internal/clicks/useragent"
)

// throughCapture returns what is read of clicks, in order, and all bytes of the log. The time of the bubble stands still
// while anything is done: neither a day's key nor the search for bots comes too late.
func throughCapture(t *testing.T, d capture.Detail, raws []clicks.Raw) (read []clicklog.Event, disk []byte) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { read, disk = captured(t, d, raws) })
	return read, disk
}

func captured(t *testing.T, d capture.Detail, raws []clicks.Raw) (read []clicklog.Event, disk []byte) {
	t.Helper()
	dir := t.TempDir()
	log, ring := clicklogtest.Open(t, clicklog.Config{Dir: dir}), capture.NewRing(capture.RingConfig{Shards: 1})
	capturer := capture.New(capture.Config{Ring: ring, Log: log, Keys: capturetest.Keys{}, Detail: d, Geo: capturetest.Atlas{}})
	for i := range raws {
		ring.Record(&raws[i])
	}
	if err := capturer.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	read = clicklogtest.Events(t, log)
	for _, name := range clicklogtest.SegmentFiles(t, dir) {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		disk = append(disk, b...)
	}
	return read, disk
}

// secretive has a canary wherever a visitor may carry a secret.
func secretive(o clicks.Outcome) clicks.Raw {
	c := *clicklogtest.UsualClick()
	c.Outcome, c.Code = o, []byte("offer")
	if o == clicks.Orphan {
		c.Code = []byte("canary-code")
	}
	c.Addr = netip.MustParseAddr("203.0.113.9")
	c.UserAgent = []byte("Mozilla/5.0 (X11; Linux x86_64; canary-comment canary-product) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Safari/537.36")
	c.Referrer = []byte("https://canary-user:canary-password@mail.example.org:8443/reset/canary-path?token=canary-token#canary-fragment")
	c.Language = []byte("de-CH;q=0.9,x-canary")
	c.Query = []byte("email=canary%40example.org&utm_source=letter&utm_canary=x&utm_campaign=a%20b&session=canary-session")
	return c
}

// TestNothingIsKeptThatIsNotShown: what no statistics are made of is in no byte of the log.
func TestNothingIsKeptThatIsNotShown(t *testing.T) {
	var raws []clicks.Raw
	for _, o := range []clicks.Outcome{clicks.Redirected, clicks.FellBack, clicks.Refused, clicks.Orphan} {
		raws = append(raws, secretive(o))
	}
	read, disk := throughCapture(t, capture.DetailStatistics, raws)
	if len(read) != len(raws) || !bytes.Contains(disk, []byte("mail.example.org")) {
		t.Fatalf("%d clicks in %d bytes: the test proves nothing", len(read), len(disk))
	}
	if i := bytes.Index(disk, []byte("canary")); i >= 0 {
		t.Errorf("the log holds %q", disk[i:min(len(disk), i+40)])
	}
	if e := read[3]; len(e.Key) != 2 || len(e.Referrer)+len(e.Query)+len(e.Language) > 0 {
		t.Errorf("of a request for no link: %+v", e)
	}
	_, disk = throughCapture(t, capture.DetailFull, raws)
	for _, canary := range []string{"comment", "product", "password", "path", "token", "fragment", "session", "code"} {
		if !bytes.Contains(disk, []byte("canary-"+canary)) {
			t.Errorf("with all details the log has no %s", canary)
		}
	}
}

func TestDetails(t *testing.T) {
	c := secretive(clicks.Redirected)
	for d, want := range map[capture.Detail][4]string{
		capture.DetailStatistics:   {"", "https://mail.example.org", "de", "utm_source=letter&utm_campaign=a+b"},
		capture.DetailReferrerPath: {"", "https://mail.example.org/reset/canary-path", "de", "utm_source=letter&utm_campaign=a+b"},
		capture.DetailFull:         {string(c.UserAgent), string(c.Referrer), string(c.Language), string(c.Query)},
	} {
		read, _ := throughCapture(t, d, []clicks.Raw{c})
		e := read[0]
		if got := [4]string{string(e.UserAgent), string(e.Referrer), string(e.Language), string(e.Query)}; got != want {
			t.Errorf("detail %d: %q, want %q", d, got, want)
		}
		if !e.Agent.Parsed() || e.Agent.Browser() != "Chrome" || e.Agent.OS() != "Linux" || e.Agent.Device() != "desktop" {
			t.Errorf("detail %d: %+v", d, e.Agent)
		}
	}
	for name, want := range map[string]capture.Detail{"": capture.DetailStatistics, "statistics": capture.DetailStatistics, "referrer-path": capture.DetailReferrerPath, "full": capture.DetailFull} {
		if d, err := capture.ParseDetail(name); err != nil || d != want {
			t.Errorf("%q: %v %v", name, d, err)
		}
	}
	if _, err := capture.ParseDetail("some"); err == nil {
		t.Error("a name that is none is one")
	}
}

// TestWhatIsKeptTellsAllThatIsShown has clicks of all kinds, of which each detail shows the
// same.
func TestWhatIsKeptTellsAllThatIsShown(t *testing.T) {
	raws := clicklogtest.OddClicks(rand.New(rand.NewPCG(23, 7)), 3000)
	bots := useragent.NewClassifier()
	shown := func(d capture.Detail) (all []clicks.Click) {
		read, _ := throughCapture(t, d, raws)
		for i := range read {
			if d == capture.DetailFull {
				read[i].Agent, read[i].BotName = useragent.Agent{}, nil // as format 1 has it
			}
			all = append(all, read[i].Click(bots))
		}
		return all
	}
	want := shown(capture.DetailFull)
	for _, d := range []capture.Detail{capture.DetailStatistics, capture.DetailReferrerPath} {
		if diff := cmp.Diff(want, shown(d)); diff != "" {
			t.Errorf("detail %d: -full +kept\n%.3000s", d, diff)
		}
	}
}
