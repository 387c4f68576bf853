// Package hoststest makes hosts for tests.
package hoststest

import (
	"strings"
	"testing"

	"curt/internal/hosts"
	"curt/internal/link"
)

// New returns the hosts of a service with a base URL, such as https://curt.test, and further
// domains.
func New(tb testing.TB, base string, domains ...link.Domain) *hosts.Current {
	tb.Helper()
	scheme, host, _ := strings.Cut(base, "://")
	return Of(tb, hosts.Config{Scheme: scheme, Host: link.Domain(host), Domains: domains})
}

// Of returns the hosts of a configuration.
func Of(tb testing.TB, c hosts.Config) *hosts.Current {
	tb.Helper()
	if c.Scheme == "" {
		c.Scheme = "https"
	}
	t, err := hosts.New(c)
	if err != nil {
		tb.Fatal(err)
	}
	return hosts.NewCurrent(t)
}
