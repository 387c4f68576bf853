package config_test

import (
	"strings"
	"testing"

	"curt/internal/config"
)

func TestRetentions(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", ""},
		{" , ", ""},
		{"acme=90d, trial=49h", ""},
		{"acme", "WORKSPACE=DURATION"},
		{"=9d", "WORKSPACE=DURATION"},
		{"acme=", "such as 30d"},
		{"acme=-9d", "such as 30d"},
		{"acme=1d", "2d or more"},
		{"acme=47h59m", "2d or more"},
		{"acme=9d,acme=9d", "twice"},
		{"acme=9d=9d", "such as 30d"},
	} {
		_, err := config.Config{RawRetentionOf: c.text}.Retentions()
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%q: %v, want one that says %q", c.text, err, c.want)
		}
	}
	cfg, err := parse(t, "--raw-retention=30h", "--raw-retention-of=acme=90d,trial=49h")
	if err != nil {
		t.Fatal(err)
	}
	keep, err := cfg.Retentions()
	if err != nil || keep.Of("acme") != 90 || keep.Of("trial") != 3 || keep.Of("other") != 2 || keep.Of("") != 2 || keep.Least() != 2 {
		t.Errorf("%+v, %v", keep, err)
	}
}
