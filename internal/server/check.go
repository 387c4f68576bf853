package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"curt/internal/abuse"
	"curt/internal/auth"
	"curt/internal/backend/postgres"
	"curt/internal/backup"
	"curt/internal/config"
)

// What Check looks at.
const (
	aboutSettings  = "settings"
	aboutAdminKey  = "admin key"
	aboutAddresses = "addresses"
)

// Checked is one thing that Check looked at: right, wrong (Err), or a doubt that keeps no
// server from starting (Advice).
type Checked struct {
	About  string // settings, admin key or addresses
	What   string // the setting and what was found; "" with an error
	Advice string // what to do about a doubt; "" = there is none
	Err    error  // a *config.Error: what is wrong
}

// Check looks at the settings as New would, and uses each file, secret and address
// once. A running server on the same folder is not disturbed, and nothing is left
// behind. What is wrong does not keep it from looking at the rest.
func Check(ctx context.Context, cfg config.Config) []Checked {
	c := &checker{}
	c.values(cfg)
	c.tls(cfg)
	c.adminKey(cfg)
	c.places(ctx, cfg)
	c.lists("CURT_BLOCKLISTS", cfg.Blocklists, func(path string) (abuse.Stats, error) {
		return abuse.Probe(ctx, abuse.Config{Paths: []string{path}})
	})
	c.lists("CURT_ALLOWLISTS", cfg.Allowlists, func(path string) (abuse.Stats, error) {
		return abuse.Probe(ctx, abuse.Config{Allow: []string{path}})
	})
	c.lists("CURT_RESERVED_WORDS", cfg.ReservedWords, func(path string) (abuse.Stats, error) {
		return abuse.ProbeWords(ctx, abuse.WordsConfig{Reserved: []string{path}})
	})
	c.lists("CURT_REFUSED_WORDS", cfg.RefusedWords, func(path string) (abuse.Stats, error) {
		return abuse.ProbeWords(ctx, abuse.WordsConfig{Refused: []string{path}})
	})
	c.signals(cfg)
	c.databases(ctx, cfg)
	c.cache(ctx, cfg)
	c.events(ctx, cfg)
	held := c.folder(ctx, cfg)
	c.listeners(ctx, cfg, held)
	c.collector(ctx)
	c.baseURL(ctx, cfg, held, time.Now())
	return c.all
}

type checker struct{ all []Checked }

func (c *checker) add(what string, err error) {
	c.all = append(c.all, Checked{About: aboutSettings, What: what, Err: err})
}

// doubt notes what works and is perhaps not meant.
func (c *checker) doubt(about, what, advice string) {
	c.all = append(c.all, Checked{About: about, What: what, Advice: advice})
}

// values looks at what the settings say, before what they name.
func (c *checker) values(cfg config.Config) {
	for _, err := range cfg.Validate() {
		c.add("", err)
	}
	valid := len(c.all) == 0
	_, wrongPlans := plans(cfg)
	_, wrongUnknown := unknownLimit(cfg)
	_, wrongReports := reportLimit(cfg)
	_, wrongAppeals := appealLimit(cfg)
	errs := []error{checkCache(cfg), checkEvents(cfg), wrongPlans, wrongUnknown, wrongReports, wrongAppeals, checkTraces()}
	if valid { // else they may be told twice
		_, wrongPolicy := policy(cfg)
		errs = append(errs, checkNames(cfg), wrongPolicy)
	}
	for _, err := range errs {
		if e, ok := errors.AsType[*config.Error](err); err != nil && (!ok || !c.told(e.Setting)) {
			c.add("", err)
		}
	}
	if len(c.all) == 0 {
		c.add("every value is understood", nil)
	}
}

func (c *checker) tls(cfg config.Config) {
	if cfg.TLSCert == "" || cfg.TLSKey == "" {
		return
	}
	certs, err := certificate(cfg)
	if err != nil {
		c.add("", err)
		return
	}
	what, err := validity(certs, time.Now())
	if err != nil {
		c.add("", &config.Error{Setting: "CURT_TLS_CERT", Value: cfg.TLSCert, Want: err.Error()})
		return
	}
	c.add("CURT_TLS_CERT="+cfg.TLSCert+": belongs to the key; "+what, nil)
}

