// Package config declares every setting of `curt serve` once. The struct's tags
// give the flag, the environment variable, the key of the TOML file and the help;
// Validate says what is wrong, in one line a problem.
//
// Only cmd and server import this package: everything below takes its own small
// configuration, so that it can be used and tested without this one.
package config

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Config is what an operator may set. Flags win over the environment, which wins
// over the file.
type Config struct {
	Listen         string        `default:"127.0.0.1:8080" env:"CURT_LISTEN" help:"Address that serves links and the API."`
	APIListen      string        `name:"api-listen" env:"CURT_API_LISTEN" help:"Address of the API. Unset: it answers beside the links; set: only there."`
	AdminListen    string        `default:"127.0.0.1:9090" env:"CURT_ADMIN_LISTEN" help:"Address of metrics, health and pprof; never give it to strangers. Empty: none."`
	Data           string        `default:"./data" env:"CURT_DATA" type:"path" help:"Folder of the databases, the click log and the admin key."`
	BaseURL        string        `env:"CURT_BASE_URL" help:"URL that short links begin with. Unset: http://localhost:PORT."`
	Domains        []string      `env:"CURT_DOMAINS" help:"Further hosts that serve links, separated by commas."`
	StrictHost     bool          `env:"CURT_STRICT_HOST" help:"Answer 404 to hosts that are not configured, instead of the default domain."`
	AdminKey       string        `env:"CURT_ADMIN_KEY" help:"Key that may do everything, at least 27 characters that begin with curt_. Unset: made at the first start and written to DATA/admin.key."`
	AdminKeyFile   string        `env:"CURT_ADMIN_KEY_FILE" type:"path" help:"File that holds the admin key."`
	Anonymous      *bool         `env:"CURT_ANONYMOUS" negatable:"" help:"Let anybody make links, as often as CURT_LIMITS says. Unset: only on a loopback listener."`
	Limits         string        `env:"CURT_LIMITS" help:"Limits of creates by plan, as free=10/m+100/h,anonymous=off. Units are s, m, h and d; plans are anonymous, free, verified, registered and default. Unset: 10/m, 10/m+100/h, 100/m, 10000/d and none."`
	UnknownLimit   string        `default:"300/m" env:"CURT_UNKNOWN_LIMIT" help:"Unknown codes that one address (IPv6: /64) may ask for before it is answered 429, or off."`
	CodeLength     int           `default:"7" env:"CURT_CODE_LENGTH" help:"Length of generated codes, 4 to 10; random and hash make longer ones when the space is crowded."`
	TrustedProxies []string      `env:"CURT_TRUSTED_PROXIES" help:"CIDRs whose X-Forwarded-For is believed, separated by commas."`
	ProxyProtocol  bool          `env:"CURT_PROXY_PROTOCOL" help:"Expect a PROXY header, version 1 or 2, on every connection of a trusted proxy."`
	Lane           string        `default:"on" env:"CURT_LANE" help:"on: plain requests are answered in front of net/http; off: all go through it."`
	MaxConnections int           `default:"20000" env:"CURT_MAX_CONNECTIONS" help:"Open connections of the main listener; above it those that are idle longest are closed. The limit of descriptors may lower it."`
	TLSCert        string        `env:"CURT_TLS_CERT" type:"path" help:"Certificate chain in PEM; with the key, the listener speaks TLS."`
	TLSKey         string        `env:"CURT_TLS_KEY" type:"path" help:"Private key of the certificate in PEM."`
	DrainDelay     time.Duration `default:"0s" env:"CURT_DRAIN_DELAY" help:"How long /readyz says no before a stopping server closes its listener."`
	DrainLimit     time.Duration `default:"5s" env:"CURT_DRAIN_LIMIT" help:"How long a stopping server waits for its connections."`
	Fold           string        `default:"on" env:"CURT_FOLD" help:"on, or pause: clicks wait in the click log."`
	FoldInterval   time.Duration `default:"10s" env:"CURT_FOLD_INTERVAL" help:"How often counted clicks are written to the database."`
	ClickLogMax    Size          `default:"10GiB" env:"CURT_CLICK_LOG_MAX" help:"Bound of the click log on disk."`
	RawRetention   Days          `default:"30d" env:"CURT_RAW_RETENTION" help:"How long raw clicks are kept, as 30d or 720h."`
	GeoIP          string        `name:"geoip" env:"CURT_GEOIP" type:"path" help:"File of places, any .mmdb; read anew when it changes. Unset: countries and cities are unknown."`
	CacheSize      Size          `default:"64MiB" env:"CURT_CACHE_SIZE" help:"Memory for cached links."`
	LogLevel       string        `default:"info" env:"CURT_LOG_LEVEL" help:"debug, info, warn or error."`

	Links     string `default:"sqlite" env:"CURT_LINKS" help:"Link store: sqlite."`
	Accounts  string `env:"CURT_ACCOUNTS" help:"Store of keys and decisions. Unset: beside the links."`
	Cache     string `env:"CURT_CACHE" help:"Shared cache. Unset: in this process only."`
	Events    string `env:"CURT_EVENTS" help:"Click events. Unset: in this process."`
	Analytics string `env:"CURT_ANALYTICS" help:"Store of statistics. Unset: DATA/clicks.db."`
	Archive   string `env:"CURT_ARCHIVE" help:"Archive of clicks. Unset: none."`
	IDs       string `name:"ids" env:"CURT_IDS" help:"Who leases ids. Unset: the link store."`
	Writes    string `default:"sync" env:"CURT_WRITES" help:"sync: an answered link is durable."`
	Codes     string `default:"range" env:"CURT_CODES" help:"How codes are made: range, random, or hash of where the link leads."`

	// SQLiteSynchronous exists for the tests that show what FULL is for.
	SQLiteSynchronous string `default:"FULL" env:"CURT_SQLITE_SYNCHRONOUS" hidden:""`
}

