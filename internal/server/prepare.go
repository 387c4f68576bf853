package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	"curt/internal/abuse"
	"curt/internal/auth"
	"curt/internal/backend/mmdb"
	"curt/internal/config"
	"curt/internal/ratelimit"
	"curt/internal/shorten"
	"curt/internal/telemetry"
)

// prepared are the settings as the parts want them, every file among them read. It
// is made before anything is opened, so that a wrong setting leaves nothing behind.
type prepared struct {
	trusted  []netip.Prefix
	certs    *tls.Config // nil = no TLS
	plans    shorten.Plans
	unknown  *ratelimit.Limit // nil = off, as the two below
	reports  *ratelimit.Limit
	appeals  *ratelimit.Limit
	adminKey string            // "" = the data folder's
	places   *mmdb.Database    // nil = CURT_GEOIP is unset
	blocked  *abuse.Blocklists // nil = neither CURT_BLOCKLISTS nor CURT_ALLOWLISTS is set
	policy   abuse.Policy      // what is made of what the signals find
	signals  []abuse.Signal    // all that are no lists
	sources  *abuse.Sources    // nil = neither CURT_BRANDS nor CURT_SHORTENERS_FILE is set
	words    *abuse.Words      // nil = neither CURT_RESERVED_WORDS nor CURT_REFUSED_WORDS is set
}

// prepare reads the settings that [config.Config.Validate] cannot judge. It writes
// nothing, and each error is a [*config.Error]. work is called around what computes for
// long.
func prepare(ctx context.Context, cfg config.Config, log *slog.Logger, work func() (done func())) (p prepared, err error) {
	for _, step := range []func() error{
		func() (err error) { p.trusted, err = trustedProxies(cfg); return err },
		func() error { return checkNames(cfg) },
		func() error { return checkCache(cfg) },
		func() error { return checkEvents(cfg) },
		func() (err error) { p.plans, err = plans(cfg); return err },
		func() (err error) { p.unknown, err = unknownLimit(cfg); return err },
		func() (err error) { p.reports, err = reportLimit(cfg); return err },
		func() (err error) { p.appeals, err = appealLimit(cfg); return err },
		func() (err error) { p.certs, err = certificate(cfg); return err },
		func() (err error) { p.adminKey, err = adminKey(cfg); return err },
		func() (err error) { p.places, err = places(ctx, cfg, log); return err },
		checkTraces,
	} {
		if err := step(); err != nil {
			return prepared{}, err
		}
	}
	if rolesOf(cfg).judges() {
		err = p.judging(ctx, cfg, log, work)
	}
	return p, err
}

// judging reads what links are judged by.
func (p *prepared) judging(ctx context.Context, cfg config.Config, log *slog.Logger, work func() (done func())) (err error) {
	if p.blocked, err = blocklists(ctx, cfg, log, work); err != nil {
		return err
	}
	if p.policy, err = policy(cfg); err != nil {
		return err
	}
	if p.signals, err = signals(cfg); err != nil {
		return err
	}
	p.sources = abuse.OpenSources(ctx, abuse.SourcesConfig{Log: log, Work: work}, p.signals...)
	p.words, err = words(ctx, cfg, log, work)
	return err
}

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

// checkNames reads the names of this server as originOf will when it listens; the
// address stands in for the one that is bound then.
func checkNames(cfg config.Config) error {
	o, err := originOf(cfg, standIn())
	if err != nil {
		return err
	}
	_, err = o.ownHosts(standIn())
	return err
}

// standIn stands for an address that is not bound.
func standIn() *net.TCPAddr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }

func plans(cfg config.Config) (shorten.Plans, error) {
	p, err := shorten.DefaultPlans().With(cfg.Limits)
	if err != nil {
		return nil, &config.Error{Setting: "CURT_LIMITS", Value: cfg.Limits, Want: err.Error()}
	}
	return p, nil
}

func unknownLimit(cfg config.Config) (*ratelimit.Limit, error) {
	return limit("CURT_UNKNOWN_LIMIT", cfg.UnknownLimit)
}

