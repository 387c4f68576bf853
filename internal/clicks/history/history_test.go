package history_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"curt/internal/clicks"
	"curt/internal/clicks/clicklog"
	"curt/internal/clicks/clicklog/clicklogtest"
	"curt/internal/clicks/history"
	"curt/internal/link"
	"curt/internal/testkit"
)

// past is a click log with a memory of what was put into it. A click's visitor is
// its number.
type past struct {
	*history.History

	t      *testing.T
	log    *clicklog.Log
	dir    string
	random *rand.Rand
	all    []clicks.Raw

	damaged bool // a page said so
}

func newPast(t *testing.T) *past {
	t.Helper()
	p := &past{t: t, dir: t.TempDir(), random: rand.New(rand.NewPCG(5, 8))}
	p.open()
	return p
}

// open opens the log anew, as after a restart.
func (p *past) open() {
	p.t.Helper()
	if p.log != nil {
		if err := p.log.Close(); err != nil {
			p.t.Fatal(err)
		}
	}
	p.log = clicklogtest.Open(p.t, clicklog.Config{Dir: p.dir, SegmentBytes: 512 << 10})
	p.History = history.New(history.Config{Log: p.log, Groups: groupsOf})
}

// groupsOf puts every link whose name has a 7 into one group, and "hot" into another.
func groupsOf(_ context.Context, keys []link.Key) ([]string, error) {
	names := make([]string, len(keys))
	for i, k := range keys {
		switch {
		case k.Code == "hot":
			names[i] = "warm"
		case strings.Contains(string(k.Code), "7"):
			names[i] = "seven"
		}
	}
	return names, nil
}

// add appends n clicks: every second one on "hot", every 500th on "rare", some
// orphans named like it, the rest on any of 300 links. Times go to and fro a little.
func (p *past) add(n int) {
	p.t.Helper()
	for n > 0 {
		raws := make([]clicks.Raw, min(n, 1+p.random.IntN(200)))
		n -= len(raws)
		for i := range raws {
			number := len(p.all) + i
			code := fmt.Sprint("link", p.random.IntN(300))
			switch {
			case number%500 == 7:
				code = "rare"
			case number%2 == 0:
				code = "hot"
			}
			raws[i] = clicks.Raw{
				Time: clicklogtest.SomeDay().UnixMilli() + int64(number)*100 - p.random.Int64N(2000), Code: []byte(code), Outcome: clicks.Redirected,
				UserAgent: []byte("Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"),
			}
			if number%97 == 0 {
				raws[i].Outcome = clicks.Orphan
			}
		}
		if _, err := p.log.Append(clicklogtest.SealMany(uint64(len(p.all)), raws), clicklogtest.SomeDay().Add(time.Duration(len(p.all))*time.Millisecond)); err != nil {
			p.t.Fatal(err)
		}
		p.all = append(p.all, raws...)
	}
}

// want returns the numbers of the clicks of a link or group, newest first.
func (p *past) want(q history.Query) (numbers []uint64) {
	for i, c := range slices.Backward(p.all) {
		at := time.UnixMilli(c.Time)
		mine := link.Key{Code: link.Code(c.Code)}
		if clicks.IsGroup(q.Key) {
			names, _ := groupsOf(p.t.Context(), []link.Key{mine})
			mine = clicks.GroupKey(names[0])
		}
		if q.Filter != nil && !q.Filter(&clicks.Click{Visitor: uint64(i) + 1}) {
			continue
		}
		if c.Outcome != clicks.Orphan && mine == q.Key && (q.From.IsZero() || !at.Before(q.From)) && (q.To.IsZero() || at.Before(q.To)) {
			numbers = append(numbers, uint64(i)+1)
		}
	}
	return numbers
}

// walk returns the numbers that the pages of a walk have; between is called after
// each page.
func (p *past) walk(q history.Query, between func()) (numbers []uint64) {
	p.t.Helper()
	for pages := 0; ; pages++ {
		page, err := p.Page(p.t.Context(), q)
		if err != nil || len(page.Clicks) > q.Limit || pages > 10_000 {
			p.t.Fatalf("page %d: %d clicks, %v", pages, len(page.Clicks), err)
		}
		p.damaged = p.damaged || page.Damaged
		for _, c := range page.Clicks {
			numbers = append(numbers, c.Visitor)
		}
		if between != nil {
			between()
		}
		if !page.More {
			return numbers
		}
		q.Before = page.Next
	}
}

