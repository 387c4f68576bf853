// Package config declares every setting of `curt serve` once, in [Config]. The
// struct's tags give the flag, the environment variable, the key of the TOML file,
// the help and docs/configuration.md. [Flags] reads them, and refuses what it does
// not know; [Config.Validate] says what is wrong, in one line a problem.
//
// Only cmd and server import this package: everything below takes its own small
// configuration, so that it can be used and tested without this one.
package config

import (
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Config is what an operator may set. Flags win over the environment, which wins
// over the file. The tag secret hides a value wherever it would be shown; only a
// setting with the tag empty may be set to nothing, which is then as good as unset:
// elsewhere an empty value is a variable that somebody forgot to fill.
type Config struct {
	Listen         string        `default:"127.0.0.1:8080" env:"CURT_LISTEN" help:"Address that serves links and the API."`
	APIListen      string        `name:"api-listen" env:"CURT_API_LISTEN" help:"Address of the API. Unset: it answers beside the links; set: only there." empty:"none"`
	AdminListen    string        `default:"127.0.0.1:9090" env:"CURT_ADMIN_LISTEN" help:"Address of metrics, health and pprof; never give it to strangers. Empty: none." empty:"none"`
	Data           string        `default:"./data" env:"CURT_DATA" type:"path" help:"Folder of the databases, the click log and the admin key."`
	BaseURL        string        `env:"CURT_BASE_URL" help:"URL that short links begin with. Unset: http://localhost:PORT." empty:"none"`
	Domains        []string      `env:"CURT_DOMAINS" help:"Further hosts that serve links, separated by commas." empty:"none"`
	StrictHost     *bool         `env:"CURT_STRICT_HOST" negatable:"" help:"Follow links at configured hosts only, those of CURT_BASE_URL and CURT_DOMAINS: others get 404 and not the default domain. Unset: where CURT_BASE_URL is set, and then localhost and the address that CURT_LISTEN names are followed, too."`
	AdminKey       string        `env:"CURT_ADMIN_KEY" help:"Key that may do everything, at least 27 characters that begin with curt_. Unset: made at the first start and written to DATA/admin.key." secret:""`
	AdminKeyFile   string        `env:"CURT_ADMIN_KEY_FILE" type:"path" help:"File that holds the admin key."`
	Anonymous      *bool         `env:"CURT_ANONYMOUS" negatable:"" help:"Let anybody make links, as often as CURT_LIMITS says. Unset: only on a loopback listener."`
	Limits         string        `env:"CURT_LIMITS" help:"Limits of creates by plan, as free=10/m+100/h,anonymous=off. Units are s, m, h and d; plans are anonymous, free, verified, registered and default. Unset: 10/m, 10/m+100/h, 100/m, 10000/d and none." empty:"none"`
	Blocklists     []string      `env:"CURT_BLOCKLISTS" type:"path" help:"Files of what no link may lead to, separated by commas: hosts files, hosts, URLs or SHA-256 on each line, Adblock syntax, URLhaus CSV. Read anew when they change, and at SIGHUP." empty:"none"`
	Allowlists     []string      `env:"CURT_ALLOWLISTS" type:"path" help:"Files, in the same formats, of what is good whatever blocklists and other signals say." empty:"none"`
	ReservedWords  []string      `env:"CURT_RESERVED_WORDS" type:"path" help:"Files of aliases that are kept for the operator, separated by commas: on each line word, word* for all that begin so, or ~word for all that read like it. Read anew when they change, and at SIGHUP." empty:"none"`
	RefusedWords   []string      `env:"CURT_REFUSED_WORDS" type:"path" help:"Files, in the same format, of aliases that nobody gets; generated codes avoid both." empty:"none"`
	Shorteners     string        `default:"warn" env:"CURT_SHORTENERS" help:"Links to other services of short links: allow, warn visitors, or refuse."`
	ShortenersFile string        `env:"CURT_SHORTENERS_FILE" type:"path" help:"File of further such services, a host on each line; a line that begins with - takes a known one out." empty:"none"`
	Brands         string        `env:"CURT_BRANDS" type:"path" help:"File of further names that are imitated, with their own domains; what a line says is in docs/operations.md." empty:"none"`
	PrivateTargets string        `name:"private-targets" default:"allow" env:"CURT_PRIVATE_TARGETS" help:"Links to addresses and names of private networks: allow, warn visitors, or refuse."`
	Weights        string        `env:"CURT_WEIGHTS" help:"Points that signals add, 0 to 100, as login_words=10,velocity=0. Unset: the table in docs/operations.md." empty:"none"`
	Thresholds     string        `env:"CURT_THRESHOLDS" help:"Scores above which links are treated so, as warn=100,quarantine=60,block=85, which is the default; 100 is never." empty:"none"`
	UnknownLimit   string        `default:"300/m" env:"CURT_UNKNOWN_LIMIT" help:"Unknown codes that one address (IPv6: /64) may ask for before it is answered 429, or off."`
	Recheck        Days          `default:"24h" env:"CURT_RECHECK" help:"How often all links are judged again; a new version of a blocklist brings it forward. 0: never."`
	CodeLength     int           `default:"7" env:"CURT_CODE_LENGTH" help:"Length of generated codes, 4 to 10; random and hash make longer ones when the space is crowded."`
	TrustedProxies []string      `env:"CURT_TRUSTED_PROXIES" help:"CIDRs whose X-Forwarded-For is believed, separated by commas." empty:"none"`
	ProxyProtocol  bool          `env:"CURT_PROXY_PROTOCOL" help:"Expect a PROXY header, version 1 or 2, on every connection of a trusted proxy."`
	Lane           string        `default:"on" env:"CURT_LANE" help:"on: plain requests are answered in front of net/http; off: all go through it."`
	MaxConnections int           `default:"20000" env:"CURT_MAX_CONNECTIONS" help:"Open connections of the main listener, with the lane and without it; above it those that are unfinished or idle are closed to make room. CURT_API_LISTEN has a quarter as many of its own. The limit of descriptors may lower both."`
	TLSCert        string        `env:"CURT_TLS_CERT" type:"path" help:"Certificate chain in PEM; with the key, the listeners of links and of the API speak TLS."`
	TLSKey         string        `env:"CURT_TLS_KEY" type:"path" help:"Private key of the certificate in PEM."`
	HSTS           Days          `name:"hsts" default:"0s" env:"CURT_HSTS" help:"How long browsers shall ask this server's hosts by https only (Strict-Transport-Security), as 365d; it cannot be taken back sooner. 0s: nothing is said."`
	Contacts       []string      `name:"security-contact" env:"CURT_SECURITY_CONTACT" help:"Whom to tell about holes in this installation, as mailto:security@example.com or https://…, separated by commas; shown at /.well-known/security.txt. Unset: there is none." empty:"none"`
	DrainDelay     time.Duration `default:"0s" env:"CURT_DRAIN_DELAY" help:"How long /readyz says no before a stopping server closes its listener."`
	DrainLimit     time.Duration `default:"5s" env:"CURT_DRAIN_LIMIT" help:"How long a stopping server waits for its connections."`
	Fold           string        `default:"on" env:"CURT_FOLD" help:"on, or pause: clicks wait in the click log."`
	FoldInterval   time.Duration `default:"10s" env:"CURT_FOLD_INTERVAL" help:"How often counted clicks are written to the database."`
	ClickDetail    string        `default:"statistics" env:"CURT_CLICK_DETAIL" help:"What is kept of a visitor's headers, on disk and in Kafka. statistics: what statistics show, which is the referrer's host, UTM fields, device, browser, system and first language. referrer-path: the referrer's path, too. full: User-Agent, Referer, Accept-Language and the query as they were sent, with the tokens and addresses of mail in them; see docs/privacy.md."`
	ClickLogMax    Size          `default:"10GiB" env:"CURT_CLICK_LOG_MAX" help:"Bound of the click log on disk."`
	RawRetention   Days          `default:"30d" env:"CURT_RAW_RETENTION" help:"How long raw clicks are kept, as 30d or 720h."`
	RawRetentionOf string        `name:"raw-retention-of" env:"CURT_RAW_RETENTION_OF" help:"How long the raw clicks of some workspaces are kept in ClickHouse, as acme=90d,trial=7d, for 2d or more. Unset: all as CURT_RAW_RETENTION says." empty:"none"`
	GeoIP          string        `name:"geoip" default:"" env:"CURT_GEOIP" type:"path" help:"File of places, any .mmdb; read anew when it changes. Unset: countries and cities are unknown." empty:"none"`
	CacheSize      Size          `default:"64MiB" env:"CURT_CACHE_SIZE" help:"Memory for cached links."`
	LogLevel       string        `default:"info" env:"CURT_LOG_LEVEL" help:"debug, info, warn or error."`

	ReportLimit      string `default:"10/h" env:"CURT_REPORT_LIMIT" help:"Reports of links that one address (IPv6: /64) may send, or off."`
	AppealLimit      string `default:"5/h" env:"CURT_APPEAL_LIMIT" help:"Appeals that one address (IPv6: /64) may send, or off."`
	ReviewDue        Days   `default:"5m" env:"CURT_REVIEW_DUE" help:"How long a link may wait for a moderator before it is overdue."`
	ReportQuarantine int    `default:"0" env:"CURT_REPORT_QUARANTINE" help:"Networks (IPv4 /24, IPv6 /48) that have to report a link on one day (UTC) before its visitors are warned until a moderator has decided. 0: reports alone stop nothing."`
	ReportRetention  Days   `default:"90d" env:"CURT_REPORT_RETENTION" help:"How long after the decision the texts of reports and appeals are kept, as 90d or 720h."`

	Role            []string      `default:"all" env:"CURT_ROLE" help:"What this server does: all, or some of redirect (follow links), api (API, dashboard, pages) and worker (what nobody waits for), separated by commas. Servers with fewer than all share CURT_LINKS=postgres://…."`
	Links           string        `default:"sqlite" env:"CURT_LINKS" help:"Link store: sqlite, or postgres://user@host/database for PostgreSQL 15 or newer, with several hosts separated by commas. What is kept beside links is there, too, but for CURT_ACCOUNTS."`
	LinksConns      int           `name:"links-connections" default:"12" env:"CURT_LINKS_CONNECTIONS" help:"Connections that this server opens to the database of CURT_LINKS at the most, 6 to 1000: a third for writes, the rest for reads; as many as for reads to each standby."`
	LinksReplicas   []string      `name:"links-replicas" env:"CURT_LINKS_REPLICAS" help:"Standbys of CURT_LINKS that look-ups may ask, separated by commas: postgres://user@host/database, one host each." empty:"none"`
	LinksReplicaLag time.Duration `name:"links-replica-lag" default:"5s" env:"CURT_LINKS_REPLICA_LAG" help:"How far a standby may be behind to be asked, 1s to 1m."`
	Accounts        string        `env:"CURT_ACCOUNTS" help:"Store of keys, shares, idempotency keys, decisions and reviews, where links have none yet: postgres://user@host/database, for these links alone. Unset: beside the links." empty:"none"`
	Cache           string        `env:"CURT_CACHE" help:"Redis 7 or newer that servers over one CURT_LINKS share, as redis://user:password@host:6379/0 or rediss:// (TLS): links, changes, limits. Further nodes of a Cluster, or Sentinels with master_set=NAME: ?addr=host:port for each. Unset: each for itself." empty:"none"`
	CacheWarm       bool          `name:"cache-warm" env:"CURT_CACHE_WARM" help:"Put each new link into CURT_CACHE when it is made, for links whose first visitors come at once and to any server."`
	Events          string        `env:"CURT_EVENTS" help:"Kafka that clicks go through to ClickHouse, as kafka://user:password@host:9092,host:9092/topic, with ?tls=true, ?ca=FILE, ?cert=FILE&key=FILE, and ?sasl=plain, scram-sha-256 or scram-sha-512; curt migrate makes the topic. Unset: the servers count clicks themselves." empty:"none"`
	Analytics       string        `env:"CURT_ANALYTICS" help:"Store of statistics: postgres://user@host/database, which several servers count into, or clickhouse://user:password@host:9000/database, which CURT_EVENTS leads to; CURT_LINKS must name a database, too. Unset: DATA/clicks.db." empty:"none"`
	Archive         string        `env:"CURT_ARCHIVE" help:"Archive of clicks. Unset: none." empty:"none"`
	IDs             string        `name:"ids" env:"CURT_IDS" help:"Who leases ids. Unset: the link store." empty:"none"`
	Writes          string        `default:"sync" env:"CURT_WRITES" help:"sync: an answered link is durable."`
	Codes           string        `default:"range" env:"CURT_CODES" help:"How codes are made: range, random, or hash of where the link leads."`

	// SQLiteSynchronous exists for the tests that show what FULL is for.
	SQLiteSynchronous string `name:"sqlite-synchronous" default:"FULL" env:"CURT_SQLITE_SYNCHRONOUS" hidden:""`
}

// SQLite is the embedded link store.
const SQLite = "sqlite"

// Hidden stands for the value of a secret.
const Hidden = "***"

// Error is a setting that the operator has to put right. It is one line, whatever
// the value is.
type Error struct {
	Setting string // the environment variable, or what names the setting
	Value   string // [Hidden] for secrets
	Want    string // what would be right
	Origin  string // where it is set, if Setting does not say it; "" = it does
}

// Error returns one line.
func (e *Error) Error() string {
	text := e.Setting + "=" + printable(e.Value) + ": " + strings.Join(strings.Fields(e.Want), " ")
	// A URL may have come to a setting that is for none.
	text = regexp.MustCompile(`([a-z]://)[^\s"]*@`).ReplaceAllString(text, "$1"+Hidden+"@")
	if e.Origin != "" {
		text += " (" + e.Origin + ")"
	}
	return text
}

// printable bounds a value and quotes it if it would break the line.
func printable(s string) string {
	const most = 200
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "..."
	}
	if q := strconv.Quote(s); q != `"`+s+`"` {
		return q
	}
	return s
}

