package settings

import (
	"errors"
	"testing"
	"time"

	"curt/internal/config"
	"curt/internal/ratelimit"
)

func TestLimitsOfRedirects(t *testing.T) {
	network, link := ratelimit.Per(100, time.Second), ratelimit.Per(1000, time.Minute)
	for text, want := range map[string]VisitLimits{
		"": {}, "off": {}, "network=100/s": {Network: &network}, "link=1000/m": {Link: &link},
		"network=100/s,link=1000/m": {&network, &link}, "link=1000/m, network=100/s": {&network, &link},
	} {
		got, err := visitLimits(config.Config{RedirectLimit: text})
		if err != nil || !same(got.Network, want.Network) || !same(got.Link, want.Link) {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"100/s", "host=1/s", "network", "network=off", "network=1/s,", "link=1/s,link=2/s", "network=0/s", "network=1/s;link=1/s", "Network=1/s"} {
		got, err := visitLimits(config.Config{RedirectLimit: text})
		if wrong, ok := errors.AsType[*config.Error](err); !ok || wrong.Setting != "CURT_REDIRECT_LIMIT" || got != (VisitLimits{}) {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
}

func same(a, b *ratelimit.Limit) bool { return a == b || a != nil && b != nil && *a == *b }
