package config

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Bounds that no other sentence explains.
const (
	maxConnections = 1_000_000 // what a machine with 5 GB to spare could hold idle
	maxCache       = 1 << 40
	maxClickLog    = 1 << 50
	maxWait        = 10 * time.Minute
	// SQLite takes paths of 512 bytes, with the names of its journals; the rest is for
	// those of the files, and of the folders that a restore makes.
	maxPath    = 450
	maxDue     = Days(7 * 24 * time.Hour) // what nobody looks at for a week is in no queue
	maxRecheck = Days(365 * 24 * time.Hour)
)

// problems collects what is wrong.
type problems []error

// add notes a setting whose value may be shown, but for passwords in URLs.
func (p *problems) add(name string, value any, want string) {
	*p = append(*p, &Error{Setting: name, Value: redact(fmt.Sprint(value)), Want: want})
}

// filled notes that an entry of a list is empty. It shows the whole list, as nobody would
// find the place otherwise.
func (p *problems) filled(name string, entries []string) {
	if slices.Contains(entries, "") {
		p.add(name, strings.Join(entries, ","), tooManyCommas)
	}
}

// distinct notes what stands twice in a list, too.
func (p *problems) distinct(name string, entries []string) {
	p.filled(name, entries)
	for i, entry := range entries {
		if entry != "" && slices.Contains(entries[:i], entry) {
			p.add(name, entry, "set twice")
		}
	}
}

// Validate returns one error for each setting that is wrong, each naming the
// setting, its value and what would be right. It looks at the settings alone: what
// needs other packages, a file or the machine is the server's to find out, before it
// touches anything.
func (c Config) Validate() []error {
	var p problems
	c.addresses(&p)
	c.names(&p)
	c.together(&p)
	c.numbers(&p)
	c.choices(&p)
	c.roles(&p)
	c.databases(&p)
	return p
}

// databases checks the settings that name one.
func (c Config) databases(p *problems) {
	switch {
	case c.Links == SQLite, p.ambiguous("CURT_LINKS", c.Links):
	case IsDynamoDB(c.Links):
		c.besideDynamoDB(p)
	case !IsPostgres(c.Links):
		p.add("CURT_LINKS", c.Links, "expected sqlite, postgres://user@host/database or dynamodb://table?region=region")
	}
	if c.LinksConns < 6 || c.LinksConns > 1000 {
		p.add("CURT_LINKS_CONNECTIONS", c.LinksConns, "expected 6 to 1000")
	}
	p.distinct("CURT_LINKS_REPLICAS", c.LinksReplicas)
	for _, url := range c.LinksReplicas {
		switch {
		case p.ambiguous("CURT_LINKS_REPLICAS", url):
		case !IsPostgres(url) && url != "":
			p.add("CURT_LINKS_REPLICAS", url, "expected postgres://user@host/database, one host each")
		case IsDynamoDB(c.Links):
			p.add("CURT_LINKS_REPLICAS", url, "DynamoDB has its own replicas; unset this")
		case c.Links == SQLite:
			p.add("CURT_LINKS_REPLICAS", url, "replicas require a link database; also set CURT_LINKS")
		}
	}
	if c.LinksReplicaLag < time.Second || c.LinksReplicaLag > time.Minute {
		p.add("CURT_LINKS_REPLICA_LAG", c.LinksReplicaLag, "expected 1s to 1m")
	}
	c.statistics(p)
	switch {
	case c.Accounts == "", p.ambiguous("CURT_ACCOUNTS", c.Accounts):
	case !IsPostgres(c.Accounts):
		p.add("CURT_ACCOUNTS", c.Accounts, "expected postgres://user@host/database, or unset for accounts in the link store")
	case c.Accounts == c.Links:
		p.add("CURT_ACCOUNTS", c.Accounts, "same database as CURT_LINKS; unset it, or use another database")
	}
	c.events(p)
	c.generation(p)
	c.queue(p)
	switch {
	case c.Cache == "" && c.CacheWarm:
		p.add("CURT_CACHE_WARM", c.CacheWarm, "requires CURT_CACHE; set that too, or unset this")
	case c.Cache == "", p.ambiguous("CURT_CACHE", c.Cache):
	case !strings.HasPrefix(c.Cache, "redis://") && !strings.HasPrefix(c.Cache, "rediss://"):
		p.add("CURT_CACHE", c.Cache, "expected redis://host:port/0, or unset")
	case c.Links == SQLite:
		p.add("CURT_CACHE", c.Cache, "a shared cache requires a link store that several servers can share; set CURT_LINKS, or unset this")
	}
}

