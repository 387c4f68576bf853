package main

import (
	"fmt"
	"net/netip"
	"net/url"
	"os"
	"strings"

	"curt/client"
)

// api is how the client commands reach a server; embedded in each.
type api struct {
	Server  string `default:"http://127.0.0.1:8080" env:"CURT_SERVER" help:"Address of the server."`
	Key     string `env:"CURT_API_KEY" help:"API key. Unset, and the server is on this machine: the one in the key file, if it can be read."`
	KeyFile string `default:"data/admin.key" env:"CURT_API_KEY_FILE" type:"path" help:"File that holds an API key."`
}

func (a api) client() (*client.Client, error) {
	key := a.Key
	if key == "" && a.isLocal() {
		// Whoever can read the key file may use it; without it the call is anonymous.
		if text, err := os.ReadFile(a.KeyFile); err == nil {
			key = strings.TrimSpace(string(text))
		}
	}
	c, err := client.New(a.Server, client.WithKey(key))
	if err != nil {
		return nil, fmt.Errorf("CURT_SERVER: %w", err)
	}
	return c, nil
}

// isLocal reports whether the server is on this machine: the key of a local file
// must never travel to a stranger.
func (a api) isLocal() bool {
	u, err := url.Parse(a.Server)
	if err != nil {
		return false
	}
	addr, err := netip.ParseAddr(u.Hostname())
	return u.Hostname() == "localhost" || (err == nil && addr.IsLoopback())
}
