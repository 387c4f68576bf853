package mmdb_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/maxmind/mmdbwriter"
	"github.com/maxmind/mmdbwriter/mmdbtype"

	"curt/internal/backend/mmdb"
	"curt/internal/clicks"
)

type (
	record = mmdbtype.Map
	word   = mmdbtype.String
)

// write returns a database with the records by network.
func write(tb testing.TB, kind string, records map[string]mmdbtype.DataType) []byte {
	tb.Helper()
	tree, err := mmdbwriter.New(mmdbwriter.Options{DatabaseType: kind, RecordSize: 24, IncludeReservedNetworks: true})
	if err != nil {
		tb.Fatal(err)
	}
	for network, r := range records {
		_, n, err := net.ParseCIDR(network)
		if err != nil {
			tb.Fatal(err)
		}
		if err := tree.Insert(n, r); err != nil {
			tb.Fatal(err)
		}
	}
	var b bytes.Buffer
	if _, err := tree.WriteTo(&b); err != nil {
		tb.Fatal(err)
	}
	return b.Bytes()
}

func berlin() record {
	return record{
		"city":      record{"geoname_id": mmdbtype.Uint32(2950159), "names": record{"de": word("Berlin"), "en": word("Berlin")}},
		"continent": record{"code": word("EU")}, "location": record{"latitude": mmdbtype.Float64(52.5)},
		"country": record{"iso_code": word("DE"), "names": record{"en": word("Germany")}},
		"traits":  record{"autonomous_system_organization": word("Example Net")},
	}
}

func file(tb testing.TB, text []byte) string {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "places.mmdb")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		tb.Fatal(err)
	}
	return path
}

func open(tb testing.TB, path string) *mmdb.Database {
	tb.Helper()
	d, err := mmdb.Open(tb.Context(), mmdb.Config{Path: path})
	if err != nil {
		tb.Fatal(err)
	}
	return d
}

func place(country, city, network string) clicks.Location {
	p := clicks.Location{City: city, Network: network}
	copy(p.Country[:], country)
	return p
}

func TestPlacesOfEveryFlavour(t *testing.T) {
	for name, test := range map[string]struct {
		record mmdbtype.DataType
		want   clicks.Location
	}{
		"MaxMind City":       {berlin(), place("DE", "Berlin", "Example Net")},
		"MaxMind Country":    {record{"country": record{"iso_code": word("AT")}}, place("AT", "", "")},
		"MaxMind ASN":        {record{"autonomous_system_number": mmdbtype.Uint32(64500), "autonomous_system_organization": word("Example Net")}, place("", "", "Example Net")},
		"no English name":    {record{"city": record{"names": record{"de": word("Wien")}}, "country": record{"iso_code": word("AT")}}, place("AT", "", "")},
		"IPinfo":             {record{"country": word("US"), "city": word("Mountain View"), "as_name": word("Example LLC")}, place("US", "Mountain View", "Example LLC")},
		"IPinfo Lite":        {record{"country": word("United States"), "country_code": word("US"), "as_name": word("Example LLC")}, place("US", "", "Example LLC")},
		"lower case":         {record{"country": word("de")}, place("DE", "", "")},
		"country of digits":  {record{"country": record{"iso_code": word("12")}, "city": word("X")}, place("", "X", "")},
		"country's name":     {record{"country": word("Germany")}, clicks.Location{}},
		"city is a number":   {record{"city": mmdbtype.Uint32(5), "country": word("DE")}, place("DE", "", "")},
		"control characters": {record{"city": word("A\x00B"), "as_name": word("x\r\ny")}, clicks.Location{}},
		"our own words":      {record{"city": word("(other)"), "as_name": word("(direct)")}, clicks.Location{}},
		"long name":          {record{"city": word(bytes.Repeat([]byte("ü"), 100))}, place("", string(bytes.Repeat([]byte("ü"), 64)), "")},
		"no map":             {word("DE"), clicks.Location{}},
		"empty":              {record{}, clicks.Location{}},
	} {
		d := open(t, file(t, write(t, name, map[string]mmdbtype.DataType{"198.51.100.0/24": test.record, "2001:db8:1::/48": test.record})))
		for _, addr := range []string{"198.51.100.7", "::ffff:198.51.100.7", "2001:db8:1::5", "2001:db8:1::5%eth0"} {
			for range 2 { // decoded, then remembered
				if got := d.Locate(netip.MustParseAddr(addr)); got != test.want {
					t.Errorf("%s: %s is in %+v, want %+v", name, addr, got, test.want)
				}
				if got, want := d.Country(netip.MustParseAddr(addr)), string(bytes.Trim(test.want.Country[:], "\x00")); got != want {
					t.Errorf("%s: %s is in the country %q, want %q", name, addr, got, want)
				}
			}
		}
		for _, addr := range []netip.Addr{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("::"), {}} {
			if got := d.Locate(addr); got != (clicks.Location{}) {
				t.Errorf("%s: %s is in %+v", name, addr, got)
			}
		}
	}
}

