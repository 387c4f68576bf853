package settings

import (
	"cmp"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"strings"
	"time"

	"curt/internal/auth"
	"curt/internal/backend/clickhouse"
	"curt/internal/backend/clickhouse/clickdb"
	"curt/internal/backend/dynamodb/ddb"
	"curt/internal/backend/kafka"
	"curt/internal/backend/postgres/pgdb"
	"curt/internal/backend/redis"
	"curt/internal/backend/zookeeper"
	"curt/internal/config"
	"curt/internal/ratelimit"
	"curt/internal/shorten/create"
	"curt/internal/telemetry"
)

func trustedProxies(cfg config.Config) ([]netip.Prefix, error) {
	var trusted []netip.Prefix
	for _, text := range cfg.TrustedProxies {
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, &config.Error{Setting: "CURT_TRUSTED_PROXIES", Value: text, Want: err.Error()}
		}
		trusted = append(trusted, prefix)
	}
	return trusted, nil
}

// Unbound stands for an address that is not bound.
func Unbound() *net.TCPAddr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }

func plans(cfg config.Config) (create.Plans, error) {
	p, err := create.DefaultPlans().With(cfg.Limits)
	if err != nil {
		return nil, &config.Error{Setting: "CURT_LIMITS", Value: cfg.Limits, Want: err.Error()}
	}
	return p, nil
}

// VisitLimits bound redirects; nil = off.
type VisitLimits struct{ Network, Link *ratelimit.Limit }

// visitLimits reads "network=100/s,link=1000/s", or off.
func visitLimits(cfg config.Config) (v VisitLimits, err error) {
	wrong := func(want string) error {
		return &config.Error{Setting: "CURT_REDIRECT_LIMIT", Value: cfg.RedirectLimit, Want: want}
	}
	if cfg.RedirectLimit == "off" || cfg.RedirectLimit == "" {
		return v, nil
	}
	for entry := range strings.SplitSeq(cfg.RedirectLimit, ",") {
		by, text, _ := strings.Cut(strings.TrimSpace(entry), "=")
		limit, err := ratelimit.Parse(text)
		at := map[string]**ratelimit.Limit{"network": &v.Network, "link": &v.Link}[by]
		switch {
		case at == nil:
			return VisitLimits{}, wrong("expected network=LIMIT, link=LIMIT or both, such as network=100/s,link=1000/s, or off")
		case err != nil:
			return VisitLimits{}, wrong(err.Error())
		case *at != nil:
			return VisitLimits{}, wrong("expected " + by + " only once")
		}
		*at = &limit
	}
	return v, nil
}

// limit reads the limit of one network; nil = off.
func limit(setting, value string) (*ratelimit.Limit, error) {
	if value == "off" {
		return nil, nil //nolint:nilnil // off is no failure
	}
	limit, err := ratelimit.Parse(value)
	if err != nil {
		return nil, &config.Error{Setting: setting, Value: value, Want: err.Error() + ", or off"}
	}
	return &limit, nil
}

// certificate reads the certificate of the public sockets, which is set.
func certificate(cfg config.Config) (*tls.Config, error) {
	cert, err := config.ReadFile(cfg.TLSCert)
	if err != nil {
		return nil, &config.Error{Setting: "CURT_TLS_CERT", Value: cfg.TLSCert, Want: err.Error()}
	}
	key, err := config.ReadFile(cfg.TLSKey)
	if err != nil {
		return nil, &config.Error{Setting: "CURT_TLS_KEY", Value: cfg.TLSKey, Want: err.Error()}
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, &config.Error{Setting: "CURT_TLS_CERT", Value: cfg.TLSCert, Want: err.Error() + " (the key is " + cfg.TLSKey + ")"}
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}, nil
}

// adminKey returns the key that is set, or in the file that is named; "" if neither.
func adminKey(cfg config.Config) (string, error) {
	key, setting, value := cfg.AdminKey, "CURT_ADMIN_KEY", config.Hidden
	if cfg.AdminKeyFile != "" {
		setting, value = "CURT_ADMIN_KEY_FILE", cfg.AdminKeyFile
		text, err := config.ReadFile(cfg.AdminKeyFile)
		if err != nil {
			return "", &config.Error{Setting: setting, Value: value, Want: err.Error()}
		}
		key = strings.TrimSpace(string(text))
	} else if key == "" {
		return "", nil
	}
	if err := auth.CheckKey(key); err != nil {
		return "", &config.Error{Setting: setting, Value: value, Want: err.Error()}
	}
	return key, nil
}

// checkTraces looks at the variables of OpenTelemetry.
func checkTraces() error {
	_, err := telemetry.CheckTraces(os.Getenv)
	if wrong, ok := errors.AsType[*telemetry.SettingError](err); ok {
		return &config.Error{Setting: wrong.Name, Value: wrong.Value, Want: wrong.Want}
	}
	return err
}

// checkCache reads CURT_CACHE.
func checkCache(cfg config.Config) error {
	if cfg.Cache == "" {
		return nil
	}
	if err := redis.Check(cfg.Cache); err != nil {
		return WrongCache(cfg, err)
	}
	return nil
}