func reportLimit(cfg config.Config) (*ratelimit.Limit, error) {
	return limit("CURT_REPORT_LIMIT", cfg.ReportLimit)
}

func appealLimit(cfg config.Config) (*ratelimit.Limit, error) {
	return limit("CURT_APPEAL_LIMIT", cfg.AppealLimit)
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

// certificate reads the listener's certificate; nil without one.
func certificate(cfg config.Config) (*tls.Config, error) {
	if cfg.TLSCert == "" {
		return nil, nil //nolint:nilnil // no TLS is no failure
	}
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

// places opens the file of places; nil when none is set.
func places(ctx context.Context, cfg config.Config, log *slog.Logger) (*mmdb.Database, error) {
	if cfg.GeoIP == "" {
		return nil, nil //nolint:nilnil // no map is no failure
	}
	d, err := mmdb.Open(ctx, mmdb.Config{Path: cfg.GeoIP, Log: log})
	if err != nil {
		return nil, &config.Error{Setting: "CURT_GEOIP", Value: cfg.GeoIP, Want: err.Error()}
	}
	return d, nil
}

// blocklists reads the files of what no link may lead to, and of what is good; nil when
// none is set.
func blocklists(ctx context.Context, cfg config.Config, log *slog.Logger, work func() (done func())) (*abuse.Blocklists, error) {
	if len(cfg.Blocklists)+len(cfg.Allowlists) == 0 {
		return nil, nil //nolint:nilnil // no list is no failure
	}
	b, err := abuse.Open(ctx, abuse.Config{Paths: cfg.Blocklists, Allow: cfg.Allowlists, Log: log, Work: work})
	if err != nil {
		return nil, wrongFile(err, "CURT_BLOCKLISTS", cfg.Blocklists, "CURT_ALLOWLISTS", cfg.Allowlists)
	}
	return b, nil
}

// words reads the files of aliases that nobody may choose; nil when none is set.
func words(ctx context.Context, cfg config.Config, log *slog.Logger, work func() (done func())) (*abuse.Words, error) {
	if len(cfg.ReservedWords)+len(cfg.RefusedWords) == 0 {
		return nil, nil //nolint:nilnil // no list is no failure
	}
	w, err := abuse.OpenWords(ctx, abuse.WordsConfig{Reserved: cfg.ReservedWords, Refused: cfg.RefusedWords, Log: log, Work: work})
	if err != nil {
		return nil, wrongFile(err, "CURT_RESERVED_WORDS", cfg.ReservedWords, "CURT_REFUSED_WORDS", cfg.RefusedWords)
	}
	return w, nil
}

// wrongFile says which of two settings names the file that cannot be used; the first
// when it is no single file.
func wrongFile(err error, one string, paths []string, other string, others []string) error {
	wrong, ok := errors.AsType[*abuse.FileError](err)
	switch {
	case !ok:
		return &config.Error{Setting: one, Value: strings.Join(paths, ","), Want: err.Error()}
	case slices.Contains(others, wrong.Path) && !slices.Contains(paths, wrong.Path):
		one = other
	}
	return &config.Error{Setting: one, Value: wrong.Path, Want: wrong.Err.Error()}
}

// checkTraces looks at the variables of OpenTelemetry.
func checkTraces() error {
	_, err := telemetry.CheckTraces(os.Getenv)
	if wrong, ok := errors.AsType[*telemetry.SettingError](err); ok {
		return &config.Error{Setting: wrong.Name, Value: wrong.Value, Want: wrong.Want}
	}
	return err
}

// validity says what a certificate is for, and until when; an error when it is not
// valid now.
func validity(certs *tls.Config, now time.Time) (string, error) {
	leaf := certs.Certificates[0].Leaf
	if now.After(leaf.NotAfter) || now.Before(leaf.NotBefore) {
		return "", fmt.Errorf("valid from %s to %s, and not now", leaf.NotBefore.Format(time.DateOnly), leaf.NotAfter.Format(time.DateOnly))
	}
	return strings.Join(leaf.DNSNames, ", ") + " until " + leaf.NotAfter.Format(time.DateOnly), nil
}
