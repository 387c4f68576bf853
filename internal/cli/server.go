package cli

import (
	"fmt"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"curt.example/client"
	"curt/internal/config"
)

// API has the flags with which a command reaches a server; embedded in each client command.
type API struct {
	Server  string `default:"http://127.0.0.1:8080" env:"CURT_SERVER" help:"URL of the server."`
	Key     string `env:"CURT_API_KEY" help:"API key. Unset: the key in the key file, if the server is on this machine."`
	KeyFile string `env:"CURT_API_KEY_FILE" type:"path" help:"File that contains an API key. Unset: data/admin.key, if readable."`
}

// Client returns a client of the server.
func (a API) Client() (*client.Client, error) {
	key, err := a.key()
	if err != nil {
		return nil, err
	}
	c, err := client.New(a.Server, client.WithKey(key))
	if err != nil {
		return nil, &config.Error{Setting: "CURT_SERVER", Value: config.Redact(a.Server), Want: "expected http://host or https://host"}
	}
	return c, nil
}

// key returns the key to call with, "" for none.
func (a API) key() (string, error) {
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
		case a.KeyFile != "": // without the default file the call is anonymous
			return "", &config.Error{Setting: "CURT_API_KEY_FILE", Value: name, Want: err.Error()}
		}
	}
	key = strings.TrimSpace(key)
	if strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", &config.Error{Setting: setting, Value: value, Want: "expected a key as printed by curt keys create"}
	}
	return key, nil
}

// isLocal reports whether the server is on this machine: the key of a local file must never
// be sent to another machine.
func (a API) isLocal() bool {
	u, err := url.Parse(a.Server)
	if err != nil {
		return false
	}
	addr, err := netip.ParseAddr(u.Hostname())
	return u.Hostname() == "localhost" || (err == nil && addr.IsLoopback())
}

// LinkArg names a link; embedded in the commands about one.
type LinkArg struct {
	Code string `arg:"" help:"Code of the link, or its short URL."`
}

// Target returns the code of the link, and the option that selects its domain.
func (a LinkArg) Target() (code string, where client.LinkOption, err error) {
	code, domain, err := ParseLink(a.Code)
	return code, client.OnDomain(domain), err
}

// OneLink is embedded in the commands about one link of a server.
type OneLink struct {
	API
	LinkArg
}

// Open returns the client, and the link as its methods take it.
func (o OneLink) Open() (api *client.Client, code string, where client.LinkOption, err error) {
	if code, where, err = o.Target(); err != nil {
		return nil, "", nil, err
	}
	api, err = o.Client()
	return api, code, where, err
}

// ParseLink reads the name of a link: its code, or its short URL, whose host is the domain.
func ParseLink(name string) (code, domain string, err error) {
	u, err := url.Parse(name)
	if err != nil || u.Host == "" {
		code = name
	} else {
		code, domain = strings.TrimPrefix(u.Path, "/"), u.Host
	}
	if code == "" || strings.Contains(code, "/") {
		return "", "", UsageError(fmt.Sprintf("%q is neither a code nor a short URL", name))
	}
	return code, domain, nil
}
