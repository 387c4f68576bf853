package countries_test

import (
	"net/netip"
	"os"
	"testing"
	"time"

	"curt/internal/backend/countries"
	"curt/internal/clicks"
)

// builtIn returns the table of a build that has one.
func builtIn(tb testing.TB) *countries.Table {
	tb.Helper()
	if countries.Published().IsZero() {
		if os.Getenv("CI") != "" {
			tb.Fatal(countries.ErrMissing)
		}
		tb.Skip(countries.ErrMissing)
	}
	return countries.New(nil)
}

// known are addresses of networks that have not moved for decades.
func known() map[string]string {
	return map[string]string{
		"8.8.8.8": "US", "18.7.22.69": "US", "193.99.144.80": "DE", "194.25.0.125": "DE",
		"212.58.244.22": "GB", "133.11.11.11": "JP", "202.12.27.33": "JP", "130.59.31.80": "CH",
		"2001:4860:4860::8888": "US", "2a00:1450:4001:81b::200e": "DE", "2a02:2e0:3fe:1001:7777:772e:2:85": "DE",
		"::ffff:8.8.8.8": "US", "2001:4860:4860::8888%eth0": "US",
	}
}

func TestCountriesOfPublicAddresses(t *testing.T) {
	table := builtIn(t)
	for addr, want := range known() {
		a := netip.MustParseAddr(addr)
		if got := table.Country(a); got != want {
			t.Errorf("%s is in %q, want %q", addr, got, want)
		}
		if got := table.Locate(a); got != (clicks.Location{Country: [2]byte([]byte(want))}) {
			t.Errorf("%s is at %+v, want %s", addr, got, want)
		}
	}
}

func TestOtherAddressesHaveNoCountry(t *testing.T) {
	table := builtIn(t)
	addrs := []netip.Addr{{}}
	for _, text := range []string{
		"0.0.0.0", "0.0.0.1", "10.1.2.3", "127.0.0.1", "169.254.1.1", "172.16.0.1", "192.168.1.1", "198.51.100.7", "203.0.113.5", "224.0.0.1", "240.0.0.1", "255.255.255.255",
		"::", "::1", "::2", "fe80::1", "fe80::1%eth0", "fd00::1", "ff02::1", "2001:db8::1", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "::ffff:10.0.0.1",
	} {
		addrs = append(addrs, netip.MustParseAddr(text))
	}
	for _, a := range addrs {
		if got := table.Country(a); got != "" {
			t.Errorf("%s is in %q", a, got)
		}
		if got := table.Locate(a); got != (clicks.Location{}) {
			t.Errorf("%s is at %+v", a, got)
		}
	}
}

// atlas is a file of one place; country "" = the file has none for it.
type atlas struct {
	place clicks.Location
	built time.Time
}

func (a *atlas) Locate(netip.Addr) clicks.Location { return a.place }
func (a *atlas) Built() time.Time                  { return a.built }

func TestTheFileComesFirst(t *testing.T) {
	google := netip.MustParseAddr("8.8.8.8")
	oslo := clicks.Location{Country: [2]byte{'N', 'O'}, City: "Oslo", Network: "Example Net"}
	if table := countries.New(&atlas{place: oslo}); table.Locate(google) != oslo || table.Country(google) != "NO" {
		t.Errorf("%+v, %q, want the file's place", table.Locate(google), table.Country(google))
	}
	table := countries.New(&atlas{place: clicks.Location{Network: "Example Net"}})
	if got, want := table.Locate(google), (clicks.Location{Country: [2]byte{'U', 'S'}, Network: "Example Net"}); got != want || table.Country(google) != "US" {
		t.Errorf("%+v, %q, want %+v", got, table.Country(google), want)
	}
}

func TestBuilt(t *testing.T) {
	builtIn(t)
	published := countries.Published()
	if published.Before(time.Date(2026, 9, 15, 0, 0, 0, 0, time.UTC)) {
		t.Errorf("the table is of %s", published)
	}
	file := &atlas{}
	table := countries.New(file)
	if got := table.Built(); got != published {
		t.Errorf("without a loaded file the data is of %s, want %s", got, published)
	}
	file.built = published.Add(-time.Hour)
	if got := table.Built(); got != file.built {
		t.Errorf("the data is of %s, want the file's %s", got, file.built)
	}
}

// TestNoAllocation: a look-up is on the way of each click and each create.
func TestNoAllocation(t *testing.T) {
	table := builtIn(t)
	v4, v6 := netip.MustParseAddr("193.99.144.80"), netip.MustParseAddr("2001:4860:4860::8888")
	table.Locate(v6) // unpacks the table
	if n := testing.AllocsPerRun(100, func() {
		table.Locate(v4)
		table.Locate(v6)
		table.Country(v4)
		table.Country(v6)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzLocate(f *testing.F) {
	table := builtIn(f)
	f.Add([]byte{8, 8, 8, 8})
	f.Add([]byte("\x20\x01\x48\x60\x48\x60\x00\x00\x00\x00\x00\x00\x00\x00\x88\x88"))
	f.Fuzz(func(t *testing.T, b []byte) {
		addr, _ := netip.AddrFromSlice(b)
		place := table.Locate(addr)
		if got := table.Country(addr); got != "" && got != string(place.Country[:]) || got == "" && place != (clicks.Location{}) {
			t.Errorf("%s: %+v, %q", addr, place, got)
		}
	})
}

func BenchmarkLocate(b *testing.B) {
	for name, addr := range map[string]string{"IPv4": "193.99.144.80", "IPv6": "2001:4860:4860::8888"} {
		b.Run(name, func(b *testing.B) {
			a := netip.MustParseAddr(addr)
			table := builtIn(b)
			table.Locate(a)
			b.ReportAllocs()
			for b.Loop() {
				table.Locate(a)
			}
		})
	}
}