// statistics checks where clicks are counted.
func (c Config) statistics(p *problems) {
	const name = "CURT_ANALYTICS"
	urls := c.ClickHouses()
	switch {
	case c.Analytics == "":
	case slices.Contains(urls, ""), slices.ContainsFunc(urls, hasEmptyHost):
		p.add(name, c.Analytics, tooManyCommas)
	case IsClickHouse(c.Analytics) && slices.ContainsFunc(urls, hasAnother):
		p.add(name, c.Analytics, "expected commas and no spaces between URLs, each of which begins with "+clickHouse)
	case slices.ContainsFunc(urls, func(url string) bool { return p.ambiguous(name, url) }):
	case p.repeated(name, urls), IsClickHouse(c.Analytics) && c.Events != "":
	case IsClickHouse(c.Analytics) && len(urls) > 1:
		p.add(name, c.Analytics, "several ClickHouse servers get the same clicks from Kafka; also set CURT_EVENTS=kafka://host:port/topic")
	case IsClickHouse(c.Analytics):
		p.add(name, c.Analytics, "ClickHouse is fed by Kafka; also set CURT_EVENTS=kafka://host:port/topic")
	case !IsPostgres(c.Analytics):
		p.add(name, c.Analytics, "expected postgres://host/database, clickhouse://host:9000/database with CURT_EVENTS, or unset for statistics in the data folder")
	case c.Links == SQLite:
		p.add(name, c.Analytics, "a statistics database requires a link database; also set CURT_LINKS")
	}
}

// generation checks where ids come from, and where issued codes are known.
func (c Config) generation(p *problems) {
	switch {
	case c.IDs == "", p.ambiguous("CURT_IDS", c.IDs):
	case !strings.HasPrefix(c.IDs, "zookeeper://"):
		p.add("CURT_IDS", c.IDs, "expected zookeeper://host:2181,host:2181/path, or unset for leases of the link store")
	case c.Links == SQLite:
		p.add("CURT_IDS", c.IDs, "leases of ZooKeeper require a link store that several servers can share; set CURT_LINKS, or unset this")
	}
	if c.CodeFilter == "redis" && c.Cache == "" {
		p.add("CURT_CODE_FILTER", c.CodeFilter, "requires CURT_CACHE; set that too, or use memory")
	}
	if c.CodeFilterCodes < 1000 || c.CodeFilterCodes > 100_000_000_000 {
		p.add("CURT_CODE_FILTER_CODES", c.CodeFilterCodes, "expected 1000 to 100000000000")
	}
}

// besideDynamoDB checks what the store of links cannot keep.
func (c Config) besideDynamoDB(p *problems) {
	if c.Accounts == "" && (c.Does(RoleAPI) || c.Does(RoleWorker) || c.Queues() && c.Does(RoleWriter)) {
		p.add("CURT_ACCOUNTS", c.Accounts, "DynamoDB keeps no accounts; set it to postgres://user@host/database")
	}
}

// Queues reports whether links are written after their creates were answered.
func (c Config) Queues() bool { return c.Writes == WritesQueued }

