// Package settings reads the settings of a server, and every file, secret and address that they
// name. There is one reader for each, which the start ([Read]), config check and doctor ([Check])
// share.
//
// The first file to read is this one; readers.go has a function for each setting.
package settings

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"curt/internal/abuse"
	"curt/internal/abuse/blocklist"
	"curt/internal/abuse/listfile"
	"curt/internal/abuse/signals"
	"curt/internal/backend/countries"
	"curt/internal/backend/kafka"
	"curt/internal/backend/mmdb"
	"curt/internal/backend/zookeeper"
	"curt/internal/background"
	"curt/internal/clicks"
	"curt/internal/config"
	"curt/internal/ratelimit"
	"curt/internal/shorten/create"
)

// Settings are the settings in the form in which capabilities take them.
type Settings struct {
	Config   config.Config
	Roles    Roles
	Trusted  []netip.Prefix // proxies
	Certs    *tls.Config    // nil = no TLS
	Plans    create.Plans
	Visits   VisitLimits
	Unknown  *ratelimit.Limit // nil = off, as the two below
	Reports  *ratelimit.Limit
	Appeals  *ratelimit.Limit
	AdminKey string           // "" = the data folder's
	Places   Places           // nil = CURT_GEOIP is unset and CURT_COUNTRIES is off
	GeoIP    *mmdb.Database   // nil = CURT_GEOIP is unset; Places uses it
	Kafka    *kafka.Config    // nil = CURT_EVENTS is unset
	Queue    *kafka.Config    // of links that are to be written; nil = CURT_WRITES=sync, or the Kafka is unknown here
	Lists    *blocklist.Lists // nil = neither CURT_BLOCKLISTS nor CURT_ALLOWLISTS is set
	Policy   abuse.Policy     // decides by the findings of signals
	Signals  []abuse.Signal   // all but Lists
	Velocity *signals.Rate    // of Signals
	Sources  *listfile.Set    // nil = neither CURT_BRANDS nor CURT_SHORTENERS_FILE is set
	Words    *blocklist.Words // nil = neither CURT_RESERVED_WORDS nor CURT_REFUSED_WORDS is set

	ZooKeeper *zookeeper.Config // nil = CURT_IDS is unset
}

// Places find out where addresses are.
type Places interface {
	clicks.Geo
	Country(addr netip.Addr) string
	Built() time.Time // of the data; zero = none is loaded
}

// Attribution returns the sentence that has to be shown beside countries; "" = none.
func (s *Settings) Attribution() string {
	if s.Places == nil || s.Config.Countries != "on" {
		return ""
	}
	return countries.Attribution
}

// Roles are what a server does, by CURT_ROLE.
type Roles struct{ Redirects, API, Worker, Keys, Writer bool }

// RolesOf reads CURT_ROLE.
func RolesOf(cfg config.Config) Roles {
	return Roles{
		cfg.Does(config.RoleRedirect), cfg.Does(config.RoleAPI), cfg.Does(config.RoleWorker),
		cfg.Does(config.RoleKeys) && cfg.Codes == config.CodesPool, cfg.Does(config.RoleWriter) && cfg.Queues(),
	}
}

// Serves reports whether there is a public socket.
func (r Roles) Serves() bool { return r.Redirects || r.API }

// Judges reports whether links are created or judged.
func (r Roles) Judges() bool { return r.API || r.Worker || r.Writer }

// Writes reports whether the link store is written to.
func (r Roles) Writes() bool { return r.Judges() || r.Keys }

// Shared reports whether other processes may work on the same links.
func (s *Settings) Shared() bool { return s.Config.Links != config.SQLite }

// Checked is one thing that Check looked at: right, wrong (Err), or a doubt that keeps no
// server from starting (Advice alone).
type Checked struct {
	About  string // settings, admin key or addresses
	What   string // the setting and what was found; "" with an error
	Advice string // what to do about a doubt, or about Err; "" = there is no doubt, and Err names the setting to correct
	Err    error  // a *config.Error: what is wrong

	lenient bool // a start goes on with Err
}

// About of Checked.
const (
	aboutSettings  = "settings"
	aboutAdminKey  = "admin key"
	aboutAddresses = "addresses"
)

// Read reads the settings for a start. They must be valid by config.Config.Validate. It writes
// nothing, asks no other machine, and leaves out what no role needs. An error is a
// [*config.Error].
func Read(ctx context.Context, cfg config.Config, log *slog.Logger, y background.Yielder) (Settings, error) {
	r := newReader(cfg, log, y)
	r.read(ctx)
	for _, c := range r.findings {
		if c.Err != nil && !c.lenient {
			return Settings{}, c.Err
		}
	}
	return r.settings, nil
}

// reader reads settings and notes what it finds. A wrong setting does not keep it from reading the
// others.
type reader struct {
	cfg      config.Config
	log      *slog.Logger
	yielder  background.Yielder
	checking bool // for Check: the role does not matter
	settings Settings

	findings
}

// findings are what was found so far.
type findings []Checked

