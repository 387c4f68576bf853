package clicks_test

import (
	"testing"

	"curt/internal/clicks"
)

func TestParseCountry(t *testing.T) {
	for in, want := range map[string]string{
		"DE": "DE", "de": "DE", "dE": "DE", "XK": "XK", "GB": "GB",
		"": "", "D": "", "DEU": "", "XX": "", "xx": "", "ZZ": "", "T1": "", "12": "", "D ": "", " D": "", "D,": "", "D\x00": "", "D\xe5": "", "ü": "", "\xc4\xc5": "", "[{": "", "@`": "", "DE,US": "", "(other)": "",
	} {
		code := clicks.ParseCountry(in)
		got := ""
		if code != ([2]byte{}) {
			got = string(code[:])
		}
		if got != want || clicks.ParseCountry([]byte(in)) != code {
			t.Errorf("%q is %q, want %q", in, got, want)
		}
	}
}
