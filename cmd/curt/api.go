package main

import (
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"curt.example/client"
	"curt/internal/config"
)

// api is how the client commands reach a server; embedded in each.
type api struct {
	Server  string `default:"http://127.0.0.1:8080" env:"CURT_SERVER" help:"Address of the server."`
	Key     string `env:"CURT_API_KEY" help:"API key. Unset, and the server is on this machine: the one in the key file."`
	KeyFile string `env:"CURT_API_KEY_FILE" type:"path" help:"File that holds an API key. Unset: data/admin.key, if it can be read."`
}

func (a api) client() (*client.Client, error) {
	key, err := a.key()
	if err != nil {
		return nil, err
	}
	c, err := client.New(a.Server, client.WithKey(key))
	if err != nil {
		return nil, &config.Error{Setting: "CURT_SERVER", Value: config.Redact(a.Server), Want: "want http://host or https://host"}
	}
	return c, nil
}

// key returns the key to call with, "" for none.
func (a api) key() (string, error) {
	key, setting, value := a.Key, "CURT_API_KEY", config.Hidden
	if key == "" && a.isLocal() {
		name := a.KeyFile
		if name == "" {
			name = filepath.Join("data", "admin.key")
		}
		text, err := os.ReadFile(name)
		switch {
		case err == nil:
			key, setting, value = string(text), "CURT_API_KEY_FILE", name
		case a.KeyFile != "": // without the default one the call is anonymous
			return "", &config.Error{Setting: "CURT_API_KEY_FILE", Value: name, Want: err.Error()}
		}
	}
	key = strings.TrimSpace(key)
	if strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", &config.Error{Setting: setting, Value: value, Want: "want a key as curt keys create prints it"}
	}
	return key, nil
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