func newReader(cfg config.Config, log *slog.Logger, y background.Yielder) *reader {
	return &reader{cfg: cfg, log: log, yielder: y, settings: Settings{Config: cfg, Roles: RolesOf(cfg)}}
}

// read reads every setting that names something.
func (r *reader) read(ctx context.Context) {
	r.values()
	r.certificate(time.Now())
	r.adminKey()
	r.places(ctx, time.Now())
	if r.settings.Roles.Judges() || r.checking {
		r.lists(ctx)
		r.signals(ctx)
	}
}

// values reads settings that are complete by themselves.
func (r *reader) values() {
	valid := len(r.findings) == 0
	note(r, &r.settings.Trusted)(trustedProxies(r.cfg))
	r.note("", checkCache(r.cfg))
	if config.IsDynamoDB(r.cfg.Links) && !r.checking { // Check uses the tables as well
		_, err := Tables(r.cfg)
		r.note("", err)
	}
	if r.cfg.Events != "" {
		k, err := Kafka(r.cfg)
		r.settings.Kafka = &k
		r.note("", err)
	}
	if r.cfg.Queues() && (r.cfg.WritesKafka != "" || r.cfg.Events != "") {
		q, err := Queue(r.cfg)
		r.settings.Queue = &q
		r.note("", err)
	}
	if r.cfg.IDs != "" {
		z, err := ZooKeeper(r.cfg)
		r.settings.ZooKeeper = &z
		r.note("", err)
	}
	note(r, &r.settings.Plans)(plans(r.cfg))
	note(r, &r.settings.Visits)(visitLimits(r.cfg))
	note(r, &r.settings.Unknown)(limit("CURT_UNKNOWN_LIMIT", r.cfg.UnknownLimit))
	note(r, &r.settings.Reports)(limit("CURT_REPORT_LIMIT", r.cfg.ReportLimit))
	note(r, &r.settings.Appeals)(limit("CURT_APPEAL_LIMIT", r.cfg.AppealLimit))
	r.note("", checkTraces())
	if valid { // otherwise the same mistake may be found twice
		_, err := Hosts(r.cfg, Unbound())
		r.note("", err)
		if r.settings.Roles.Judges() || r.checking {
			note(r, &r.settings.Policy)(policy(r.cfg))
		}
	}
	if len(r.findings) == 0 {
		r.note("all values are valid", nil)
	}
}

// note notes the outcome of a reader, and keeps its value.
func note[T any](r *reader, to *T) func(T, error) {
	return func(value T, err error) {
		*to = value
		r.note("", err)
	}
}

// note notes what is right, or an error of a setting that is not known to be wrong.
func (f *findings) note(what string, err error) {
	wrong, ok := errors.AsType[*config.Error](err)
	if err == nil && what == "" || ok && f.told(wrong.Setting) {
		return
	}
	*f = append(*f, Checked{About: aboutSettings, What: what, Err: err})
}

// refuse notes an error that a start goes on with.
func (f *findings) refuse(err error) {
	*f = append(*f, Checked{About: aboutSettings, Err: err, lenient: true})
}

// doubt notes what works and is perhaps not meant.
func (f *findings) doubt(about, what, advice string) {
	*f = append(*f, Checked{About: about, What: what, Advice: advice})
}

// told reports whether a setting is known to be wrong.
func (f *findings) told(setting string) bool {
	return slices.ContainsFunc(*f, func(k Checked) bool {
		e, ok := errors.AsType[*config.Error](k.Err)
		return ok && e.Setting == setting
	})
}

// certificate is stricter in a check than at a start, which goes on with one that has expired.
func (r *reader) certificate(now time.Time) {
	if r.cfg.TLSCert == "" || r.cfg.TLSKey == "" {
		return
	}
	certs, err := certificate(r.cfg)
	if err != nil {
		r.note("", err)
		return
	}
	r.settings.Certs = certs
	leaf := certs.Certificates[0].Leaf
	if now.After(leaf.NotAfter) || now.Before(leaf.NotBefore) {
		r.refuse(&config.Error{Setting: "CURT_TLS_CERT", Value: r.cfg.TLSCert, Want: fmt.Sprintf(
			"only valid from %s to %s", leaf.NotBefore.Format(time.DateOnly), leaf.NotAfter.Format(time.DateOnly))})
		return
	}
	r.note("CURT_TLS_CERT="+r.cfg.TLSCert+": matches the key; "+strings.Join(leaf.DNSNames, ", ")+" until "+leaf.NotAfter.Format(time.DateOnly), nil)
}

func (r *reader) adminKey() {
	key, err := adminKey(r.cfg)
	switch {
	case err != nil:
		r.note("", err)
	case key != "":
		r.settings.AdminKey = key
		r.note("the admin key is set and valid", nil)
	case r.checking:
		r.ownAdminKey()
	}
}

// oldPlaces is the age of a file from which a check asks for a newer one; networks move by some
// percent a month.
const oldPlaces = 180 * 24 * time.Hour