func about(code string, limit int) history.Query {
	return history.Query{Key: link.Key{Code: link.Code(code)}, Limit: limit}
}

// check compares walks over links of all kinds with the memory.
func (p *past) check(what string) {
	p.t.Helper()
	third := history.Query{
		Key: link.Key{Code: "hot"}, Limit: 1000,
		From: time.UnixMilli(p.all[len(p.all)/3].Time), To: time.UnixMilli(p.all[2*len(p.all)/3].Time),
	}
	of := func(group string, limit int) history.Query {
		return history.Query{Key: clicks.GroupKey(group), Limit: limit}
	}
	few := about("hot", 7)
	few.Filter = func(c *clicks.Click) bool { return c.Visitor%11 == 0 }
	for _, q := range []history.Query{
		about("hot", 1000), about("hot", 997), about("rare", 3), about("link7", 10), about("nothing", 5), third,
		few, of("seven", 101), of("warm", 1000), of("none", 5),
	} {
		if diff := cmp.Diff(p.want(q), p.walk(q, nil)); diff != "" {
			p.t.Errorf("%s: clicks of %s, %d each (-want +got):\n%.600s", what, q.Key, q.Limit, diff)
		}
	}
	if p.damaged {
		p.t.Errorf("%s: a page says that the log is damaged", what)
	}
}

func (p *past) files(suffix string) []string {
	p.t.Helper()
	found, err := filepath.Glob(filepath.Join(p.dir, "*"+suffix))
	if err != nil {
		p.t.Fatal(err)
	}
	return found
}

func TestHistoryShowsEachClickOnceNewestFirst(t *testing.T) {
	testkit.Unraced(t)
	p := newPast(t)
	p.add(300)
	p.check("in the segment that is written to")
	p.add(20_000)
	p.check("in full segments without a file")
	p.Tick(t.Context())
	segments, indexes := len(p.files(".clicks")), len(p.files(".index"))
	if segments < 4 || indexes != segments-1 {
		t.Fatalf("%d segments have %d indexes", segments, indexes)
	}
	p.check("with indexes")
	p.open()
	p.check("after a restart")
	p.add(1000)
	p.Tick(t.Context())
	p.check("a restart later")
	if s := p.Stats(); s.Errors+s.Damages != 0 || s.Rebuilt != 1 { // the last segment of the life before
		t.Errorf("%+v", s)
	}
}

func TestClicksThatComeDuringAWalkDoNotDisturbIt(t *testing.T) {
	p := newPast(t)
	p.add(5000)
	q := about("hot", 100)
	want := p.want(q)
	if diff := cmp.Diff(want, p.walk(q, func() { p.add(500); p.Tick(t.Context()) })); diff != "" {
		t.Errorf("(-want +got):\n%.600s", diff)
	}
}

