package connlimit_test

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"

	"curt/internal/connlimit"
)

func TestNetworkOf(t *testing.T) {
	same := [][2]string{
		{"192.0.2.1", "192.0.2.254"},
		{"192.0.2.1", "::ffff:192.0.2.9"},
		{"2001:db8:1::1", "2001:db8:1:ffff::1"},
		{"fe80::1%eth0", "fe80::2"},
	}
	for _, c := range same {
		if a, b := connlimit.NetworkOf(netip.MustParseAddr(c[0])), connlimit.NetworkOf(netip.MustParseAddr(c[1])); a != b || a == 0 {
			t.Errorf("%s and %s: %x and %x", c[0], c[1], a, b)
		}
	}
	for _, c := range [][2]string{{"192.0.2.1", "192.0.3.1"}, {"2001:db8:1::1", "2001:db8:2::1"}, {"0.0.0.0", "::"}, {"1.2.3.4", "::1"}} {
		if a, b := connlimit.NetworkOf(netip.MustParseAddr(c[0])), connlimit.NetworkOf(netip.MustParseAddr(c[1])); a == b {
			t.Errorf("%s and %s are one network", c[0], c[1])
		}
	}
	if n := connlimit.NetworkOf(netip.Addr{}); n != 0 {
		t.Errorf("nobody's: %x", n)
	}
}

type candidate = connlimit.Candidate[string]

func TestPick(t *testing.T) {
	const attacker, carrier, other = 1, 2, 3
	many := func(network connlimit.Network, name string, n int) (all []candidate) {
		for i := range n {
			all = append(all, candidate{Conn: name, Kind: connlimit.Unfinished, Since: int64(100 + i), Network: network})
		}
		return all
	}
	slow := candidate{Conn: "slow", Kind: connlimit.Unfinished, Since: 1, Network: other}
	idle := candidate{Conn: "idle", Kind: connlimit.Idle, Since: 2, Network: other}
	for name, c := range map[string]struct {
		limit, n int
		all      []candidate
		want     []string
	}{
		"nobody":                           {100, 1, nil, nil},
		"who is worked for stays":          {100, 1, []candidate{{Conn: "a", Kind: connlimit.Working}}, nil},
		"who lingers is first":             {100, 1, append(many(attacker, "a", 50), idle, candidate{Conn: "b", Kind: connlimit.Leaving, Since: 900}), []string{"b"}},
		"a network above its share":        {100, 1, append(many(attacker, "a", 17), idle, slow), []string{"a"}},
		"below it idle ones are first":     {100, 1, append(many(attacker, "a", 16), idle, slow), []string{"idle"}},
		"then whoever's network has most":  {100, 1, append(many(attacker, "a", 2), slow), []string{"a"}},
		"the slowest where all have one":   {100, 1, append(many(attacker, "a", 1), slow), []string{"slow"}},
		"two networks lose by turns":       {100, 3, append(many(attacker, "a", 3), many(carrier, "c", 2)...), []string{"a", "c", "a"}},
		"the share grows with the limit":   {1600, 1, append(many(attacker, "a", 100), idle), []string{"idle"}},
		"a connection of many requests":    {100, 1, append(many(carrier, "c", 10), idle, candidate{Conn: "h2", Kind: connlimit.Unfinished, Since: 999, Network: attacker, Weight: 50}), []string{"h2"}},
		"no more than hold above a share":  {100, 9, append(many(attacker, "a", 18), idle), []string{"a", "a"}},
		"of idle ones the oldest are gone": {100, 2, []candidate{{Conn: "3", Kind: connlimit.Idle, Since: 3}, {Conn: "1", Kind: connlimit.Idle, Since: 1}, {Conn: "2", Kind: connlimit.Idle, Since: 2}}, []string{"1", "2"}},
	} {
		var p connlimit.Picker[string]
		for range 2 { // it forgets
			for _, one := range c.all {
				p.Add(one)
			}
			if got := p.Pick(c.n, c.limit); !cmp.Equal(got, c.want) {
				t.Errorf("%s: %v, want %v", name, got, c.want)
			}
		}
	}
}