func (c *checker) adminKey(cfg config.Config) {
	if cfg.AdminKey != "" && cfg.AdminKeyFile != "" || !rolesOf(cfg).programs {
		return // Validate has said so; nobody asks for one
	}
	key, err := adminKey(cfg)
	path := filepath.Join(cfg.Data, "admin.key")
	switch {
	case err != nil:
		c.add("", err)
	case key != "":
		c.add("the admin key is set and has the right form", nil)
	case !c.told("CURT_DATA"):
		text, err := config.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			if Inhabited(cfg.Data) {
				c.doubt(aboutAdminKey, "there is no "+path+": the next start makes a key, and one of before gets 401",
					"put it back from a backup, or give the new key to those who need it")
				return
			}
			what := "CURT_ADMIN_KEY is unset: the first start makes one and writes " + path
			if cfg.Links != config.SQLite {
				what += "; every other server with the API on this database needs the same one: set CURT_ADMIN_KEY at all of them"
			}
			c.add(what, nil)
			return
		}
		if err == nil {
			err = auth.CheckKey(strings.TrimSpace(string(text)))
		}
		if err != nil {
			c.add("", &config.Error{Setting: "CURT_DATA", Value: cfg.Data, Want: "the admin key in " + path + ": " + err.Error()})
			return
		}
		c.add("the admin key in "+path+" has the right form", nil)
	}
}

// told reports whether a setting is known to be wrong.
func (c *checker) told(setting string) bool {
	return slices.ContainsFunc(c.all, func(k Checked) bool {
		e, ok := errors.AsType[*config.Error](k.Err)
		return ok && e.Setting == setting
	})
}

// places is stricter than a start, which goes on with a damaged file.
func (c *checker) places(ctx context.Context, cfg config.Config) {
	if cfg.GeoIP == "" {
		return
	}
	d, err := places(ctx, cfg, slog.New(slog.DiscardHandler))
	if err == nil && d.Stats().Failures > 0 {
		err = &config.Error{Setting: "CURT_GEOIP", Value: cfg.GeoIP, Want: "the file is damaged, or no .mmdb file"}
	}
	c.add("CURT_GEOIP="+cfg.GeoIP+": opens", err)
}

// lists looks at files that the server reads again and again. It is stricter than a
// start, too: open reads one, which must be good.
func (c *checker) lists(setting string, paths []string, open func(path string) (abuse.Stats, error)) {
	for _, path := range paths {
		s, err := open(path)
		if err != nil {
			if wrong, ok := errors.AsType[*abuse.FileError](err); ok {
				err = wrong.Err
			}
			c.add("", &config.Error{Setting: setting, Value: path, Want: err.Error()})
			continue
		}
		what := fmt.Sprintf("%s=%s: %d entries", setting, path, s.Entries)
		if s.Passed > 0 {
			what += fmt.Sprintf("; %d lines are passed over", s.Passed)
		}
		if s.Strange > 0 {
			what += fmt.Sprintf("; %d lines are not understood and have no effect", s.Strange)
		}
		c.add(what, nil)
	}
}

// signals reads the files of brands and shorteners.
func (c *checker) signals(cfg config.Config) {
	if cfg.Brands == "" && cfg.ShortenersFile == "" {
		return
	}
	_, err := signals(cfg)
	var read []string
	for _, s := range []struct{ name, path string }{{"CURT_BRANDS", cfg.Brands}, {"CURT_SHORTENERS_FILE", cfg.ShortenersFile}} {
		if s.path != "" {
			read = append(read, s.name+"="+s.path)
		}
	}
	c.add(strings.Join(read, ", ")+": every line is understood", err)
}

// databases asks those that are set, which servers may be using.
func (c *checker) databases(ctx context.Context, cfg config.Config) {
	type database struct {
		setting, url string
		probe        func(ctx context.Context, url string) (string, error)
	}
	all := []database{{"CURT_LINKS", cfg.Links, postgres.Probe}, {"CURT_ANALYTICS", cfg.Analytics, postgres.Probe}, {"CURT_ACCOUNTS", cfg.Accounts, postgres.Probe}}
	for _, url := range cfg.LinksReplicas {
		all = append(all, database{"CURT_LINKS_REPLICAS", url, func(ctx context.Context, url string) (string, error) {
			return postgres.ProbeReplica(ctx, url, cfg.Links)
		}})
	}
	for _, d := range all {
		if d.url == config.SQLite || d.url == "" || c.told(d.setting) {
			continue
		}
		if config.IsClickHouse(d.url) {
			c.clickHouse(ctx, cfg)
			continue
		}
		shown := config.Redact(d.url)
		what, err := d.probe(ctx, d.url)
		if err != nil {
			err = &config.Error{Setting: d.setting, Value: shown, Want: err.Error()}
		}
		c.add(d.setting+"="+shown+": "+what, err)
	}
}

