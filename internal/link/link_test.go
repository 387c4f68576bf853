package link_test

import (
	"crypto/rand"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"curt/internal/link"
)

var day = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)

func valid() link.Link {
	return link.Link{
		ID: link.ID{1}, Key: link.Key{Code: "abcd"}, Destination: "https://example.com/", Workspace: link.WorkspaceDefault,
		Status: link.Active, Safety: link.Clean, Redirect: 302, Created: day, Updated: day,
	}
}

func TestValidate(t *testing.T) {
	for name, spoil := range map[string]func(*link.Link){
		"no id":                   func(l *link.Link) { l.ID = link.ID{} },
		"no code":                 func(l *link.Link) { l.Key.Code = "" },
		"code too long":           func(l *link.Link) { l.Key.Code = link.Code(strings.Repeat("a", link.MaxCode+1)) },
		"code with a slash":       func(l *link.Link) { l.Key.Code = "a/b" },
		"code with a dot":         func(l *link.Link) { l.Key.Code = "a.b" },
		"code with an umlaut":     func(l *link.Link) { l.Key.Code = "ä" },
		"domain in capitals":      func(l *link.Link) { l.Key.Domain = "Example.com" },
		"domain with a path":      func(l *link.Link) { l.Key.Domain = "example.com/x" },
		"no status":               func(l *link.Link) { l.Status = 0 },
		"unknown status":          func(l *link.Link) { l.Status = link.Deleted + 1 },
		"no safety":               func(l *link.Link) { l.Safety = 0 },
		"unknown safety":          func(l *link.Link) { l.Safety = link.Legal + 1 },
		"no workspace":            func(l *link.Link) { l.Workspace = "" },
		"tombstone without owner": func(l *link.Link) { l.Status, l.Workspace = link.Deleted, "" },
		"workspace too long":      func(l *link.Link) { l.Workspace = link.WorkspaceID(strings.Repeat("w", link.MaxName+1)) },
		"creator too long":        func(l *link.Link) { l.CreatedBy = strings.Repeat("w", link.MaxName+1) },
		"redirect 303":            func(l *link.Link) { l.Redirect = 303 },
		"no destination":          func(l *link.Link) { l.Destination = "" },
		"destination too long":    func(l *link.Link) { l.Destination = strings.Repeat("d", link.MaxDestination+1) },
		"fallback too long":       func(l *link.Link) { l.Fallback = strings.Repeat("d", link.MaxDestination+1) },
		"title too long":          func(l *link.Link) { l.Title = strings.Repeat("t", link.MaxTitle+1) },
		"too many tags":           func(l *link.Link) { l.Tags = make([]string, link.MaxTags+1) },
		"empty tag":               func(l *link.Link) { l.Tags = []string{""} },
		"tag too long":            func(l *link.Link) { l.Tags = []string{strings.Repeat("t", link.MaxTag+1)} },
		"microseconds":            func(l *link.Link) { l.Expires = day.Add(time.Microsecond) },
		"another zone":            func(l *link.Link) { l.Starts = day.In(time.FixedZone("", 3600)) },
		"the epoch":               func(l *link.Link) { l.Created = time.UnixMilli(0).UTC() },
	} {
		l := valid()
		if err := l.Validate(); err != nil {
			t.Fatalf("the valid link: %v", err)
		}
		spoil(&l)
		if err := l.Validate(); !errors.Is(err, link.ErrInvalid) {
			t.Errorf("%s: %v, want %v", name, err, link.ErrInvalid)
		}
	}
}

// The first state of the table that holds decides, so each row spoils a link in one
// way more than the row before.
func TestStatesDecideInTheirOrder(t *testing.T) {
	l := valid()
	state := func() link.State { return l.Target().At(day) }
	for _, step := range []struct {
		spoil func()
		want  link.State
	}{
		{func() {}, link.StateLive},
		{func() { l.Safety = link.Quarantined }, link.StateWarning},
		{func() { l.MaxClicks, l.Spent = 3, 3 }, link.StateExhausted},
		{func() { l.Expires = day }, link.StateExpired},
		{func() { l.Starts = day.Add(time.Millisecond) }, link.StateNotYet},
		{func() { l.Status = link.Disabled }, link.StateDisabled},
		{func() { l.Safety = link.Blocked }, link.StateBlocked},
		{func() { l.Safety = link.Legal }, link.StateLegal},
		{func() { l.Status = link.Deleted }, link.StateDeleted},
	} {
		if step.spoil(); state() != step.want {
			t.Errorf("state %s, want %s", state(), step.want)
		}
	}
}

func TestExpiryIsExact(t *testing.T) {
	l := valid()
	l.Starts, l.Expires = day, day.Add(time.Second)
	for at, want := range map[time.Duration]link.State{
		-time.Nanosecond: link.StateNotYet, 0: link.StateLive, time.Second - 1: link.StateLive, time.Second: link.StateExpired,
	} {
		if got := l.Target().At(day.Add(at)); got != want {
			t.Errorf("%s after the start: %s, want %s", at, got, want)
		}
	}
}