// queue checks the way of links through Kafka.
func (c Config) queue(p *problems) {
	if c.WritesRate < 1 || c.WritesRate > 100_000 {
		p.add("CURT_WRITES_RATE", c.WritesRate, "expected 1 to 100000")
	}
	switch {
	case c.WritesKafka == "", p.ambiguous("CURT_WRITES_KAFKA", c.WritesKafka):
	case !strings.HasPrefix(c.WritesKafka, "kafka://"):
		p.add("CURT_WRITES_KAFKA", c.WritesKafka, "expected kafka://host:port,host:port/topic, or unset for a topic of its own in the Kafka of CURT_EVENTS")
	case !c.Queues():
		p.add("CURT_WRITES_KAFKA", c.WritesKafka, "requires CURT_WRITES=queued; set that too, or unset this")
	}
	switch {
	case !c.Queues() || !c.Does(RoleAPI) && !c.Does(RoleWriter):
	case c.WritesKafka == "" && c.Events == "":
		p.add("CURT_WRITES", c.Writes, "links are queued in Kafka; also set CURT_WRITES_KAFKA=kafka://host:port/topic, or CURT_EVENTS")
	case c.Codes == "random" || c.Codes == "hash" || c.Codes == "words":
		p.add("CURT_WRITES", c.Writes, "CURT_CODES="+c.Codes+" learns from the link store whether a code is taken; use range, snowflake or pool")
	}
}

// events checks the way of clicks through Kafka.
func (c Config) events(p *problems) {
	switch {
	case c.Events == "", p.ambiguous("CURT_EVENTS", c.Events):
	case !strings.HasPrefix(c.Events, "kafka://"):
		p.add("CURT_EVENTS", c.Events, "expected kafka://host:port,host:port/topic, or unset to count clicks on each server")
	case c.Links == SQLite:
		p.add("CURT_EVENTS", c.Events, "Kafka requires a link store that several servers can share; set CURT_LINKS, or unset this")
	case IsPostgres(c.Analytics), c.Analytics == "" && (c.Does(RoleWorker) || c.Does(RoleAPI)):
		p.add("CURT_EVENTS", c.Events, "Kafka feeds ClickHouse; also set CURT_ANALYTICS=clickhouse://host:9000/database")
	}
}

// ClickHouses returns the URLs of CURT_ANALYTICS: several name replicas in ClickHouse.
func (c Config) ClickHouses() []string {
	if c.Analytics == "" {
		return nil
	}
	all := strings.Split(c.Analytics, ","+clickHouse)
	for i := range all[1:] {
		all[i+1] = clickHouse + all[i+1]
	}
	return all
}

const clickHouse = "clickhouse://"

// IsClickHouse reports whether a setting names a database of ClickHouse.
func IsClickHouse(url string) bool { return strings.HasPrefix(url, clickHouse) }

// IsPostgres reports whether a setting names a database of PostgreSQL.
func IsPostgres(url string) bool {
	return strings.HasPrefix(url, "postgres://") || strings.HasPrefix(url, "postgresql://")
}

// IsDynamoDB reports whether a setting names a table of DynamoDB.
func IsDynamoDB(url string) bool { return strings.HasPrefix(url, "dynamodb://") }

// addresses checks the listeners.
func (c Config) addresses(p *problems) {
	listens := []struct{ name, value, want string }{
		{"CURT_LISTEN", c.Listen, "expected host:port, such as 127.0.0.1:8080 or :8080"},
		{"CURT_API_LISTEN", c.APIListen, "expected host:port, such as 127.0.0.1:8081, or unset"},
		{"CURT_ADMIN_LISTEN", c.AdminListen, "expected host:port, such as 127.0.0.1:9090, or unset"},
	}
	for i, l := range listens {
		if l.value == "" && i > 0 {
			continue
		}
		if !isListenAddress(l.value) {
			p.add(l.name, l.value, l.want)
			continue
		}
		for _, before := range listens[:i] {
			if before.value == l.value && !strings.HasSuffix(l.value, ":0") {
				p.add(l.name, l.value, before.name+" is the same; each listener needs its own address")
			}
		}
	}
}

