package hosts_test

import (
	"testing"

	"curt/internal/hosts"
)

func TestHostsOfOurOwn(t *testing.T) {
	h := hosts.NewNames("Go.Example:8443", "", "[2001:db8::7]", "dotted.example.")
	for host, want := range map[string]bool{
		"go.example": true, "GO.example:80": true, "go.example.": true, "go.example.:80": true, "dotted.example": true,
		"localhost": true, "localhost:8080": true, "LOCALHOST": true, "app.localhost": true, "app.localhost.:1": true,
		"192.0.2.1": true, "192.0.2.1:8080": true, "[2001:db8::1]": true, "[2001:db8::1]:8080": true, "2001:db8::7": true,
		"": false, ":8080": false, "example": false, "evil.go.example": false, "go.example.evil": false,
		"notlocalhost": false, "localhost.evil": false, "192.0.2.1.evil": false, "go.example:80:80": false, ".": false,
	} {
		if got := h.Own(host); got != want {
			t.Errorf("%q is ours: %t, want %t", host, got, want)
		}
	}
}