func TestWhatIsNoFileStopsTheStart(t *testing.T) {
	dir := t.TempDir()
	for _, path := range []string{filepath.Join(dir, "missing.mmdb"), dir, os.DevNull, "", "\x00"} {
		if _, err := mmdb.Open(t.Context(), mmdb.Config{Path: path}); !errors.Is(err, mmdb.ErrFile) {
			t.Errorf("%q: %v, want ErrFile", path, err)
		}
	}
}

func TestADamagedFileKnowsNothing(t *testing.T) {
	whole := write(t, "City", map[string]mmdbtype.DataType{"198.51.100.0/24": berlin()})
	for name, text := range map[string][]byte{
		"empty": nil, "noise": []byte("no database at all"), "cut": whole[:len(whole)/2], "end only": whole[len(whole)-40:],
	} {
		d := open(t, file(t, text))
		if got := d.Locate(netip.MustParseAddr("198.51.100.7")); got != (clicks.Location{}) || d.Stats().Failures != 1 {
			t.Errorf("%s: %+v, %+v", name, got, d.Stats())
		}
	}
}

// A bit of every byte is flipped, then many bytes at once: whatever comes of it is a
// place, and takes no memory to speak of.
func TestFlippedBitsNeverFail(t *testing.T) {
	records := map[string]mmdbtype.DataType{"198.51.100.0/24": berlin(), "203.0.113.0/25": record{"country": word("NP"), "city": word("Kathmandu")}}
	text := write(t, "City", records)
	addrs := []netip.Addr{netip.MustParseAddr("198.51.100.7"), netip.MustParseAddr("203.0.113.1"), netip.MustParseAddr("2001:db8::1")}
	path := file(t, text)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	try := func(damaged []byte) {
		if err := os.WriteFile(path, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		d := open(t, path)
		for _, addr := range addrs {
			p := d.Locate(addr)
			if len(p.City) > 128 || len(p.Network) > 128 {
				t.Errorf("a place of %d bytes", len(p.City)+len(p.Network))
			}
		}
	}
	for i := range text {
		text[i] ^= 1 << (i % 8)
		try(text)
		text[i] ^= 1 << (i % 8)
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		damaged := bytes.Clone(text)
		for range 1 + random.IntN(8) {
			damaged[random.IntN(len(damaged))] = byte(random.Uint32())
		}
		try(damaged[:len(damaged)-random.IntN(2)*random.IntN(len(damaged))])
	}
	runtime.ReadMemStats(&after)
	if each := (after.TotalAlloc - before.TotalAlloc) / uint64(len(text)+500); each > 4<<20 {
		t.Errorf("%d bytes of memory for each file of %d", each, len(text))
	}
}

func TestAChangedFileIsReadAnew(t *testing.T) {
	german := write(t, "City", map[string]mmdbtype.DataType{"198.51.100.0/24": berlin()})
	french := write(t, "City", map[string]mmdbtype.DataType{"198.51.100.0/24": record{"country": word("FR")}})
	path := file(t, german)
	synctest.Test(t, func(t *testing.T) {
		d := open(t, path)
		go func() { _ = d.Run(t.Context()) }()
		locate := func() string {
			time.Sleep(61 * time.Second)
			synctest.Wait()
			p := d.Locate(netip.MustParseAddr("198.51.100.7"))
			return string(p.Country[:])
		}
		write := func(text []byte, age time.Duration) {
			if err := os.WriteFile(path, text, 0o600); err != nil {
				t.Fatal(err)
			}
			at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(age)
			if err := os.Chtimes(path, at, at); err != nil {
				t.Fatal(err)
			}
		}
		write(french, time.Second)
		if got := locate(); got != "FR" {
			t.Errorf("after the change: %q", got)
		}
		write(french[:100], 2*time.Second) // cut in place
		if got, failures := locate(), d.Stats().Failures; got != "FR" || failures != 1 {
			t.Errorf("cut in place: %q after %d failures", got, failures)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if got := locate() + locate(); got != "FRFR" || d.Stats().Failures != 2 {
			t.Errorf("removed: %q, %+v", got, d.Stats())
		}
		write(german, 3*time.Second)
		if got := locate(); got != "DE" || d.Stats().Reloads != 3 {
			t.Errorf("back again: %q, %+v", got, d.Stats())
		}
	})
}

func FuzzFile(f *testing.F) {
	f.Add(write(f, "City", map[string]mmdbtype.DataType{"198.51.100.0/24": berlin()}))
	f.Add([]byte("\xab\xcd\xefMaxMind.com"))
	path := filepath.Join(f.TempDir(), "places.mmdb")
	f.Fuzz(func(t *testing.T, text []byte) {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		d := open(t, path)
		d.Locate(netip.MustParseAddr("198.51.100.7"))
		d.Locate(netip.MustParseAddr("2001:db8::1"))
	})
}

func BenchmarkLocate(b *testing.B) {
	records := map[string]mmdbtype.DataType{}
	for i := range 256 {
		records[netip.PrefixFrom(netip.AddrFrom4([4]byte{203, byte(i), 0, 0}), 24).String()] = record{
			"country": record{"iso_code": word("NP")}, "city": record{"names": record{"en": word("City " + string(rune('A'+i%26)))}},
		}
	}
	d := open(b, file(b, write(b, "City", records)))
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		i++
		d.Locate(netip.AddrFrom4([4]byte{203, byte(i), 0, byte(i >> 8)}))
	}
}
