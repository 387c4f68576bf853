package fold_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"curt/internal/clicks"
	"curt/internal/clicks/capture"
	"curt/internal/clicks/capture/capturetest"
	"curt/internal/clicks/clicklog"
	"curt/internal/clicks/clicklog/clicklogtest"
	"curt/internal/clicks/fold"
	"curt/internal/clicks/headers"
	"curt/internal/clicks/rollup"
	"curt/internal/clicks/rollup/rolluptest"
	"curt/internal/clicks/useragent"
	"curt/internal/link"
)

// agents remembers what user agents are taken for, which takes long to find out.
type agents map[string][4]string

func (a agents) of(ua string) [4]string {
	found, ok := a[ua]
	if !ok {
		agent := useragent.NewParser().Parse([]byte(ua)).Agent
		found = [4]string{agent.Device(), agent.Browser(), agent.OS(), fmt.Sprint(agent.Bot())}
		a[ua] = found
	}
	return found
}

// told is the naive model of a click's dimensions: the empty ones are left out.
func told(known agents, c *clicks.Raw) (values [clicks.NumDimensions]string, human bool) {
	who := known.of(string(c.UserAgent))
	values[clicks.Device], values[clicks.Browser], values[clicks.OS] = who[0], who[1], who[2]
	var host [256]byte
	values[clicks.ReferrerHost] = string(headers.ReferrerHost(c.Referrer, host[:]))
	values[clicks.Language] = headers.LanguageName(headers.PrimaryLanguage(c.Language))
	if values[clicks.ReferrerHost] == "" {
		values[clicks.ReferrerHost] = clicks.Direct
	}
	fields, _ := headers.ParseUTM(c.Query)
	for i, field := range fields {
		values[int(clicks.UTMSource)+i] = field
	}
	if place := (capturetest.Atlas{}).Locate(c.Addr); place.City != "" {
		values[clicks.Country], values[clicks.City], values[clicks.Network] = string(place.Country[:]), place.City, place.Network
	}
	switch {
	case c.Flags&clicks.Warned != 0:
		values[clicks.Trigger] = clicks.TriggerWarning
	case c.Flags&clicks.ViaQR != 0:
		values[clicks.Trigger] = clicks.TriggerQR
	default:
		values[clicks.Trigger] = clicks.TriggerLink
	}
	return values, who[3] == "false"
}

// variedClick makes a click of one link in one of two quarters of a day.
func variedClick(r *rand.Rand, at time.Time) *clicks.Raw {
	pick := func(of ...string) []byte { return []byte(of[r.IntN(len(of))]) }
	return &clicks.Raw{
		Time: at.Add(time.Duration(r.IntN(2)*15+r.IntN(15)) * time.Minute).UnixMilli(), Code: []byte("abc"), Outcome: clicks.Redirected,
		Flags: []clicks.Flags{0, 0, clicks.ViaQR, clicks.Warned, clicks.Warned | clicks.ViaQR}[r.IntN(5)],
		Addr:  []netip.Addr{netip.MustParseAddr("203.0.113.9"), netip.MustParseAddr("203.0.113.10"), netip.MustParseAddr("2001:db8::1")}[r.IntN(3)],
		UserAgent: pick("curl/8.5.0", "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0",
			"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Safari/537.36"),
		Referrer: pick("", "https://news.example/a", "https://news.example/b", "https://t.co/x"),
		Language: pick("", "de", "de-AT,de;q=0.9", "en-US"),
		Query:    pick("", "x=y", "utm_source=letter", "utm_source=letter&utm_medium=email&utm_campaign=spring&utm_term=t&utm_content=c", "utm_campaign=spring"),
	}
}

// What is counted under each dimension is what each click tells, for its quarter and for
// its day, before and after the clicks were summed up.
func TestDimensionsAreThoseOfTheClicks(t *testing.T) {
	known := agents{}
	for _, n := range []int{1, 7, fold.FlushThreshold, 5*fold.FlushThreshold + 3} {
		synctest.Test(t, func(t *testing.T) { dimensionsOf(t, known, n) })
	}
}

func dimensionsOf(t *testing.T, known agents, n int) {
	r, at := rand.New(rand.NewPCG(uint64(n), 6)), clicklogtest.SomeDay().Truncate(24*time.Hour)
	dir := t.TempDir()
	ring, log := capture.NewRing(capture.RingConfig{Bytes: 4 << 20, Shards: 2}), clicklogtest.Open(t, clicklog.Config{Dir: dir})
	capturer := capture.New(capture.Config{Ring: ring, Log: log, Keys: capturetest.Keys{}, Geo: capturetest.Atlas{}})
	want := map[rollup.Bucket]*[clicks.NumDimensions]map[string]rollup.Value{}
	for range n {
		c := variedClick(r, at)
		ring.Record(c)
		values, human := told(known, c)
		for _, g := range []rollup.Granularity{rollup.Quarter, rollup.Day} {
			b := rollup.BucketAt(g, time.UnixMilli(c.Time))
			if want[b] == nil {
				want[b] = new([clicks.NumDimensions]map[string]rollup.Value)
			}
			for d, value := range values {
				if value == "" {
					continue
				}
				if want[b][d] == nil {
					want[b][d] = map[string]rollup.Value{}
				}
				v := want[b][d][value]
				v.Value, v.Clicks = value, v.Clicks+1
				if human {
					v.Humans++
				}
				want[b][d][value] = v
			}
		}
	}
	if err := capturer.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	l := begin(t, dir, new(rolluptest.Memory), fold.Config{})
	defer l.end(t)
	synctest.Wait()
	pending := l.fold.Pending(link.Key{Code: "abc"})
	if len(pending) != 1 || len(pending[0].Rows) != len(want) {
		t.Fatalf("of %d clicks: %d pending, want %d rows", n, len(pending), len(want))
	}
	for _, row := range pending[0].Rows {
		for d := range row.Rollup.Dimensions {
			var sorted []rollup.Value
			for _, v := range want[row.Bucket][d] {
				sorted = append(sorted, v)
			}
			slices.SortFunc(sorted, func(a, b rollup.Value) int { return strings.Compare(a.Value, b.Value) })
			got := row.Rollup.Dimensions[d]
			if diff := cmp.Diff(sorted, got); diff != "" && len(sorted)+len(got) > 0 {
				t.Errorf("%s of %d clicks in %+v (-want +got):\n%s", clicks.Dimension(d), n, row.Bucket, diff)
			}
		}
	}
}
