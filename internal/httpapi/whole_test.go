package httpapi_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

func TestWholeNumbersInEverySpelling(t *testing.T) {
	s := newService(t)
	for spelling, want := range map[string]float64{
		"5": 5, "5.0": 5, "5.000": 5, "0.5e1": 5, "50e-1": 5, "500.00E-2": 5, "5e0": 5, "5E+0": 5, "1e3": 1000,
		"9007199254740991": 1<<53 - 1, "9007199254740991.0": 1<<53 - 1, "0.9007199254740991e16": 1<<53 - 1,
		"1" + strings.Repeat("0", 300) + "e-300": 1,
	} {
		got := s.create(t, "admin", `{"long_url":"http://example.com","max_clicks":`+spelling+`}`)
		if got["max_clicks"] != want {
			t.Errorf("%.30s: %v, want %v", spelling, got["max_clicks"], want)
		}
	}
	if got := s.create(t, "admin", `{"long_url":"http://example.com","redirect_status":3.01e2}`); got["redirect_status"] != 301.0 {
		t.Errorf("redirect_status %v", got["redirect_status"])
	}
	before := s.stored(t)
	for _, spelling := range []string{
		"5.5", "5.00000000000000000000000000001", "9007199254740990.9999", "1e-1", "0", "-0", "-0.0", "0e99", "-5", "-5.0",
		"1e19", "1e400", "1e9223372036854775808", "1e-9223372036854775809", "9223372036854775807", "9223372036854775808",
		"1e99999999999999999999999999", "0.1e-9223372036854775808", `"5"`, "true", "[5]", "+5", "05", "5.", ".5", "0x5", "NaN",
	} {
		got := s.do(t, "admin", http.MethodPost, collection, fmt.Sprintf(`{"long_url":"http://example.com","max_clicks":%s}`, spelling))
		if got.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: %d", spelling, got.StatusCode)
		}
	}
	if after := s.stored(t); after != before {
		t.Errorf("%d links were stored", after-before)
	}
}