// WrongCache makes a wrong setting of an error about CURT_CACHE.
func WrongCache(cfg config.Config, err error) error {
	return &config.Error{Setting: "CURT_CACHE", Value: config.Redact(cfg.Cache), Want: err.Error()}
}

// ZooKeeper reads CURT_IDS, which is set.
func ZooKeeper(cfg config.Config) (zookeeper.Config, error) {
	z, err := zookeeper.Parse(cfg.IDs)
	if err != nil {
		return z, &config.Error{Setting: "CURT_IDS", Value: config.Redact(cfg.IDs), Want: err.Error()}
	}
	return z, nil
}

// Kafka reads CURT_EVENTS, which is set.
func Kafka(cfg config.Config) (kafka.Config, error) {
	c, err := kafka.Parse(cfg.Events)
	if err != nil {
		return c, &config.Error{Setting: "CURT_EVENTS", Value: config.Redact(cfg.Events), Want: err.Error()}
	}
	return c, nil
}

// Queue returns where links go that are to be written, by CURT_WRITES_KAFKA or beside the clicks.
func Queue(cfg config.Config) (kafka.Config, error) {
	if cfg.WritesKafka == "" {
		c, err := Kafka(cfg)
		return c.Queued(), err
	}
	wrong := func(want string) error {
		return &config.Error{Setting: "CURT_WRITES_KAFKA", Value: config.Redact(cfg.WritesKafka), Want: want}
	}
	c, err := kafka.ParseQueued(cfg.WritesKafka)
	if err != nil {
		return c, wrong(err.Error())
	}
	if cfg.Events == "" {
		return c, nil
	}
	if clicks, err := Kafka(cfg); err == nil {
		if topic := clicks.Shared(c); topic != "" {
			return c, wrong("expected another topic than " + c.Topic + ": CURT_EVENTS uses the topic " + topic + ", too")
		}
	}
	return c, nil
}

// What to do about kafka.ErrUnsafe.
const (
	QueueLoses = "a failed disk may lose links that were answered 202"
	SafeQueue  = "use three brokers and min.insync.replicas=2"
	AllowQueue = SafeQueue + ", or accept losses with CURT_WRITES_ACCEPT_LOSS=true"
)

// ClickHouses returns which servers of ClickHouse CURT_ANALYTICS names, which is valid.
func ClickHouses(cfg config.Config, log *slog.Logger) (all []clickhouse.Config) {
	keep, _ := cfg.Retentions()
	urls, peers := cfg.ClickHouses(), new(clickdb.Peers)
	log = cmp.Or(log, slog.New(slog.DiscardHandler))
	for i, url := range urls {
		c := clickhouse.Config{URL: url, MinRetention: time.Duration(keep.Least()) * 24 * time.Hour, Log: log}
		if len(urls) > 1 {
			c.Position, c.Peers = i+1, peers
			c.Log = log.With(slog.Int("replica", c.Position), slog.String("address", clickdb.AddressOf(url)))
		}
		all = append(all, c)
	}
	return all
}

// NoClickHouse is the error where CURT_ANALYTICS names no ClickHouse.
func NoClickHouse(cfg config.Config) error {
	return &config.Error{Setting: "CURT_ANALYTICS", Value: config.Redact(cfg.Analytics), Want: "expected clickhouse://user@host:9000/database"}
}

// WrongClickHouse makes a wrong setting of an error that no retry helps with.
func WrongClickHouse(cfg config.Config, err error) error {
	if !errors.Is(err, clickdb.ErrUnfit) {
		return OneLine(err)
	}
	return &config.Error{Setting: "CURT_ANALYTICS", Value: config.Redact(cfg.Analytics), Want: err.Error()}
}

// WrongDatabase makes a wrong setting of an error that no retry helps with, and one line of the
// attempts that a driver lists, which have no password in them.
func WrongDatabase(setting, url string, err error) error {
	if !errors.Is(err, pgdb.ErrUnfit) {
		return OneLine(err)
	}
	return &config.Error{Setting: setting, Value: config.Redact(url), Want: err.Error()}
}

// Tables returns the tables of DynamoDB that CURT_LINKS names.
func Tables(cfg config.Config) (ddb.Address, error) {
	at, err := ddb.ParseAddress(cfg.Links)
	if err != nil {
		return at, &config.Error{Setting: "CURT_LINKS", Value: config.Redact(cfg.Links), Want: err.Error()}
	}
	return at, nil
}

// WrongTables makes a wrong setting of an error that no retry helps with.
func WrongTables(cfg config.Config, err error) error {
	if !errors.Is(err, ddb.ErrUnfit) {
		return OneLine(err)
	}
	return &config.Error{Setting: "CURT_LINKS", Value: config.Redact(cfg.Links), Want: err.Error()}
}

// OneLine returns err with a text of one line.
func OneLine(err error) error { return oneLine{err} }

// oneLine is an error whose text may have several.
type oneLine struct{ error }

func (e oneLine) Error() string { return strings.Join(strings.Fields(e.error.Error()), " ") }
func (e oneLine) Unwrap() error { return e.error }
