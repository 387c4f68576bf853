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
	Listen           string        `default:"127.0.0.1:8080" env:"CURT_LISTEN" help:"Listen address for links and the API."`
	APIListen        string        `name:"api-listen" env:"CURT_API_LISTEN" help:"Separate listen address for the API. Unset: the API shares CURT_LISTEN." empty:"none"`
	AdminListen      string        `default:"127.0.0.1:9090" env:"CURT_ADMIN_LISTEN" help:"Listen address for metrics, health and pprof; keep it private. Empty: disabled." empty:"none"`
	Data             string        `default:"./data" env:"CURT_DATA" type:"path" help:"Folder for the databases, the click log and the admin key."`
	BaseURL          string        `env:"CURT_BASE_URL" help:"Base URL of short links. Unset: http://localhost:PORT." empty:"none"`
	Domains          []string      `env:"CURT_DOMAINS" help:"Additional domains for links, separated by commas." empty:"none"`
	StrictHost       *bool         `env:"CURT_STRICT_HOST" negatable:"" help:"Serve links only on the hosts of CURT_BASE_URL and CURT_DOMAINS; other hosts get 404 instead of the default domain. Unset: on if CURT_BASE_URL is set, with localhost and the address of CURT_LISTEN also allowed."`
	AdminKey         string        `env:"CURT_ADMIN_KEY" help:"API key with all permissions: at least 27 characters, starting with curt_. Unset: generated at the first start and written to DATA/admin.key." secret:""`
	AdminKeyFile     string        `env:"CURT_ADMIN_KEY_FILE" type:"path" help:"File that contains the admin key."`
	Anonymous        *bool         `env:"CURT_ANONYMOUS" negatable:"" help:"Allow creating links without an API key, limited by CURT_LIMITS. Unset: only on a loopback listener."`
	Limits           string        `env:"CURT_LIMITS" help:"Create limits by plan, such as free=10/m+100/h,anonymous=off. Units are s, m, h and d; plans are anonymous, free, verified, registered and default. Unset: 10/m, 10/m+100/h, 100/m, 10000/d and no limit." empty:"none"`
	Blocklists       []string      `env:"CURT_BLOCKLISTS" type:"path" help:"Files of blocked destinations, separated by commas: hosts files; lines of hosts, URLs or SHA-256 hashes; Adblock syntax; URLhaus CSV. Reloaded on change and on SIGHUP." empty:"none"`
	Allowlists       []string      `env:"CURT_ALLOWLISTS" type:"path" help:"Files of allowed destinations, in the same formats, which override blocklists and all other signals." empty:"none"`
	ReservedWords    []string      `env:"CURT_RESERVED_WORDS" type:"path" help:"Files of aliases reserved for the operator, separated by commas. Each line is word, word* for a prefix, or ~word for look-alikes. Reloaded on change and on SIGHUP." empty:"none"`
	RefusedWords     []string      `env:"CURT_REFUSED_WORDS" type:"path" help:"Files of forbidden aliases, in the same format. Generated codes avoid both lists." empty:"none"`
	AliasMin         int           `default:"3" env:"CURT_ALIAS_MIN" help:"Minimum length of a new alias, from 3 characters."`
	AliasMax         int           `default:"64" env:"CURT_ALIAS_MAX" help:"Maximum length of a new alias, up to 64 characters."`
	AliasAlphabet    string        `default:"A-Za-z0-9_-" env:"CURT_ALIAS_ALPHABET" help:"Characters and ranges of a new alias, such as a-z0-9-."`
	AliasReserved    int           `name:"alias-reservations" default:"20" env:"CURT_ALIAS_RESERVATIONS" help:"Maximum aliases that a workspace reserves at once, for 5 minutes each, up to 1000. 0: aliases cannot be reserved."`
	Shorteners       string        `default:"warn" env:"CURT_SHORTENERS" help:"Links to other URL shorteners: allow, warn visitors, or refuse."`
	ShortenersFile   string        `env:"CURT_SHORTENERS_FILE" type:"path" help:"File of additional URL shorteners, one host per line; a line that starts with - removes a built-in one." empty:"none"`
	Brands           string        `env:"CURT_BRANDS" type:"path" help:"File of additional brands that are imitated, with their domains; for the format see docs/operations.md." empty:"none"`
	PrivateTargets   string        `name:"private-targets" default:"allow" env:"CURT_PRIVATE_TARGETS" help:"Links to addresses and names of private networks: allow, warn visitors, or refuse."`
	Weights          string        `env:"CURT_WEIGHTS" help:"Points per signal, 0 to 100, such as login_words=10,velocity=0. Unset: the table in docs/operations.md." empty:"none"`
	Thresholds       string        `env:"CURT_THRESHOLDS" help:"Score thresholds of actions. Default: warn=100,quarantine=60,block=85; 100 means never." empty:"none"`
	UnknownLimit     string        `default:"300/m" env:"CURT_UNKNOWN_LIMIT" help:"Unknown codes that one address (IPv6: /64) may request before it gets 429, or off."`
	RedirectLimit    string        `default:"off" env:"CURT_REDIRECT_LIMIT" help:"Redirects that one address (IPv6: /64) or one link may get before visitors get 429, such as network=100/s,link=1000/s, or off. Servers with one CURT_CACHE grant it together."`
	Recheck          Days          `default:"24h" env:"CURT_RECHECK" help:"How often all links are rechecked; a changed blocklist triggers it sooner. 0: never."`
	ExpiredRetention Days          `default:"0s" env:"CURT_EXPIRED_RETENTION" help:"How long the content of an expired link (URL, title, tags) is kept after its end, such as 90d; then it cannot be revived, and its code stays taken. 0s: permanently."`
	CodeLength       int           `default:"7" env:"CURT_CODE_LENGTH" help:"Length of generated codes, 4 to 10; random and hash use longer codes when the space fills up."`
	TrustedProxies   []string      `env:"CURT_TRUSTED_PROXIES" help:"CIDRs of proxies whose X-Forwarded-For is trusted, separated by commas." empty:"none"`
	ProxyProtocol    bool          `env:"CURT_PROXY_PROTOCOL" help:"Expect a PROXY header, version 1 or 2, on every connection from a trusted proxy."`
	Lane             string        `default:"on" env:"CURT_LANE" help:"on: a fast path in front of net/http answers plain requests; off: net/http answers all."`
	MaxConnections   int           `default:"20000" env:"CURT_MAX_CONNECTIONS" help:"Maximum open connections of the main listener; above it idle and unfinished connections are evicted. CURT_API_LISTEN has a limit of its own, a quarter of this. The file descriptor limit may lower both."`
	TLSCert          string        `env:"CURT_TLS_CERT" type:"path" help:"Certificate chain in PEM. With the key, the link and API listeners use TLS."`
	TLSKey           string        `env:"CURT_TLS_KEY" type:"path" help:"Private key of the certificate in PEM."`
	HSTS             Days          `name:"hsts" default:"0s" env:"CURT_HSTS" help:"How long browsers use only https for this server's hosts (Strict-Transport-Security), such as 365d; it cannot be revoked earlier. 0s: no header."`
	Contacts         []string      `name:"security-contact" env:"CURT_SECURITY_CONTACT" help:"Contacts for vulnerability reports, such as mailto:security@example.com or https://…, separated by commas; published at /.well-known/security.txt. Unset: no such file." empty:"none"`
	DrainDelay       time.Duration `default:"0s" env:"CURT_DRAIN_DELAY" help:"How long /readyz reports not ready on shutdown before the listener closes."`
	DrainLimit       time.Duration `default:"5s" env:"CURT_DRAIN_LIMIT" help:"How long a shutdown waits for open connections."`
	Fold             string        `default:"on" env:"CURT_FOLD" help:"on, or pause: clicks stay in the click log uncounted."`
	FoldInterval     time.Duration `default:"10s" env:"CURT_FOLD_INTERVAL" help:"How often click counts are written to the database."`
	ClickDetail      string        `default:"statistics" env:"CURT_CLICK_DETAIL" help:"How much of a visitor's headers is stored, on disk and in Kafka. statistics: only what statistics show (referrer host, UTM fields, device, browser, operating system and first language). referrer-path: also the referrer's path. full: User-Agent, Referer, Accept-Language and the query as sent, including any tokens and e-mail addresses; see docs/privacy.md."`
	ClickLogMax      Size          `default:"10GiB" env:"CURT_CLICK_LOG_MAX" help:"Maximum size of the click log on disk."`
	RawRetention     Days          `default:"30d" env:"CURT_RAW_RETENTION" help:"Retention of raw clicks, such as 30d or 720h."`
	RawRetentionOf   string        `name:"raw-retention-of" env:"CURT_RAW_RETENTION_OF" help:"Retention of raw clicks in ClickHouse by workspace, such as acme=90d,trial=7d, at least 2d. Unset: CURT_RAW_RETENTION for all." empty:"none"`
	GeoIP            string        `name:"geoip" default:"" env:"CURT_GEOIP" type:"path" help:"GeoIP database, any .mmdb file; reloaded on change. Unset: countries come from the built-in table, cities are unknown." empty:"none"`
	GeoIPURL         string        `name:"geoip-url" env:"CURT_GEOIP_URL" help:"URL from which curt geoip update downloads CURT_GEOIP: an .mmdb file, also gzipped or in a .tar.gz; https, or http with --sha256." empty:"none"`
	Countries        string        `default:"on" env:"CURT_COUNTRIES" help:"on: the built-in table supplies countries that CURT_GEOIP does not; off: not used."`
	CountryHeader    string        `name:"country-header" env:"CURT_COUNTRY_HEADER" help:"Header in which trusted proxies send the visitor's country, such as CF-IPCountry or CloudFront-Viewer-Country; it overrides the country of the address. The proxy must replace a header of the client's."`
	CacheSize        Size          `default:"64MiB" env:"CURT_CACHE_SIZE" help:"Memory for cached links."`
	LogLevel         string        `default:"info" env:"CURT_LOG_LEVEL" help:"debug, info, warn or error."`

	ReportLimit      string `default:"10/h" env:"CURT_REPORT_LIMIT" help:"Reports that one address (IPv6: /64) may send, or off."`
	AppealLimit      string `default:"5/h" env:"CURT_APPEAL_LIMIT" help:"Appeals that one address (IPv6: /64) may send, or off."`
	ReviewDue        Days   `default:"5m" env:"CURT_REVIEW_DUE" help:"How long a review may wait for a moderator before it is overdue."`
	ReportQuarantine int    `default:"0" env:"CURT_REPORT_QUARANTINE" help:"Number of networks (IPv4 /24, IPv6 /48) that must report a link within one day (UTC) to quarantine it until a moderator decides. 0: reports alone have no effect."`
	ReportRetention  Days   `default:"90d" env:"CURT_REPORT_RETENTION" help:"Retention of the texts of reports and appeals after the decision, such as 90d or 720h."`

	Role            []string      `default:"all" env:"CURT_ROLE" help:"Roles of this server: all, or some of redirect (redirects), api (API, dashboard, pages), worker (background work), keys (generates the keys of CURT_CODES=pool) and writer (writes the links of CURT_WRITES=queued), separated by commas. Servers with only some roles require a CURT_LINKS that servers share."`
	Links           string        `default:"sqlite" env:"CURT_LINKS" help:"Link store: sqlite; postgres://user@host/database for PostgreSQL 15 or newer, with several hosts separated by commas; or dynamodb://table?region=region for Amazon DynamoDB, with curt migrate first, which takes &tags=name:value,… and &protection=off. Accounts are stored there too, unless CURT_ACCOUNTS is set; DynamoDB requires that."`
	LinksConns      int           `name:"links-connections" default:"12" env:"CURT_LINKS_CONNECTIONS" help:"Maximum connections to the database of CURT_LINKS, 6 to 1000: a third for writes, the rest for reads. Each standby gets as many as the reads."`
	LinksReplicas   []string      `name:"links-replicas" env:"CURT_LINKS_REPLICAS" help:"Standbys of CURT_LINKS for look-ups, separated by commas: postgres://user@host/database, one host each." empty:"none"`
	LinksReplicaLag time.Duration `name:"links-replica-lag" default:"5s" env:"CURT_LINKS_REPLICA_LAG" help:"Maximum replication lag of a standby in use, 1s to 1m."`
	Accounts        string        `env:"CURT_ACCOUNTS" help:"Separate store of accounts (keys, shares, idempotency keys, decisions and reviews), only if the link store has none yet: postgres://user@host/database, exclusively for these links. Unset: in the link store." empty:"none"`
	Cache           string        `env:"CURT_CACHE" help:"Redis 7 or newer, shared by all servers on one CURT_LINKS for cached links, changes and limits: redis://user:password@host:6379/0 or rediss:// (TLS). Further nodes of a Cluster, or Sentinels with master_set=NAME: ?addr=host:port for each. Unset: no shared cache." empty:"none"`
	CacheWarm       bool          `name:"cache-warm" env:"CURT_CACHE_WARM" help:"Write each new link to CURT_CACHE on create, for links whose first visitors arrive at once on any server."`
	Events          string        `env:"CURT_EVENTS" help:"Kafka topic that carries clicks to ClickHouse: kafka://user:password@host:9092,host:9092/topic, with ?tls=true, ?ca=FILE, ?cert=FILE&key=FILE, and ?sasl=plain, scram-sha-256 or scram-sha-512; created links go to TOPIC.links.created; curt migrate creates the topics. Unset: each server counts its own clicks." empty:"none"`
	Analytics       string        `env:"CURT_ANALYTICS" help:"Statistics store: postgres://user@host/database, shared by several servers, or clickhouse://user:password@host:9000/database, fed by CURT_EVENTS; several clickhouse:// URLs, separated by commas, are replicas, in the same order on every server. Requires CURT_LINKS to be a database. Unset: DATA/clicks.db." empty:"none"`
	Archive         string        `env:"CURT_ARCHIVE" help:"Archive of raw clicks. Unset: none." empty:"none"`
	IDs             string        `name:"ids" env:"CURT_IDS" help:"Source of id leases for CURT_CODES=range and snowflake, and for the keys of pool: zookeeper://user:password@host:2181,host:2181/path, ZooKeeper 3.9, with digest authentication if a user is given, with ?tls=true, ?ca=FILE and ?cert=FILE&key=FILE. The link store confirms each lease. Unset: the link store." empty:"none"`
	Writes          string        `default:"sync" env:"CURT_WRITES" help:"sync: a create is answered when the link store has the link. queued: it is answered 202 when Kafka has it, and servers with the role writer write it at CURT_WRITES_RATE; creates with an alias, dedupe or max_clicks are written at once. The same on all servers."`
	WritesKafka     string        `name:"writes-kafka" env:"CURT_WRITES_KAFKA" help:"Kafka topic of CURT_WRITES=queued, as in CURT_EVENTS, but another one; curt migrate creates it. Without a topic: curt.links.queued. Unset: TOPIC.links.queued in the Kafka of CURT_EVENTS." empty:"none"`
	WritesRate      int           `name:"writes-rate" default:"200" env:"CURT_WRITES_RATE" help:"Links that all servers with the role writer together write per second, 1 to 100000. The same on all of them."`
	WritesLoss      bool          `name:"writes-accept-loss" env:"CURT_WRITES_ACCEPT_LOSS" help:"Start with CURT_WRITES=queued although the topic acknowledges links that only one broker has: one failed disk may lose links that were answered 202."`
	Codes           string        `default:"range" env:"CURT_CODES" help:"How codes are generated: range, random, hash of the destination, words such as brave-otter-42, snowflake: 11 characters of time, machine id and sequence, or pool: keys that servers with the role keys generated ahead."`
	CodeFilter      string        `name:"code-filter" default:"memory" env:"CURT_CODE_FILTER" help:"Filter of issued codes, which saves CURT_CODES=random, hash and words inserts that must fail. memory: in each server, 5 to 10 bytes per code, read from the link store at every start; it also answers requests for unknown codes. redis: a Bloom filter in CURT_CACHE that servers share, without reading at the start; requests for unknown codes are answered by CURT_CACHE and the link store."`
	CodeFilterCodes int64         `name:"code-filter-codes" default:"10000000" env:"CURT_CODE_FILTER_CODES" help:"Codes that CURT_CODE_FILTER=redis is made for, 1000 to 100000000000: 1.8 bytes each in Redis. At this number 0.1 % of free codes are taken for issued; another number is another, empty filter."`
	Snowflake       string        `default:"permuted" env:"CURT_SNOWFLAKE" help:"Codes of CURT_CODES=snowflake: permuted under a secret key, or plain, which sort by time and can be guessed."`
	PoolKeys        string        `name:"pool-keys" default:"range" env:"CURT_POOL_KEYS" help:"How the keys of CURT_CODES=pool are generated: range or snowflake, as in CURT_CODES. The same on all servers."`
	PoolSize        int           `name:"pool-size" default:"100000" env:"CURT_POOL_SIZE" help:"Unused keys of CURT_CODES=pool that servers with the role keys keep in the link store, 10000 to 100000000; each server that creates links has 10,000 more in memory."`

	// SQLiteSynchronous exists for the tests that show what FULL is for.
	SQLiteSynchronous string `name:"sqlite-synchronous" default:"FULL" env:"CURT_SQLITE_SYNCHRONOUS" hidden:""`
}

// WritesQueued is the value of CURT_WRITES that needs Kafka and the role writer.
const WritesQueued = "queued"

// CodesPool is the value of CURT_CODES that needs the role keys.
const CodesPool = "pool"

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
	text = regexp.MustCompile(`[a-z]://[^\s"]*@`).ReplaceAllStringFunc(text, func(found string) string {
		if found[4:] == "user@" { // of a URL that shows the form of one
			return found
		}
		return found[:4] + Hidden + "@"
	})
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