// folder reports whether a server holds the data folder.
func (c *checker) folder(ctx context.Context, cfg config.Config) (held bool) {
	if c.told("CURT_DATA") {
		return false
	}
	name := "CURT_DATA=" + cfg.Data + ": "
	info, err := os.Stat(cfg.Data)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		parent := cfg.Data
		for errors.Is(err, fs.ErrNotExist) && parent != filepath.Dir(parent) {
			parent = filepath.Dir(parent)
			_, err = os.Stat(parent)
		}
		if err == nil {
			err = unix.Access(parent, unix.W_OK|unix.X_OK)
		}
		c.data(cfg, name+"not there yet; the first start makes it", err)
		return false
	case err == nil && !info.IsDir():
		c.data(cfg, "", errors.New("want a folder; this is a file"))
		return false
	case err != nil:
		c.data(cfg, "", err)
		return false
	}
	probe, err := os.CreateTemp(cfg.Data, ".check-*")
	if err != nil {
		c.data(cfg, "", err)
		return false
	}
	if err := errors.Join(probe.Close(), os.Remove(probe.Name())); err != nil {
		c.data(cfg, "", err)
		return false
	}
	held, err = Held(cfg.Data)
	if held {
		name += "writable, and held by a running server"
	} else {
		name += "writable and free"
	}
	if err == nil && !held {
		err = startable(ctx, cfg)
	}
	c.data(cfg, name, err)
	return held
}

// startable returns why no server starts on a folder that is there.
func startable(ctx context.Context, cfg config.Config) error {
	if err := backup.Unfinished(cfg.Data); err != nil {
		return err
	}
	if cfg.Links == config.SQLite {
		if err := noLostLinks(cfg); err != nil {
			return err
		}
		return Whole(ctx, cfg.Data)
	}
	return noOwnLinks(cfg)
}

func (c *checker) data(cfg config.Config, what string, err error) {
	if err != nil && !errors.As(err, new(*config.Error)) {
		err = &config.Error{Setting: "CURT_DATA", Value: cfg.Data, Want: err.Error()}
	}
	c.add(what, err)
}

// Held reports whether a server uses a data folder. It asks the lock for a moment; a
// folder that no server has used has none.
func Held(folder string) (bool, error) {
	if _, err := os.Stat(filepath.Join(folder, "lock")); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	f, err := lockFolder(folder)
	if errors.Is(err, errLocked) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	return false, f.Close()
}

// listeners binds each address for a moment. One that is taken is right when a
// server runs on the folder: it is taken to be that server's.
func (c *checker) listeners(ctx context.Context, cfg config.Config, held bool) {
	if setting, address := keysInClear(cfg); setting != "" && !c.told(setting) {
		c.doubt(aboutAddresses, setting+"="+address+": "+clearKeys, clearAdvice)
	}
	for _, l := range []struct{ setting, address string }{
		{"CURT_LISTEN", cfg.Listen}, {"CURT_API_LISTEN", cfg.APIListen}, {"CURT_ADMIN_LISTEN", cfg.AdminListen},
	} {
		if l.address == "" || c.told(l.setting) || l.setting == "CURT_LISTEN" && !rolesOf(cfg).serves() {
			continue
		}
		name := l.setting + "=" + l.address + ": "
		bound, err := listen(ctx, l.setting, l.address)
		switch {
		case err == nil:
			err = bound.Close()
			name += "free"
		case held && errors.Is(err, unix.EADDRINUSE):
			err = nil
			name += "taken, while a server holds the data folder"
		case !errors.As(err, new(*config.Error)):
			err = &config.Error{Setting: l.setting, Value: l.address, Want: fmt.Sprint(errors.Unwrap(err))}
		}
		c.add(name, err)
	}
}