// maxConnections is what a machine with 5 GB to spare could hold idle.
const maxConnections = 1_000_000

// Error is a setting that the operator has to put right.
type Error struct {
	Setting string // the environment variable, or what names the setting
	Value   string // hidden for secrets
	Want    string // what would be right
}

// Error returns one line.
func (e *Error) Error() string { return fmt.Sprintf("%s=%s: %s", e.Setting, e.Value, e.Want) }

// Validate returns one error for each setting that is wrong, each naming the
// setting, its value and what would be right.
func (c Config) Validate() []error {
	var errs []error
	bad := func(name string, value any, want string) {
		errs = append(errs, &Error{name, fmt.Sprint(value), want})
	}
	if _, _, err := net.SplitHostPort(c.Listen); err != nil {
		bad("CURT_LISTEN", c.Listen, "want host:port, such as 127.0.0.1:8080 or :8080")
	}
	if _, _, err := net.SplitHostPort(c.AdminListen); c.AdminListen != "" && err != nil {
		bad("CURT_ADMIN_LISTEN", c.AdminListen, "want host:port, such as 127.0.0.1:9090, or nothing")
	}
	if _, _, err := net.SplitHostPort(c.APIListen); c.APIListen != "" && err != nil {
		bad("CURT_API_LISTEN", c.APIListen, "want host:port, such as 127.0.0.1:8081, or nothing")
	}
	if c.BaseURL != "" {
		if u, err := url.Parse(c.BaseURL); err != nil || (u.Scheme != "http" && u.Scheme != "https") ||
			u.Host == "" || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
			bad("CURT_BASE_URL", redact(c.BaseURL), "want http://host or https://host without a path")
		}
	}
	if c.CodeLength < 4 || c.CodeLength > 10 {
		bad("CURT_CODE_LENGTH", c.CodeLength, "want 4 to 10")
	}
	if c.MaxConnections < 1 || c.MaxConnections > maxConnections {
		bad("CURT_MAX_CONNECTIONS", c.MaxConnections, "want 1 to 1000000")
	}
	for _, p := range c.TrustedProxies {
		if _, err := netip.ParsePrefix(p); err != nil {
			bad("CURT_TRUSTED_PROXIES", p, "want CIDRs such as 10.0.0.0/8 or 192.0.2.7/32")
		}
	}
	if c.ProxyProtocol && len(c.TrustedProxies) == 0 {
		bad("CURT_PROXY_PROTOCOL", c.ProxyProtocol, "set CURT_TRUSTED_PROXIES too: nobody else's PROXY header is believed")
	}
	if c.AdminKey != "" && c.AdminKeyFile != "" {
		bad("CURT_ADMIN_KEY_FILE", c.AdminKeyFile, "CURT_ADMIN_KEY is set too; set one of them")
	}
	if (c.TLSCert == "") != (c.TLSKey == "") {
		bad("CURT_TLS_CERT", c.TLSCert, "certificate and key go together; set both or neither")
	}
	for name, d := range map[string]time.Duration{"CURT_DRAIN_DELAY": c.DrainDelay, "CURT_DRAIN_LIMIT": c.DrainLimit} {
		if d < 0 || d > 10*time.Minute {
			bad(name, d, "want 0 to 10m")
		}
	}
	if c.FoldInterval < 100*time.Millisecond || c.FoldInterval > 10*time.Minute {
		bad("CURT_FOLD_INTERVAL", c.FoldInterval, "want 100ms to 10m")
	}
	if c.ClickLogMax < 128<<20 {
		bad("CURT_CLICK_LOG_MAX", c.ClickLogMax, "want 128MiB or more (two segments)")
	}
	if c.CacheSize < 1<<20 {
		bad("CURT_CACHE_SIZE", c.CacheSize, "want 1MiB or more")
	}
	return append(errs, c.choices()...)
}

// choices checks the settings that name one of a few values. Backends that the
// design names and this release does not have stop the start here.
func (c Config) choices() []error {
	var errs []error
	for _, s := range []struct {
		name, value string
		allowed     []string
	}{
		{"CURT_LANE", c.Lane, []string{"on", "off"}},
		{"CURT_FOLD", c.Fold, []string{"on", "pause"}},
		{"CURT_LOG_LEVEL", c.LogLevel, []string{"debug", "info", "warn", "error"}},
		{"CURT_LINKS", c.Links, []string{"sqlite"}},
		{"CURT_WRITES", c.Writes, []string{"sync"}},
		{"CURT_CODES", c.Codes, []string{"range", "random", "hash"}},
		{"CURT_ACCOUNTS", c.Accounts, nil},
		{"CURT_CACHE", c.Cache, nil},
		{"CURT_EVENTS", c.Events, nil},
		{"CURT_ANALYTICS", c.Analytics, nil},
		{"CURT_ARCHIVE", c.Archive, nil},
		{"CURT_IDS", c.IDs, nil},
		{"CURT_SQLITE_SYNCHRONOUS", c.SQLiteSynchronous, []string{"FULL", "NORMAL"}},
	} {
		switch {
		case len(s.allowed) == 0 && s.value != "":
			errs = append(errs, &Error{s.name, redact(s.value), "this release has only the embedded one; unset it"})
		case len(s.allowed) > 0 && !slices.Contains(s.allowed, s.value):
			errs = append(errs, &Error{s.name, redact(s.value), "want " + strings.Join(s.allowed, " or ")})
		}
	}
	return errs
}

// redact hides the password of a URL.
func redact(s string) string {
	if u, err := url.Parse(s); err == nil {
		return u.Redacted()
	}
	return s
}