func TestIndexesAreMadeAgain(t *testing.T) {
	testkit.Unraced(t)
	p := newPast(t)
	p.add(15_000)
	p.Tick(t.Context())
	random := rand.New(rand.NewPCG(3, 4))
	for name, spoil := range map[string]func(b []byte) []byte{
		"cut":         func(b []byte) []byte { return b[:random.IntN(len(b))] },
		"empty":       func([]byte) []byte { return nil },
		"noise":       func(b []byte) []byte { return []byte(strings.Repeat("noise", len(b)/5)) },
		"longer":      func(b []byte) []byte { return append(b, make([]byte, 4096)...) },
		"one bit":     func(b []byte) []byte { b[random.IntN(len(b))] ^= 1 << random.IntN(8); return b },
		"a bit early": func(b []byte) []byte { b[random.IntN(64)] ^= 1 << random.IntN(8); return b },
	} {
		for _, file := range p.files(".index") {
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, spoil(b), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		p.check(name)
	}
	swapped := p.files(".index")
	b, err := os.ReadFile(swapped[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(swapped[1], b, 0o600); err != nil {
		t.Fatal(err)
	}
	p.check("of another segment")
	if s := p.Stats(); s.Rebuilt < 5 || s.Damages != 0 {
		t.Errorf("%+v", s)
	}
}

func TestADamagedSegmentHidesOnlyItself(t *testing.T) {
	testkit.Unraced(t)
	for _, indexed := range []bool{true, false} {
		p := newPast(t)
		p.add(15_000)
		if indexed {
			p.Tick(t.Context())
		}
		file := p.files(".clicks")[1]
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 100 {
			b[len(b)/2+i] ^= 0x55
		}
		if err := os.WriteFile(file, b, 0o600); err != nil {
			t.Fatal(err)
		}
		if !indexed {
			p.open()
		}
		want, got := p.want(about("hot", 1000)), p.walk(about("hot", 1000), nil)
		lost := len(want) - len(got)
		if lost <= 0 || lost > 200 || !slices.IsSortedFunc(got, func(a, b uint64) int { return int(b) - int(a) }) {
			t.Errorf("indexed %v: %d of %d clicks", indexed, len(got), len(want))
		}
		for _, n := range got {
			if !slices.Contains(want, n) {
				t.Fatalf("click %d was never there", n)
			}
		}
		if p.Stats().Damages == 0 || !p.damaged {
			t.Errorf("indexed %v: the damage was counted %d times, told %v", indexed, p.Stats().Damages, p.damaged)
		}
		for _, q := range []history.Query{
			{Key: link.Key{Code: "hot"}, Limit: 1000, To: clicklogtest.SomeDay().Add(-time.Hour)},
			{Key: link.Key{Code: "hot"}, Limit: 1000, From: clicklogtest.SomeDay().Add(time.Hour)},
		} {
			p.damaged = false
			if p.walk(q, nil); p.damaged {
				t.Errorf("indexed %v: a damage of another time is told", indexed)
			}
		}
	}
}

func TestSegmentsThatGoDuringAWalkEndIt(t *testing.T) {
	p := newPast(t)
	p.add(15_000)
	p.Tick(t.Context())
	if err := p.log.Sync(); err != nil {
		t.Fatal(err)
	}
	q, pages := about("hot", 1000), 0
	got := p.walk(q, func() {
		if pages++; pages == 2 {
			p.log.Commit(p.log.End())
			p.log.Trim(t.Context(), time.Now().AddDate(10, 0, 0)) // everything but the newest
		}
	})
	want := p.want(q)
	if len(got) < 2000 || len(got) >= len(want) || !slices.Equal(want[:len(got)], got) {
		t.Errorf("%d of %d clicks, or others", len(got), len(want))
	}
	if left := p.files(".index"); len(left) > len(p.files(".clicks")) {
		t.Errorf("indexes outlive their segments: %v", left)
	}
	stray := filepath.Join(p.dir, "0000000000000001.index.tmp")
	if err := os.WriteFile(stray, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	p.Tick(t.Context())
	if _, err := os.Stat(stray); err == nil {
		t.Error("a file of no segment stays")
	}
}

func TestAFolderThatTakesNoIndexIsStillRead(t *testing.T) {
	testkit.Unraced(t)
	p := newPast(t)
	p.add(8000)
	p.Follow(t.Context())
	for _, s := range p.files(".clicks") { // a folder where the index should be
		if err := os.Mkdir(strings.TrimSuffix(s, ".clicks")+".index", 0o700); err != nil {
			t.Fatal(err)
		}
	}
	p.Tick(t.Context())
	p.check("no index can be written")
	p.open()
	p.check("nor after a restart")
	if p.Stats().Errors == 0 {
		t.Error("that was not counted")
	}
}

func FuzzIndex(f *testing.F) {
	f.Add([]byte("CURTIDX1"))
	f.Add(make([]byte, 5000))
	f.Fuzz(func(t *testing.T, index []byte) {
		p := newPast(t)
		p.add(3000)
		p.open()
		file := strings.TrimSuffix(p.files(".clicks")[0], ".clicks") + ".index"
		if err := os.WriteFile(file, index, 0o600); err != nil {
			t.Fatal(err)
		}
		if got := p.walk(about("rare", 10), nil); len(got) != len(p.want(about("rare", 10))) {
			t.Errorf("%d clicks", len(got))
		}
	})
}

// Pages of an index whose pairs are spoiled are made again, and hide no click.
func TestSpoiledPagesOfAnIndexHideNoClick(t *testing.T) {
	p := newPast(t)
	p.add(15_000)
	p.Tick(t.Context())
	for _, file := range p.files(".index") {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for end := len(b); end >= history.IndexPageSize; end -= history.IndexPageSize {
			page := b[end-history.IndexPageSize : end]
			if bytes.Count(page, []byte{0}) == len(page) {
				t.Fatalf("%s: a page of zeros", file)
			}
			clear(page[history.IndexPageHead:])
		}
		if err := os.WriteFile(file, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p.check("spoiled pages")
	if s := p.Stats(); s.Rebuilt == 0 || s.Damages != 0 {
		t.Errorf("%+v", s)
	}
}
