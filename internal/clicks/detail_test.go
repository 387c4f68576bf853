package clicks_test

import (
	"bytes"
	"context"
	"math/rand/v2"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"curt/internal/clicks"
	"curt/internal/clicks/clickstest"
)

// throughCapture returns what is read of clicks, in order, and all bytes of the log.
func throughCapture(t *testing.T, d clicks.Detail, raws []clicks.Raw) (read []clicks.Event, disk []byte) {
	t.Helper()
	dir := t.TempDir()
	log, ring := openLog(t, clicks.LogConfig{Dir: dir}), clicks.NewRing(clicks.RingConfig{Shards: 1})
	capture := clicks.NewCapture(clicks.CaptureConfig{Ring: ring, Log: log, Keys: dayKeys{}, Detail: d, Geo: atlas{}})
	for i := range raws {
		ring.Record(&raws[i])
	}
	if err := capture.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	read = eventsOf(t, log)
	for _, name := range segmentFiles(t, dir) {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		disk = append(disk, b...)
	}
	return read, disk
}

// eventsOf returns all events of a log, which outlive their blocks.
func eventsOf(t *testing.T, log *clicks.Log) (all []clicks.Event) {
	t.Helper()
	r := log.Read(clicks.Position{})
	defer r.Close()
	for {
		b, err := r.Next()
		if err != nil {
			return all
		}
		err = b.Events(func(e *clicks.Event) error {
			mine := *e
			for _, f := range []*[]byte{&mine.Key, &mine.BotName, &mine.UserAgent, &mine.Referrer, &mine.Language, &mine.Query, &mine.City, &mine.Network} {
				*f = bytes.Clone(*f)
			}
			all = append(all, mine)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// secretive has a canary wherever a visitor may carry a secret.
func secretive(o clicks.Outcome) clicks.Raw {
	c := *usualClick()
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
	read, disk := throughCapture(t, clicks.DetailStatistics, raws)
	if len(read) != len(raws) || !bytes.Contains(disk, []byte("mail.example.org")) {
		t.Fatalf("%d clicks in %d bytes: the test proves nothing", len(read), len(disk))
	}
	if i := bytes.Index(disk, []byte("canary")); i >= 0 {
		t.Errorf("the log holds %q", disk[i:min(len(disk), i+40)])
	}
	if e := read[3]; len(e.Key) != 2 || len(e.Referrer)+len(e.Query)+len(e.Language) > 0 {
		t.Errorf("of a request for no link: %+v", e)
	}
	_, disk = throughCapture(t, clicks.DetailFull, raws)
	for _, canary := range []string{"comment", "product", "password", "path", "token", "fragment", "session", "code"} {
		if !bytes.Contains(disk, []byte("canary-"+canary)) {
			t.Errorf("with all details the log has no %s", canary)
		}
	}
}

func TestDetails(t *testing.T) {
	c := secretive(clicks.Redirected)
	for d, want := range map[clicks.Detail][4]string{
		clicks.DetailStatistics:   {"", "https://mail.example.org", "de", "utm_source=letter&utm_campaign=a+b"},
		clicks.DetailReferrerPath: {"", "https://mail.example.org/reset/canary-path", "de", "utm_source=letter&utm_campaign=a+b"},
		clicks.DetailFull:         {string(c.UserAgent), string(c.Referrer), string(c.Language), string(c.Query)},
	} {
		read, _ := throughCapture(t, d, []clicks.Raw{c})
		e := read[0]
		if got := [4]string{string(e.UserAgent), string(e.Referrer), string(e.Language), string(e.Query)}; got != want {
			t.Errorf("detail %d: %q, want %q", d, got, want)
		}
		if !e.Agent.Known() || e.Agent.Browser() != "Chrome" || e.Agent.OS() != "Linux" || e.Agent.Device() != "desktop" {
			t.Errorf("detail %d: %+v", d, e.Agent)
		}
	}
	for name, want := range map[string]clicks.Detail{"": clicks.DetailStatistics, "statistics": clicks.DetailStatistics, "referrer-path": clicks.DetailReferrerPath, "full": clicks.DetailFull} {
		if d, err := clicks.ParseDetail(name); err != nil || d != want {
			t.Errorf("%q: %v %v", name, d, err)
		}
	}
	if _, err := clicks.ParseDetail("some"); err == nil {
		t.Error("a name that is none is one")
	}
}

// TestWhatIsKeptTellsAllThatIsShown has clicks of all kinds, of which each detail shows the
// same.
func TestWhatIsKeptTellsAllThatIsShown(t *testing.T) {
	raws := oddClicks(rand.New(rand.NewPCG(23, 7)), 3000)
	bots := clicks.NewBotList()
	shown := func(d clicks.Detail) (all []clicks.Click) {
		read, _ := throughCapture(t, d, raws)
		for i := range read {
			if d == clicks.DetailFull {
				read[i].Agent, read[i].BotName = clicks.Agent{}, nil // as format 1 has it
			}
			all = append(all, bots.Click(&read[i]))
		}
		return all
	}
	want := shown(clicks.DetailFull)
	for _, d := range []clicks.Detail{clicks.DetailStatistics, clicks.DetailReferrerPath} {
		if diff := cmp.Diff(want, shown(d)); diff != "" {
			t.Errorf("detail %d: -full +kept\n%.3000s", d, diff)
		}
	}
}

// oddClicks are made of what browsers, programs and strangers send.
func oddClicks(random *rand.Rand, n int) (raws []clicks.Raw) {
	pick := func(list ...string) []byte { return []byte(list[random.IntN(len(list))]) }
	for i := range n {
		c := *usualClick()
		c.Time += int64(i)
		c.Outcome = clicks.Outcome(1 + random.IntN(3))
		c.Flags = clicks.Flags(random.IntN(16))
		c.UserAgent = pick("", "curl/8.5.0", "Googlebot/2.1 (+http://www.google.com/bot.html)", "Mozilla/5.0 (compatible; thing)", "a\xffb/1",
			"Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0", "Mozilla/5.0 (Linux; Android 14; Pixel 8) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/120.0.0.0 Mobile Safari/537.36",
			"facebookexternalhit/1.1", "Mozilla/5.0 (iPad; CPU OS 16_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/16.5 Mobile/15E148 Safari/604.1", strings.Repeat("long ", 60))
		c.Referrer = pick("", "https://www.News.example/a?b#c", "http://t.co", "HTTPS://X.example:80/", "android-app://com.example.app/", "ftp://x/", "https://", "://", "https://user@[2001:db8::1]:8/x",
			"https://www.www.example/", "https://a.example.", "https://a..", "https://a:b:80/", "https://www.", "https://www.www.", "https://a..:1:2", "http://b\\c", "https://\xff/")
		c.Language = pick("", "de-CH,de;q=0.9", "EN", "gsw-CH", "x", "*", "zz-\xff", "abcd")
		c.Query = pick("", "qr=1", "utm_source=x", "utm_source=%28a%29&utm_source=b", "utm_term=+a+", "utm_content=%C2%85%E2%80%AEx%26y%3D", "utm_campaign=%zz", "utm_medium="+strings.Repeat("a%20", 120),
			"UTM_SOURCE=x", "x=utm_source=y", "utm_source="+strings.Repeat("%C3%A4", 80), "utm_source=%E2%80%8F&utm_medium=ok")
		raws = append(raws, c)
	}
	return raws
}

// TestTheFirstFormatIsRead: clicks of segments that a release before wrote are counted and
// shown as it did.
func TestTheFirstFormatIsRead(t *testing.T) {
	raws := oddClicks(rand.New(rand.NewPCG(1, 2)), 200)
	log := openLog(t, clicks.LogConfig{Dir: t.TempDir()})
	if _, err := log.Append(clicks.SealFirst(0, raws), time.Now()); err != nil {
		t.Fatal(err)
	}
	if _, err := log.Append(clicks.SealMany(200, raws), time.Now()); err != nil {
		t.Fatal(err)
	}
	read, bots := eventsOf(t, log), clicks.NewBotList()
	if len(read) != 400 {
		t.Fatalf("%d of 400 clicks are read", len(read))
	}
	for i := range raws {
		if read[i].Agent.Known() || !bytes.Equal(read[i].UserAgent, raws[i].UserAgent) {
			t.Fatalf("click %d of format 1: %+v", i, read[i])
		}
		was, is := bots.Click(&read[i]), bots.Click(&read[200+i])
		was.Visitor, is.Visitor = 0, 0
		if diff := cmp.Diff(was, is); diff != "" {
			t.Errorf("click %d: -format 1 +format 2\n%s", i, diff)
		}
	}
	if err := log.Sync(); err != nil {
		t.Fatal(err)
	}
	if f := foldAll(t, log, 400); f.Events != 400 || f.Damages != 0 {
		t.Errorf("counted: %+v", f)
	}
}

// TestNumbersOfNamesStay: they are in every log. Lists grow at their ends.
func TestNumbersOfNamesStay(t *testing.T) {
	device, browser, system, known := clicks.Names()
	if got := [3]int{len(device), len(browser), len(system)}; got != known {
		t.Errorf("lists of %v names, of which %v are read", got, known)
	}
	for _, c := range []struct {
		list []string
		want string
	}{
		{device, "(other) desktop mobile tablet bot"},
		{browser, "(other) Chrome Safari Firefox Edge Opera Opera Mini Opera Touch Vivaldi Samsung Browser Internet Explorer Facebook App Instagram App TikTok App " +
			"Huawei Browser Miui Browser Android browser UCBrowser YaBrowser DuckDuckGo Brave Whale QQBrowser MicroMessenger Silk Ecosia LinkedInApp Snapchat " +
			"Pinterest GSA Line Puffin Epiphany SeaMonkey PaleMoon BlackBerry NetFront"},
		{system, "(other) Windows Android iOS macOS Linux ChromeOS FreeBSD Harmony Windows Phone BlackBerry"},
	} {
		if got := strings.Join(c.list, " "); !strings.HasPrefix(got, c.want) {
			t.Errorf("the numbers of names changed:\n%s\n%s", got, c.want)
		}
	}
	for _, reason := range []clicks.BotReason{"", clicks.BotNamed, clicks.BotListed, clicks.BotNoBrowser} {
		a := clicks.NewAgent("tablet", "Whale", "Harmony", reason)
		if a.Device() != "tablet" || a.Browser() != "Whale" || a.OS() != "Harmony" || a.Reason() != reason || a.Bot() != (reason != "") || !a.Known() {
			t.Errorf("%q: %+v", reason, a)
		}
	}
	if a := clicks.NewAgent("glasses", "", "", "x"); a.Device() != clicks.Other || !a.Bot() {
		t.Errorf("of a release to come: %+v", a)
	}
}

// TestAFloodOfNewAgentsIsNotLookedUp: who has no time for the bot list goes by what user agents
// say themselves, and looks up what comes again.
func TestAFloodOfNewAgentsIsNotLookedUp(t *testing.T) {
	parse, begin, unlisted := clicks.Hurry(1)
	listed := "Mozilla/5.0 (X11; Linux x86_64) heritrix/3.4 Gecko"
	parse("Mozilla/5.0 (X11; Linux x86_64) Gecko takes the time there was")
	if a := parse(listed); a.Bot() || unlisted() != 1 {
		t.Errorf("%+v, %d not looked up", a, unlisted())
	}
	if a := parse("Mozilla/5.0 (compatible; examplebot/2.0)"); !a.Bot() || unlisted() != 1 {
		t.Errorf("one that says so: %+v, %d not looked up", a, unlisted())
	}
	begin()
	if a := parse(listed); !a.Bot() || unlisted() != 1 {
		t.Errorf("later: %+v, %d not looked up", a, unlisted())
	}
}

// foldAll counts n clicks of a log.
func foldAll(t *testing.T, log *clicks.Log, n uint64) clicks.FoldStats {
	t.Helper()
	f := clicks.NewFold(clicks.FoldConfig{Log: log, Store: new(clickstest.Memory)})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- f.Run(ctx) }()
	for end := time.Now().Add(time.Minute); f.Stats().Events < n && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	return f.Stats()
}
