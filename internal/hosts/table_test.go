package hosts_test

import (
	"slices"
	"testing"

	"curt/internal/hosts"
	"curt/internal/hosts/hoststest"
	"curt/internal/link"
	"curt/internal/weburl"
)

func TestATableAnswersForEachDomain(t *testing.T) {
	table := hoststest.New(t, "https://s.example:8443", "x.example", "go.example").Load()
	for name, want := range map[string]link.Domain{"": "", "S.Example:8443": "", "GO.example": "go.example"} {
		if d, ok := table.Domain(name); !ok || d != want {
			t.Errorf("domain %q is %q, %t", name, d, ok)
		}
	}
	if _, ok := table.Domain("s.example"); ok {
		t.Error("a host without its port is a domain")
	}
	if all := table.Domains(); !slices.Equal(all, []link.Domain{"s.example:8443", "go.example", "x.example"}) {
		t.Errorf("domains %v", all)
	}
	for k, want := range map[link.Key]string{
		{Code: "abc"}: "https://s.example:8443/abc", {Domain: "go.example", Code: "abc"}: "https://go.example/abc",
	} {
		if got := table.ShortURL(k); got != want {
			t.Errorf("%v: %s, want %s", k, got, want)
		}
	}
	if p := table.Find("Go.Example.:80"); !p.Configured() || !p.Served() || p.Domain() != "go.example" || string(p.Bytes()) != "go.example" {
		t.Errorf("place %+v", p)
	}
}

func TestWithoutATableEveryHostIsTheDefaultDomain(t *testing.T) {
	var none *hosts.Current
	if p := none.Load().Find("any.example"); !p.Served() || p.Configured() || p.Domain() != "" {
		t.Errorf("place %+v", p)
	}
	u, err := weburl.Parse("https://any.example/")
	if err != nil || none.Load().Refuses(u) {
		t.Errorf("refused, %v", err)
	}
}

func TestAHostThatIsNoneIsRefused(t *testing.T) {
	for _, c := range []hosts.Config{{Scheme: "https", Host: "a b"}, {Scheme: "https", Host: "s.example", Domains: []link.Domain{"%"}}} {
		if _, err := hosts.New(c); err == nil {
			t.Errorf("%+v was taken", c)
		}
	}
}

// TestFindingAHostAllocatesNothing: it is on the way of every redirect over net/http.
func TestFindingAHostAllocatesNothing(t *testing.T) {
	named := hoststest.New(t, "https://s.example", "go.example")
	if n := testing.AllocsPerRun(100, func() { _ = named.Load().Find("go.example") }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