// places is stricter in a check than at a start, which goes on with a damaged file.
func (r *reader) places(ctx context.Context, now time.Time) {
	if r.cfg.GeoIP == "" {
		if r.cfg.Countries == "on" {
			r.settings.Places = countries.New(nil)
			if at := countries.Published(); at.IsZero() {
				r.doubt(aboutSettings, "countries: "+countries.ErrMissing.Error(), "use a release, or CURT_GEOIP")
			} else {
				r.note("countries: built-in table of "+at.Format(time.DateOnly), nil)
			}
		}
		return
	}
	d, err := mmdb.Open(ctx, mmdb.Config{Path: r.cfg.GeoIP, Log: r.log})
	switch {
	case err != nil:
		r.note("", &config.Error{Setting: "CURT_GEOIP", Value: r.cfg.GeoIP, Want: err.Error()})
	case d.Stats().Failures > 0:
		r.refuse(&config.Error{Setting: "CURT_GEOIP", Value: r.cfg.GeoIP, Want: "the file is damaged or not an .mmdb file"})
	case now.Sub(d.Built()) > oldPlaces:
		r.doubt(aboutSettings, "CURT_GEOIP="+r.cfg.GeoIP+": built on "+d.Built().Format(time.DateOnly), "replace the file with a newer one: curt geoip update")
	default:
		r.note("CURT_GEOIP="+r.cfg.GeoIP+": opens, built on "+d.Built().Format(time.DateOnly), nil)
	}
	if d == nil {
		return
	}
	r.settings.GeoIP, r.settings.Places = d, d
	if r.cfg.Countries == "on" {
		r.settings.Places = countries.New(d)
	}
}

// lists reads the files of destinations and of words, which the server reads again when they
// change.
func (r *reader) lists(ctx context.Context) {
	if len(r.cfg.Blocklists)+len(r.cfg.Allowlists) > 0 {
		b, err := blocklist.Open(ctx, blocklist.Config{Paths: r.cfg.Blocklists, Allow: r.cfg.Allowlists, Log: r.log, Yielder: r.yielder})
		r.tooMany("CURT_BLOCKLISTS", r.cfg.Blocklists, err)
		r.files("CURT_BLOCKLISTS", b.Files)
		r.files("CURT_ALLOWLISTS", b.AllowFiles)
		r.settings.Lists = b
	}
	if len(r.cfg.ReservedWords)+len(r.cfg.RefusedWords) > 0 {
		w, err := blocklist.OpenWords(ctx, blocklist.WordsConfig{Reserved: r.cfg.ReservedWords, Refused: r.cfg.RefusedWords, Log: r.log, Yielder: r.yielder})
		r.tooMany("CURT_RESERVED_WORDS", r.cfg.ReservedWords, err)
		r.files("CURT_RESERVED_WORDS", w.ReservedFiles)
		r.files("CURT_REFUSED_WORDS", w.RefusedFiles)
		r.settings.Words = w
	}
}

// tooMany notes an error that is not of a single file.
func (r *reader) tooMany(setting string, paths []string, err error) {
	if _, single := errors.AsType[*listfile.FileError](err); err != nil && !single {
		r.note("", &config.Error{Setting: setting, Value: strings.Join(paths, ","), Want: err.Error()})
	}
}

// files notes each file of a setting. A check wants every one to be good; a start goes on with
// those that are damaged.
func (r *reader) files(setting string, files func() []listfile.FileStats) {
	for _, f := range files() {
		if f.Err != nil {
			err := &config.Error{Setting: setting, Value: f.Path, Want: f.Err.Error()}
			if !errors.Is(f.Err, listfile.ErrFile) {
				r.refuse(err)
			} else {
				r.findings = append(r.findings, Checked{About: aboutSettings, Err: err})
			}
			continue
		}
		what := fmt.Sprintf("%s=%s: %d entries", setting, f.Path, f.Entries)
		if f.Passed > 0 {
			what += fmt.Sprintf("; skipped lines: %d", f.Passed)
		}
		if f.Invalid > 0 {
			what += fmt.Sprintf("; invalid lines, ignored: %d", f.Invalid)
		}
		r.note(what, nil)
	}
}

// signals reads the files of brands and shorteners.
func (r *reader) signals(ctx context.Context) {
	all, rate, err := newSignals(r.cfg)
	var read []string
	for _, s := range []struct{ name, path string }{{"CURT_BRANDS", r.cfg.Brands}, {"CURT_SHORTENERS_FILE", r.cfg.ShortenersFile}} {
		if s.path != "" {
			read = append(read, s.name+"="+s.path)
		}
	}
	switch {
	case err != nil:
		r.note("", err)
		return
	case len(read) > 0:
		r.note(strings.Join(read, ", ")+": all lines are valid", nil)
	}
	r.settings.Signals, r.settings.Velocity = all, rate
	r.settings.Sources = signals.OpenFiles(ctx, r.log, r.yielder, all...)
}

// HSTS returns the value of Strict-Transport-Security; "" = none. It names this host alone:
// subdomains may be others'.
func (s *Settings) HSTS() string {
	if s.Config.HSTS <= 0 {
		return ""
	}
	return "max-age=" + strconv.FormatInt(int64(time.Duration(s.Config.HSTS)/time.Second), 10)
}
