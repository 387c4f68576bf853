package link_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"curt/internal/link"
	"curt/internal/link/linktest"
)

// What lies at its bound is still valid: the bounds are those that the API promises.
func TestValidateTakesWhatIsAtItsBound(t *testing.T) {
	for name, change := range map[string]func(*link.Link){
		"domain":               func(l *link.Link) { l.Key.Domain = link.Domain(strings.Repeat("d", 259)) },
		"code":                 func(l *link.Link) { l.Key.Code = link.Code(strings.Repeat("a", link.MaxCode)) },
		"workspace":            func(l *link.Link) { l.Workspace = link.WorkspaceID(strings.Repeat("w", link.MaxName)) },
		"creator":              func(l *link.Link) { l.CreatedBy = strings.Repeat("w", link.MaxName) },
		"destination":          func(l *link.Link) { l.Destination = strings.Repeat("d", link.MaxDestination) },
		"fallback":             func(l *link.Link) { l.Fallback = strings.Repeat("d", link.MaxDestination) },
		"title":                func(l *link.Link) { l.Title = strings.Repeat("t", link.MaxTitle) },
		"tags":                 func(l *link.Link) { l.Tags = slices.Repeat([]string{"t"}, link.MaxTags) },
		"tag":                  func(l *link.Link) { l.Tags = []string{strings.Repeat("t", link.MaxTag)} },
		"disabled":             func(l *link.Link) { l.Status = link.Disabled },
		"legal":                func(l *link.Link) { l.Safety = link.Legal },
		"a millisecond":        func(l *link.Link) { l.Expires = day.Add(time.Millisecond) },
		"a bare tombstone":     func(l *link.Link) { *l = l.Tombstone(day) },
		"a tombstone, spoiled": func(l *link.Link) { l.Status, l.Destination, l.Redirect = link.Deleted, "", 0 },
	} {
		l := valid()
		change(&l)
		if err := l.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestADomainHasABound(t *testing.T) {
	l := valid()
	l.Key.Domain = link.Domain(strings.Repeat("d", 260))
	if err := l.Validate(); !errors.Is(err, link.ErrInvalid) {
		t.Errorf("a domain of 260 bytes: %v", err)
	}
}

func TestNamesOfSafety(t *testing.T) {
	for s := link.Clean; s <= link.Legal; s++ {
		if got, ok := link.ParseSafety(s.String()); !ok || got != s {
			t.Errorf("%q is read as %d, %t; want %d", s, got, ok, s)
		}
	}
	for _, name := range []string{"", "unknown", "Clean", "deleted"} {
		if got, ok := link.ParseSafety(name); ok || got != 0 {
			t.Errorf("%q is read as %d, %t", name, got, ok)
		}
	}
}

// A rival's write stands for an attempt whose answer was lost only when all of it is the
// same: each field that differs is told.
func TestUpdateTellsARivalByEveryField(t *testing.T) {
	for name, differ := range map[string]func(*link.Link){
		"destination": func(l *link.Link) { l.Destination += "rival" },
		"title":       func(l *link.Link) { l.Title = "rival" },
		"tags":        func(l *link.Link) { l.Tags = []string{"rival"} },
		"status":      func(l *link.Link) { l.Status = link.Disabled },
		"safety":      func(l *link.Link) { l.Safety = link.Warn },
		"redirect":    func(l *link.Link) { l.Redirect = 308 },
		"starts":      func(l *link.Link) { l.Starts = day.Add(time.Minute) },
		"expires":     func(l *link.Link) { l.Expires = day.Add(time.Hour) },
		"updated":     func(l *link.Link) { l.Updated = day.Add(time.Minute) },
		"bound":       func(l *link.Link) { l.MaxClicks++ },
		"fallback":    func(l *link.Link) { l.Fallback = "https://rival.example/" },
		"query":       func(l *link.Link) { l.ForwardQuery = true },
		"index":       func(l *link.Link) { l.NoIndex = true },
		"cache":       func(l *link.Link) { l.Cacheable = true },
		"creator":     func(l *link.Link) { l.CreatedBy = "rival" },
	} {
		s := linktest.NewMemory()
		stored, err := s.Create(t.Context(), valid())
		if err != nil {
			t.Fatal(err)
		}
		calls := 0
		wire := linktest.WithFaults(s, func(op linktest.Op, _ link.Key) (bool, error) {
			if op != linktest.OpReplace || calls > 1 {
				return true, nil
			}
			rival := stored
			rival.MaxClicks = 10
			differ(&rival)
			if _, err := s.Replace(t.Context(), rival, link.Edit{}); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			return false, errLost
		})
		got, err := link.Update(t.Context(), wire, stored.Key, "tester", func(l *link.Link) error {
			calls++
			l.MaxClicks = 10
			return nil
		})
		if err != nil || calls != 2 || got.Version != 3 {
			t.Errorf("%s: version %d after %d calls, %v; want the rival's and then ours", name, got.Version, calls, err)
		}
	}
}

// Every byte is either of a code or not, the ends of the ranges too.
func TestBytesOfACode(t *testing.T) {
	const allowed = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	for c := range 256 {
		want := strings.IndexByte(allowed, byte(c)) >= 0
		if link.ValidCode([]byte{byte(c)}) != want || link.ValidCode([]byte{'x', byte(c)}) != want {
			t.Errorf("byte %#x: %t", c, !want)
		}
	}
}

func TestWhatIsWarnedAbout(t *testing.T) {
	for safety, want := range map[link.Safety]link.State{
		link.Clean: link.StateLive, link.Warn: link.StateWarning, link.Quarantined: link.StateWarning,
		link.Blocked: link.StateBlocked, link.Legal: link.StateLegal,
	} {
		l := valid()
		if l.Safety = safety; l.Target().At(day) != want {
			t.Errorf("a link that is %s: %s, want %s", safety, l.Target().At(day), want)
		}
	}
}

// Whether a write whose answer was lost lies below those of two rivals, nobody knows: f is
// not applied twice.
func TestUpdateThatMayHaveBeenOvertakenIsUncertain(t *testing.T) {
	s := linktest.NewMemory()
	stored, err := s.Create(t.Context(), valid())
	if err != nil {
		t.Fatal(err)
	}
	calls := 0
	wire := linktest.WithFaults(s, func(op linktest.Op, _ link.Key) (bool, error) {
		if op != linktest.OpReplace {
			return true, nil
		}
		for range 2 {
			if _, err := link.Update(t.Context(), s, stored.Key, "tester", func(l *link.Link) error { l.Title += "rival"; return nil }); err != nil {
				t.Fatal(err)
			}
		}
		return false, errLost
	})
	_, err = link.Update(t.Context(), wire, stored.Key, "tester", func(l *link.Link) error {
		calls++
		l.MaxClicks += 10
		return nil
	})
	if !errors.Is(err, link.ErrUncertain) || calls != 1 {
		t.Errorf("after %d calls: %v, want %v after one", calls, err, link.ErrUncertain)
	}
}