// Redact hides the secrets of a URL that is shown.
func Redact(s string) string { return redact(s) }

// redact hides what stands before the last @ and behind the first ?, where URLs have
// their passwords, what a URL has for a port that is no number, and the value of a
// password in libpq's key=value form. It looks at no syntax: a wrong URL must not show one
// either: one that has an @ behind a ? may have it in a password, and is not shown at all.
func redact(s string) string {
	if before, after, ok := cutLast(s, "@"); ok {
		scheme, _, found := strings.Cut(before, "://")
		s = Hidden + "@" + after
		if strings.Contains(before, "?") {
			s = Hidden
		}
		if found {
			s = scheme + "://" + s
		}
	}
	if before, _, ok := strings.Cut(s, "?"); ok {
		s = before + "?" + Hidden
	}
	s = regexp.MustCompile(`^([a-z]+://[^/:@\[]*):[^/,@]*[^/,@0-9][^/,@]*`).ReplaceAllString(s, "$1:"+Hidden)
	return password().ReplaceAllString(s, "$1"+Hidden)
}

// password finds one in key=value form, which may stand in quotes.
func password() *regexp.Regexp {
	return regexp.MustCompile(`(?i)(pass[a-z]*\s*=\s*)('([^'\\]|\\.)*'?|\S+)`)
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}