func TestIDs(t *testing.T) {
	random := strings.NewReader(strings.Repeat("\xff", 100))
	id, err := link.NewID(day, random)
	if err != nil || !id.Time().Equal(day) {
		t.Fatalf("id of %s, %v", id.Time(), err)
	}
	if want := "019ca6b1-dc00-7000-bfff-ffffffffffff"; id.String() != want {
		t.Errorf("id %s, want %s", id, want)
	}
	late, err := link.NewID(day.Add(time.Millisecond-1), random)
	if want := "019ca6b1-dc00-7fff-bfff-ffffffffffff"; err != nil || late.String() != want {
		t.Errorf("a nanosecond before the next millisecond: %s, %v, want %s", late, err, want)
	}
	if back, err := link.ParseID(id.String()); err != nil || back != id {
		t.Errorf("parsed %s, %v", back, err)
	}
	for _, bad := range []string{"", "x", strings.Repeat("-", 36), strings.ReplaceAll(id.String(), "0", "g"), id.String() + "0"} {
		if _, err := link.ParseID(bad); !errors.Is(err, link.ErrInvalid) {
			t.Errorf("parse %q: %v", bad, err)
		}
	}
	if _, err := link.NewID(day, strings.NewReader("short")); err == nil {
		t.Error("an id without enough random bits")
	}
}

// A span names its ids again from its first; they lie between those of before and after.
func TestSpansOfIDs(t *testing.T) {
	ids := link.NewIDs(rand.Reader)
	at := day.Add(time.Millisecond - 3*time.Microsecond) // twelve ticks before the next millisecond
	before, err := ids.New(at)
	if err != nil {
		t.Fatal(err)
	}
	first, err := ids.Span(at, 1000)
	if err != nil {
		t.Fatal(err)
	}
	last := before
	for i := range 1000 {
		id := first.Nth(i)
		if again, err := link.ParseID(id.String()); err != nil || again != id || id[6]>>4 != 7 || id[8]>>6 != 2 {
			t.Fatalf("id %d of the span: %s, %v", i, id, err)
		}
		if slices.Compare(id[:], last[:]) <= 0 {
			t.Fatalf("id %d of the span is %s after %s", i, id, last)
		}
		last = id
	}
	if first.Nth(0) != first || first.Nth(3).Nth(4) != first.Nth(7) || !first.Nth(999).Time().Equal(day.Add(time.Millisecond)) {
		t.Errorf("the span begins with %s and ends with %s", first, last)
	}
	if after, err := ids.New(at); err != nil || slices.Compare(after[:], last[:]) <= 0 {
		t.Errorf("%s after a span that ends with %s: %v", after, last, err)
	}
}

// IDs of one process only go up: within a tick, when the clock stands or goes back a
// little, and among parallel callers. A clock that was set back is followed.
func TestIDsKeepTheirOrder(t *testing.T) {
	ids := link.NewIDs(rand.Reader)
	var last link.ID
	next := func(at time.Time) link.ID {
		t.Helper()
		id, err := ids.New(at)
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	for i := range 10_000 {
		id := next(day.Add(time.Duration(i%7) * 100 * time.Nanosecond))
		if slices.Compare(id[:], last[:]) <= 0 {
			t.Fatalf("id %d is %s after %s", i, id, last)
		}
		last = id
	}
	if ahead := last.Time().Sub(day); ahead > 3*time.Millisecond {
		t.Errorf("10,000 ids at once run %s ahead", ahead)
	}
	if back := day.Add(-2 * time.Second); !next(back).Time().Equal(back) {
		t.Error("a clock that was set back is not followed")
	}
	var wg sync.WaitGroup
	all := make([][]link.ID, 8)
	for i := range all {
		wg.Go(func() {
			for range 1000 {
				id, err := ids.New(day.Add(time.Hour))
				if err != nil {
					t.Error(err)
				}
				all[i] = append(all[i], id)
			}
		})
	}
	wg.Wait()
	for i := range all {
		if !slices.IsSortedFunc(all[i], func(a, b link.ID) int { return slices.Compare(a[:], b[:]) }) {
			t.Errorf("the ids of caller %d are out of order", i)
		}
	}
	flat := slices.Concat(all...)
	slices.SortFunc(flat, func(a, b link.ID) int { return slices.Compare(a[:8], b[:8]) })
	if n := len(slices.CompactFunc(flat, func(a, b link.ID) bool { return [8]byte(a[:8]) == [8]byte(b[:8]) })); n != 8000 {
		t.Errorf("8,000 ids have %d different ticks", n)
	}
}

func TestFullIsUnavailable(t *testing.T) {
	if !errors.Is(link.ErrFull, link.ErrUnavailable) || errors.Is(link.ErrUnavailable, link.ErrFull) {
		t.Error("ErrFull is a kind of ErrUnavailable, and not the reverse")
	}
}