// isListenAddress reports whether text is host:port with a port from 0 to 65535,
// where the host may be missing. Names of services are refused: which port they are
// depends on the machine.
func isListenAddress(text string) bool {
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		return false
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return false
	}
	if host == "" {
		return true
	}
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	return regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?$`).MatchString(host) && // a name
		strings.ContainsFunc(host, func(r rune) bool { return r != '.' && (r < '0' || r > '9') }) // 1.2.3.256 is none
}

// names checks what the server is called, whom it believes and whom it does not.
func (c Config) names(p *problems) {
	if c.BaseURL != "" {
		u, err := url.Parse(c.BaseURL)
		if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "" || !isPort(u) ||
			strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
			p.add("CURT_BASE_URL", c.BaseURL, "expected http://host or https://host without a path")
		}
	}
	p.distinct("CURT_DOMAINS", c.Domains)
	p.distinct("CURT_BLOCKLISTS", c.Blocklists)
	p.distinct("CURT_ALLOWLISTS", c.Allowlists)
	p.distinct("CURT_RESERVED_WORDS", c.ReservedWords)
	p.distinct("CURT_REFUSED_WORDS", c.RefusedWords)
	if c.GeoIPURL != "" && !isDownload(c.GeoIPURL) {
		p.add("CURT_GEOIP_URL", Redact(c.GeoIPURL), "expected https://host/path")
	}
	if c.CountryHeader != "" && !isFieldName(c.CountryHeader) {
		p.add("CURT_COUNTRY_HEADER", c.CountryHeader, "expected the name of a header, such as CF-IPCountry")
	}
	p.filled("CURT_TRUSTED_PROXIES", c.TrustedProxies)
	for _, t := range c.TrustedProxies {
		if _, err := netip.ParsePrefix(t); t != "" && err != nil {
			p.add("CURT_TRUSTED_PROXIES", t, "expected CIDRs such as 10.0.0.0/8 or 192.0.2.7/32")
		}
	}
}

// isDownload reports whether an .mmdb file may be at a URL.
func isDownload(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Hostname() != ""
}

// isFieldName reports whether a proxy may send a header of the name (RFC 9110, token).
func isFieldName(name string) bool {
	return len(name) <= maxFieldName && regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$").MatchString(name)
}

const maxFieldName = 64

// mostHSTS is what lists of browsers ask of those who never go back.
const mostHSTS = Days(2 * 365 * 24 * time.Hour)

// isContact reports whether RFC 9116 takes it for a Contact: a URI, on the web by https
// only. It stands in a line of a file, so that nothing may end that.
func isContact(text string) bool {
	if strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return false
	}
	u, err := url.Parse(text)
	if err != nil {
		return false
	}
	switch u.Scheme {
	case "https":
		return u.Host != "" && u.User == nil
	case "mailto":
		name, host, ok := strings.Cut(u.Opaque, "@")
		return ok && name != "" && host != ""
	case "tel":
		return u.Opaque != ""
	}
	return false
}

// isPort reports whether a URL has no port or a possible one.
func isPort(u *url.URL) bool {
	n, err := strconv.ParseUint(u.Port(), 10, 16)
	return !strings.HasSuffix(u.Host, ":") && (u.Port() == "" || (err == nil && n > 0))
}

// together checks settings that contradict each other.
func (c Config) together(p *problems) {
	if c.ProxyProtocol && len(c.TrustedProxies) == 0 {
		p.add("CURT_PROXY_PROTOCOL", c.ProxyProtocol, "also set CURT_TRUSTED_PROXIES: PROXY headers are only accepted from trusted proxies")
	}
	if isDownload(c.GeoIPURL) && c.GeoIP == "" {
		p.add("CURT_GEOIP_URL", Redact(c.GeoIPURL), "also set CURT_GEOIP: the file that is replaced")
	}
	if isFieldName(c.CountryHeader) && len(c.TrustedProxies) == 0 {
		p.add("CURT_COUNTRY_HEADER", c.CountryHeader, "also set CURT_TRUSTED_PROXIES: the header only counts from trusted proxies")
	}
	if c.AdminKey != "" && c.AdminKeyFile != "" {
		p.add("CURT_ADMIN_KEY_FILE", c.AdminKeyFile, "mutually exclusive with CURT_ADMIN_KEY; set one of them")
	}
	if c.HSTS > 0 && c.TLSCert == "" && !strings.HasPrefix(c.BaseURL, "https://") {
		p.add("CURT_HSTS", time.Duration(c.HSTS), "browsers honour it only over https; also set CURT_BASE_URL=https://… or CURT_TLS_CERT")
	}
	switch {
	case c.TLSCert != "" && c.TLSKey == "":
		p.add("CURT_TLS_CERT", c.TLSCert, "certificate and key are both required; also set CURT_TLS_KEY")
	case c.TLSCert == "" && c.TLSKey != "":
		p.add("CURT_TLS_KEY", c.TLSKey, "certificate and key are both required; also set CURT_TLS_CERT")
	}
}

// aliases checks the bounds of new aliases.
func (c Config) aliases(p *problems) {
	if c.AliasMin < 3 || c.AliasMin > 64 {
		p.add("CURT_ALIAS_MIN", c.AliasMin, "expected 3 to 64")
	}
	if c.AliasMax < c.AliasMin || c.AliasMax > 64 {
		p.add("CURT_ALIAS_MAX", c.AliasMax, fmt.Sprintf("expected %d, which is CURT_ALIAS_MIN, to 64", c.AliasMin))
	}
	if c.AliasReserved < 0 || c.AliasReserved > 1000 {
		p.add("CURT_ALIAS_RESERVATIONS", c.AliasReserved, "expected 0 to 1000")
	}
	if c.AliasCharacters() == "" {
		p.add("CURT_ALIAS_ALPHABET", c.AliasAlphabet, "expected characters of A-Z a-z 0-9 - _ and ranges of them, such as a-z0-9-")
	}
}

// codesOf returns how many codes of a length there are.
func codesOf(length int) (n int) {
	n = 1
	for range length {
		n *= 62
	}
	return n
}

// codes checks how codes are generated.
func (c Config) codes(p *problems) {
	if c.CodeLength < 4 || c.CodeLength > 10 {
		p.add("CURT_CODE_LENGTH", c.CodeLength, "expected 4 to 10")
	}
	if c.PoolSize < 10_000 || c.PoolSize > 100_000_000 {
		p.add("CURT_POOL_SIZE", c.PoolSize, "expected 10000 to 100000000")
	} else if most := codesOf(min(max(c.CodeLength, 4), 10)); c.Codes == "pool" && c.PoolKeys == "range" && c.PoolSize > most {
		p.add("CURT_POOL_SIZE", c.PoolSize, fmt.Sprintf("CURT_CODE_LENGTH=%d has only %d codes; decrease one or increase the other", c.CodeLength, most))
	}
}

// numbers checks sizes, counts and times.
func (c Config) numbers(p *problems) {
	if len(c.Data) > maxPath {
		p.add("CURT_DATA", c.Data, fmt.Sprintf("expected a path of at most %d bytes, this one has %d", maxPath, len(c.Data)))
	}
	if c.HSTS < 0 || c.HSTS > mostHSTS || c.HSTS > 0 && c.HSTS < Days(time.Second) {
		p.add("CURT_HSTS", time.Duration(c.HSTS), "expected 0s to 730d")
	}
	p.distinct("CURT_SECURITY_CONTACT", c.Contacts)
	for _, contact := range c.Contacts {
		if contact != "" && !isContact(contact) {
			p.add("CURT_SECURITY_CONTACT", contact, "expected mailto:user@host, https://host/path or tel:+number, without spaces")
		}
	}
	c.codes(p)
	c.aliases(p)
	if c.MaxConnections < 1 || c.MaxConnections > maxConnections {
		p.add("CURT_MAX_CONNECTIONS", c.MaxConnections, "expected 1 to 1000000")
	}
	if c.DrainDelay < 0 || c.DrainDelay > maxWait {
		p.add("CURT_DRAIN_DELAY", c.DrainDelay, "expected 0s to 10m")
	}
	if c.DrainLimit < 0 || c.DrainLimit > maxWait {
		p.add("CURT_DRAIN_LIMIT", c.DrainLimit, "expected 0s to 10m")
	}
	if c.FoldInterval < 100*time.Millisecond || c.FoldInterval > maxWait {
		p.add("CURT_FOLD_INTERVAL", c.FoldInterval, "expected 100ms to 10m")
	}
	if c.Recheck != 0 && (c.Recheck < Days(time.Second) || c.Recheck > maxRecheck) {
		p.add("CURT_RECHECK", c.Recheck, "expected 1s to 365d, or 0 for never")
	}
	if c.ExpiredRetention != 0 && c.ExpiredRetention < Days(time.Second) {
		p.add("CURT_EXPIRED_RETENTION", c.ExpiredRetention, "expected 1s or more, such as 90d, or 0s for permanently")
	}
	if c.ClickLogMax < 128<<20 || c.ClickLogMax > maxClickLog {
		p.add("CURT_CLICK_LOG_MAX", c.ClickLogMax, "expected 128MiB (two segments) to 1024TiB")
	}
	if c.RawRetention < Days(time.Second) {
		p.add("CURT_RAW_RETENTION", c.RawRetention, "expected 1s or more, such as 30d")
	}
	if _, err := c.Retentions(); err != nil {
		p.add("CURT_RAW_RETENTION_OF", c.RawRetentionOf, err.Error())
	} else if c.RawRetentionOf != "" && c.Events == "" {
		p.add("CURT_RAW_RETENTION_OF", c.RawRetentionOf, "requires CURT_EVENTS: the click log keeps all workspaces for CURT_RAW_RETENTION")
	}
	if c.ReviewDue < Days(time.Second) || c.ReviewDue > maxDue {
		p.add("CURT_REVIEW_DUE", c.ReviewDue, "expected 1s to 7d")
	}
	if c.ReportQuarantine < 0 || c.ReportQuarantine == 1 || c.ReportQuarantine > 1000 {
		p.add("CURT_REPORT_QUARANTINE", c.ReportQuarantine, "expected 0 (never) or 2 to 1000: a single network cannot quarantine a link")
	}
	if c.ReportRetention < Days(time.Hour) {
		p.add("CURT_REPORT_RETENTION", c.ReportRetention, "expected 1h or more, such as 90d")
	}
	if c.CacheSize < 1<<20 || c.CacheSize > maxCache {
		p.add("CURT_CACHE_SIZE", c.CacheSize, "expected 1MiB to 1TiB")
	}
}

// choices checks the settings that name one of a few values. Backends that the
// design names and this release does not have stop the start here.
func (c Config) choices(p *problems) {
	for _, s := range []struct {
		name, value string
		allowed     []string
	}{
		{"CURT_LANE", c.Lane, []string{"on", "off"}},
		{"CURT_COUNTRIES", c.Countries, []string{"on", "off"}},
		{"CURT_CLICK_DETAIL", c.ClickDetail, []string{"statistics", "referrer-path", "full"}},
		{"CURT_FOLD", c.Fold, []string{"on", "pause"}},
		{"CURT_SHORTENERS", c.Shorteners, []string{"allow", "warn", "refuse"}},
		{"CURT_PRIVATE_TARGETS", c.PrivateTargets, []string{"allow", "warn", "refuse"}},
		{"CURT_LOG_LEVEL", c.LogLevel, []string{"debug", "info", "warn", "error"}},
		{"CURT_WRITES", c.Writes, []string{"sync", WritesQueued}},
		{"CURT_CODES", c.Codes, []string{"range", "random", "hash", "words", "snowflake", CodesPool}},
		{"CURT_SNOWFLAKE", c.Snowflake, []string{"permuted", "plain"}},
		{"CURT_POOL_KEYS", c.PoolKeys, []string{"range", "snowflake"}},
		{"CURT_CODE_FILTER", c.CodeFilter, []string{"memory", "redis"}},
		{"CURT_ARCHIVE", c.Archive, nil},
		{"CURT_SQLITE_SYNCHRONOUS", c.SQLiteSynchronous, []string{"FULL", "NORMAL"}},
	} {
		switch {
		case len(s.allowed) == 0 && s.value != "":
			p.add(s.name, s.value, "not supported by this release; unset it")
		case len(s.allowed) > 0 && !slices.Contains(s.allowed, s.value):
			p.add(s.name, s.value, "expected "+oneOf(s.allowed))
		}
	}
}

// oneOf lists values of which a setting has one.
func oneOf(allowed []string) string {
	if len(allowed) == 2 {
		return allowed[0] + " or " + allowed[1]
	}
	return "one of " + strings.Join(allowed, ", ")
}
