package review_test

import (
	"context"
	"crypto/rand"
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"curt/internal/auth"
	"curt/internal/link"
	"curt/internal/link/linktest"
	"curt/internal/moderation"
	"curt/internal/moderation/moderationtest"
	"curt/internal/moderation/moderator"
	"curt/internal/ratelimit"
	"curt/internal/review"
)

func noon() time.Time { return time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC) }

// office is a desk with everything behind it in memory.
type office struct {
	*review.Service

	links     *linktest.Memory
	cases     *moderationtest.MemoryCases
	journal   *moderationtest.Memory
	moderator *moderator.Moderator
	metrics   *prometheus.Registry
}

func newOffice(t *testing.T, change ...func(*review.Config)) office {
	t.Helper()
	o := office{
		links: linktest.NewMemory(), cases: moderationtest.NewMemoryCases(), journal: moderationtest.NewMemory(), metrics: prometheus.NewRegistry(),
	}
	var err error
	o.moderator, err = moderator.Open(t.Context(), moderator.Config{
		Journal: o.journal, Progress: o.journal, Links: o.links, Random: rand.Reader, Now: noon,
	})
	if err != nil {
		t.Fatal(err)
	}
	cfg := review.Config{
		Cases: o.cases, Appeals: o.cases, Destinations: o.cases, Journal: o.journal, Moderator: o.moderator, Links: o.links, DayKeys: dayKeys{},
		Limits: ratelimit.NewMemory(), Random: rand.Reader, Metrics: o.metrics, Now: noon,
	}
	for _, f := range change {
		f(&cfg)
	}
	if o.Service, err = review.New(cfg); err != nil {
		t.Fatal(err)
	}
	return o
}

// dayKeys has a key for every day.
type dayKeys struct{}

func (dayKeys) DayKey(_ context.Context, day time.Time) (key [16]byte, err error) {
	copy(key[:], day.Format(time.DateOnly))
	return key, nil
}

func admin() auth.Principal {
	return auth.Principal{KeyID: "mod", Workspace: link.WorkspaceDefault, Scopes: []auth.Scope{auth.Admin}}
}

func owner() auth.Principal {
	return auth.Principal{KeyID: "own", Workspace: "acme", Scopes: []auth.Scope{auth.LinksWrite}}
}

// stranger is the n-th network without a key.
func stranger(n int) auth.Principal {
	return auth.Anonymous(netip.AddrFrom4([4]byte{192, 0, byte(n >> 8), byte(n)}))
}

func key(code string) link.Key { return link.Key{Code: link.Code(code)} }

// put stores a link of acme.
func (o office) put(t *testing.T, code string, change ...func(*link.Link)) link.Link {
	t.Helper()
	id, err := link.NewID(noon(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	l := link.Link{
		ID: id, Key: key(code), Destination: "https://evil.example/login", Workspace: "acme",
		Status: link.Active, Safety: link.Clean, Redirect: 302, Created: noon(), Updated: noon(), Version: 1,
	}
	for _, f := range change {
		f(&l)
	}
	stored, err := o.links.Create(t.Context(), l)
	if err != nil {
		t.Fatal(err)
	}
	return stored
}

// suspect writes down what the policy decides about a link, as its creation does.
func (o office) suspect(t *testing.T, l *link.Link, s link.Safety, score int) {
	t.Helper()
	_, err := o.journal.Append(t.Context(), moderation.Entry{
		At: noon(), Entity: moderation.OfLink(l.Key), Link: l.ID, Action: moderation.ActionDecide, Safety: s, Score: score, Actor: moderation.ActorPolicy,
		Evidence: moderation.Commit(`[{"signal":"look_alike","points":65,"evidence":"reads like a bank"}]`, [16]byte{1}),
	})
	if err != nil {
		t.Fatal(err)
	}
}

// turn lets the desk follow the journal.
func (o office) turn(t *testing.T, now time.Time) {
	t.Helper()
	if err := o.Turn(t.Context(), now); err != nil {
		t.Fatal(err)
	}
}

// queue returns the codes that wait, in order.
func (o office) queue(t *testing.T) (codes []string) {
	t.Helper()
	rows, _, err := o.List(t.Context(), admin(), moderation.CaseFilter{}, moderation.CasePage{Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		codes = append(codes, string(r.Case.Link.Key.Code))
	}
	return codes
}

func (o office) safety(t *testing.T, code string) link.Safety {
	t.Helper()
	l, err := o.links.Get(t.Context(), key(code))
	if err != nil {
		t.Fatal(err)
	}
	return l.Safety
}

// value returns the sum of a metric over its labels; of a histogram, how many it saw.
func (o office) value(t *testing.T, name string) (sum float64) {
	t.Helper()
	families, err := o.metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == name {
				sum += m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
			}
		}
	}
	return sum
}

func TestOnlyModeratorsSeeTheQueue(t *testing.T) {
	o := newOffice(t)
	o.put(t, "abc")
	for who, want := range map[string]error{"owner": auth.ErrForbidden, "stranger": auth.ErrUnauthenticated} {
		caller := owner()
		if who == "stranger" {
			caller = stranger(1)
		}
		_, _, list := o.List(t.Context(), caller, moderation.CaseFilter{}, moderation.CasePage{Limit: 1})
		_, show := o.Show(t.Context(), caller, key("abc"))
		_, decide := o.Decide(t.Context(), noon(), caller, []review.Ruling{{Key: key("abc"), Safety: link.Blocked, Reason: "x"}})
		_, answer := o.Answer(t.Context(), noon(), caller, review.Ruling{Key: key("abc"), Safety: link.Blocked, Reason: "x"})
		_, erase := o.Erase(t.Context(), caller, key("abc"))
		for i, err := range []error{list, show, decide, answer, erase} {
			if !errors.Is(err, want) {
				t.Errorf("%s, call %d: %v", who, i, err)
			}
		}
	}
	if o.safety(t, "abc") != link.Clean {
		t.Error("a stranger decided")
	}
}

func TestALinkIsNamedByItsCodeOrItsShortURL(t *testing.T) {
	domains := func(host string) (link.Domain, bool) {
		d, ok := map[string]link.Domain{"curt.test": "", "go.example": "go.example", "localhost:8080": ""}[host]
		return d, ok
	}
	for text, want := range map[string]link.Key{
		"abc": {Domain: "here", Code: "abc"}, " a-_9 \n": {Domain: "here", Code: "a-_9"},
		"https://curt.test/abc": {Code: "abc"}, "HTTP://curt.test/abc?qr=1#x": {Code: "abc"}, "curt.test/abc+": {Code: "abc"},
		"http://localhost:8080/abc/stats": {Code: "abc"}, "https://go.example/ABC": {Domain: "go.example", Code: "ABC"},
	} {
		if got, ok := review.ParseLink(text, "here", domains); !ok || got != want {
			t.Errorf("%q is %v, %v; want %v", text, got, ok, want)
		}
	}
	for _, text := range []string{
		"", " ", "/", "//", "curt.test", "curt.test/", "https://curt.test/", "https://evil.example/abc", "ftp://curt.test/abc", "javascript:alert(1)",
		"https://curt.test/a%62c", "https://curt.test/a b", "https://user@curt.test/abc", "https:///abc", "curt.test/" + string(make([]byte, 3000)), "\x00", "\xff",
	} {
		if got, ok := review.ParseLink(text, "here", domains); ok {
			t.Errorf("%q is %v", text, got)
		}
	}
}
