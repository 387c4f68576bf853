package countries

import (
	"net/netip"
	"testing"
)

func entries(pairs ...string) (all []Entry) {
	for i := 0; i < len(pairs); i += 2 {
		e := Entry{From: netip.MustParseAddr(pairs[i])}
		copy(e.Country[:], pairs[i+1])
		all = append(all, e)
	}
	return all
}

func TestPackedRangesAreRead(t *testing.T) {
	for _, c := range []struct {
		short   bool
		entries []Entry
		asked   map[string]string
	}{
		{true, entries("1.0.0.0", "AU", "1.0.1.0", "", "255.255.255.255", "DE"), map[string]string{
			"0.255.255.255": "", "1.0.0.0": "AU", "1.0.0.255": "AU", "1.0.1.0": "", "255.255.255.254": "", "255.255.255.255": "DE",
		}},
		{false, entries("::", "", "2001::ffff:ffff:ffff:ffff", "FR", "2001:0:0:1::", "JP", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "US"), map[string]string{
			"::1": "", "2001::ffff:ffff:ffff:fffe": "", "2001::ffff:ffff:ffff:ffff": "FR", "2001:0:0:1::": "JP",
			"ffff::": "JP", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff": "US",
		}},
		{true, nil, map[string]string{"8.8.8.8": ""}},
	} {
		packed, err := Pack("20260915", c.entries)
		if err != nil {
			t.Fatal(err)
		}
		r, err := unpack(packed, c.short)
		if err != nil {
			t.Fatal(err)
		}
		for addr, want := range c.asked {
			if got := r.country(netip.MustParseAddr(addr)); got != want {
				t.Errorf("%s is in %q, want %q", addr, got, want)
			}
		}
	}
}

func TestEntriesOutOfOrderAreNotPacked(t *testing.T) {
	for _, e := range [][]Entry{
		entries("1.0.0.1", "AU", "1.0.0.0", "DE"), entries("1.0.0.0", "AU", "1.0.0.0", "DE"),
		entries("2001:0:0:1::", "AU", "2001::ffff:ffff:ffff:ffff", "DE"),
	} {
		if _, err := Pack("20260915", e); err == nil {
			t.Errorf("%v was packed", e)
		}
	}
	if _, err := Pack("2026", nil); err == nil {
		t.Error("a table without a date was packed")
	}
}

// TestDamagedFilesAreRefused: none of them may end the program, whatever the error.
func TestDamagedFilesAreRefused(t *testing.T) {
	whole, err := Pack("20260915", entries("1.0.0.0", "AU", "1.0.1.0", "DE"))
	if err != nil {
		t.Fatal(err)
	}
	for n := range whole {
		if _, err := unpack(whole[:n], true); err == nil {
			t.Errorf("%d of %d bytes were read", n, len(whole))
		}
		flipped := append([]byte(nil), whole...)
		flipped[n] ^= 0x10
		_, _ = unpack(flipped, true)
	}
	var none *ranges
	if got := none.country(netip.MustParseAddr("8.8.8.8")); got != "" {
		t.Errorf("a missing table has %q", got)
	}
}
