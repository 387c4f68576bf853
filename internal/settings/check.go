package settings

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"curt/internal/auth"
	"curt/internal/backend/clickhouse/clickdb"
	"curt/internal/backend/dynamodb/tables"
	"curt/internal/backend/kafka"
	"curt/internal/backend/postgres/pgdb"
	"curt/internal/backend/postgres/replicas"
	"curt/internal/backend/redis"
	"curt/internal/backend/zookeeper"
	"curt/internal/background"
	"curt/internal/config"
	"curt/internal/datafolder"
	"curt/internal/listen"
)

// Check looks at the settings as New would, and uses each file, secret and address
// once. A running server on the same folder is not disturbed, and nothing is left
// behind. What is wrong does not keep it from looking at the rest.
func Check(ctx context.Context, cfg config.Config) []Checked {
	r := newReader(cfg, slog.New(slog.DiscardHandler), background.Inline{})
	r.checking = true
	for _, err := range cfg.Validate() {
		r.add("", err)
	}
	r.read(ctx)
	r.databases(ctx, cfg)
	r.cache(ctx, cfg)
	r.ids(ctx, cfg)
	r.events(ctx, cfg)
	r.queue(ctx, cfg)
	held := r.folder(ctx, cfg)
	r.listeners(ctx, cfg, held)
	r.collector(ctx)
	r.baseURL(ctx, cfg, held, time.Now())
	return r.findings
}

// ownAdminKey looks at the key in the data folder.
func (r *reader) ownAdminKey() {
	cfg, path := r.cfg, filepath.Join(r.cfg.Data, "admin.key")
	if r.told("CURT_DATA") || !r.settings.Roles.API {
		return
	}
	text, err := config.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		if datafolder.Used(cfg.Data) {
			r.doubt(aboutAdminKey, "there is no "+path+": the next start generates a key, and the old one gets 401",
				"restore it from a backup, or distribute the new key")
			return
		}
		what := "CURT_ADMIN_KEY is unset: the first start generates one and writes " + path
		if cfg.Links != config.SQLite {
			what += "; all API servers on this database need the same key: set CURT_ADMIN_KEY on each"
		}
		r.note(what, nil)
		return
	}
	if err == nil {
		err = auth.CheckKey(strings.TrimSpace(string(text)))
	}
	if err != nil {
		r.note("", &config.Error{Setting: "CURT_DATA", Value: cfg.Data, Want: "the admin key in " + path + ": " + err.Error()})
		return
	}
	r.note("the admin key in "+path+" is valid", nil)
}

// databases asks those that are set, which servers may be using.
func (r *reader) databases(ctx context.Context, cfg config.Config) {
	type database struct {
		setting, url string
		probe        func(ctx context.Context, url string) (string, error)
	}
	all := []database{{"CURT_LINKS", cfg.Links, pgdb.Probe}, {"CURT_ANALYTICS", cfg.Analytics, pgdb.Probe}, {"CURT_ACCOUNTS", cfg.Accounts, pgdb.Probe}}
	for _, url := range cfg.LinksReplicas {
		all = append(all, database{"CURT_LINKS_REPLICAS", url, func(ctx context.Context, url string) (string, error) {
			return replicas.Probe(ctx, url, cfg.Links)
		}})
	}
	for _, d := range all {
		if d.url == config.SQLite || d.url == "" || r.told(d.setting) {
			continue
		}
		if config.IsClickHouse(d.url) {
			r.clickHouse(ctx, cfg)
			continue
		}
		if config.IsDynamoDB(d.url) {
			d.probe = tables.Probe
		}
		shown := config.Redact(d.url)
		what, err := d.probe(ctx, d.url)
		if err != nil {
			err = &config.Error{Setting: d.setting, Value: shown, Want: err.Error()}
		}
		r.asked(d.setting+"="+shown+": "+what, err)
	}
}

// folder reports whether a server holds the data folder.
func (r *reader) folder(ctx context.Context, cfg config.Config) (held bool) {
	if r.told("CURT_DATA") {
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
		r.data(cfg, name+"missing; the first start creates it", err)
		return false
	case err == nil && !info.IsDir():
		r.data(cfg, "", errors.New("expected a folder; this is a file"))
		return false
	case err != nil:
		r.data(cfg, "", err)
		return false
	}
	probe, err := os.CreateTemp(cfg.Data, ".check-*")
	if err != nil {
		r.data(cfg, "", err)
		return false
	}
	if err := errors.Join(probe.Close(), os.Remove(probe.Name())); err != nil {
		r.data(cfg, "", err)
		return false
	}
	held, err = datafolder.Held(cfg.Data)
	if held {
		name += "writable, locked by a running server"
	} else {
		name += "writable and free"
	}
	if err == nil && !held {
		err = datafolder.Startable(ctx, cfg)
	}
	r.data(cfg, name, err)
	return held
}

func (r *reader) data(cfg config.Config, what string, err error) {
	if err != nil && !errors.As(err, new(*config.Error)) {
		err = &config.Error{Setting: "CURT_DATA", Value: cfg.Data, Want: err.Error()}
	}
	r.add(what, err)
}

// listeners binds each address for a moment. One that is taken is right when a
// server runs on the folder: it is taken to be that server's.
func (r *reader) listeners(ctx context.Context, cfg config.Config, held bool) {
	if setting, address := KeysInClear(cfg); setting != "" && !r.told(setting) {
		r.doubt(aboutAddresses, setting+"="+address+": "+clearKeys, ClearAdvice)
	}
	for _, l := range []struct{ setting, address string }{
		{"CURT_LISTEN", cfg.Listen}, {"CURT_API_LISTEN", cfg.APIListen}, {"CURT_ADMIN_LISTEN", cfg.AdminListen},
	} {
		if l.address == "" || r.told(l.setting) || l.setting == "CURT_LISTEN" && !RolesOf(cfg).Serves() {
			continue
		}
		name := l.setting + "=" + l.address + ": "
		bound, err := listen.Listen(ctx, l.setting, l.address)
		switch {
		case err == nil:
			err = bound.Close()
			name += "free"
		case held && errors.Is(err, unix.EADDRINUSE):
			err = nil
			name += "in use, while a server holds the data folder"
		case !errors.As(err, new(*config.Error)):
			err = &config.Error{Setting: l.setting, Value: l.address, Want: fmt.Sprint(errors.Unwrap(err))}
		}
		r.add(name, err)
	}
}

// add notes the outcome of a probe.
func (f *findings) add(what string, err error) {
	*f = append(*f, Checked{About: aboutSettings, What: what, Err: err})
}

// fail notes an error, and what to do about it.
func (f *findings) fail(err error, advice string) {
	*f = append(*f, Checked{About: aboutSettings, Err: err, Advice: advice})
}

// asked notes the outcome of a probe of another machine, whose failure need not be the setting's.
func (f *findings) asked(what string, err error) {
	if err != nil {
		f.fail(err, startIt)
		return
	}
	f.add(what, nil)
}

const (
	createTopic = "run curt migrate, which creates it"
	startIt     = "if the setting is right, start that server, or make it reachable from here"
)

// cache asks the Redis server, which others may be using.
func (r *reader) cache(ctx context.Context, cfg config.Config) {
	if cfg.Cache == "" || r.told("CURT_CACHE") {
		return
	}
	what, err := redis.Probe(ctx, cfg.Cache)
	if err != nil {
		err = WrongCache(cfg, err)
	}
	r.asked("CURT_CACHE="+config.Redact(cfg.Cache)+": "+what, err)
}

// ids asks ZooKeeper, which others may be using. Nothing is written.
func (r *reader) ids(ctx context.Context, cfg config.Config) {
	z := r.settings.ZooKeeper
	if z == nil || r.told("CURT_IDS") {
		return
	}
	what, err := zookeeper.Probe(ctx, *z)
	if err != nil {
		err = &config.Error{Setting: "CURT_IDS", Value: config.Redact(cfg.IDs), Want: OneLine(err).Error()}
	}
	r.asked("CURT_IDS="+config.Redact(cfg.IDs)+": "+what, err)
}

// clickHouse probes the servers that have the statistics, also as replicas of each other. One of several that
// does not answer is none that is set wrongly, unless none answers.
func (r *reader) clickHouse(ctx context.Context, cfg config.Config) {
	all := ClickHouses(cfg, nil)
	found, errs := make([]clickdb.Probed, len(all)), make([]error, len(all))
	answers := false
	for i, c := range all {
		found[i], errs[i] = clickdb.Probe(ctx, c.DB())
		answers = answers || !clickdb.Unreachable(errs[i])
	}
	for i, c := range all {
		url, err := config.Redact(c.URL), errs[i]
		shown := "CURT_ANALYTICS=" + url + ": "
		switch {
		case clickdb.Unreachable(err) && answers:
			r.doubt(aboutSettings, shown+"unavailable: "+OneLine(err).Error(), "start it; until then the others are queried, and its clicks wait in Kafka as long as that keeps them")
		case err != nil:
			r.asked("", &config.Error{Setting: "CURT_ANALYTICS", Value: url, Want: OneLine(err).Error()})
		case c.Position == 0 && found[i].Replica.Filling:
			r.doubt(aboutSettings, shown+found[i].Text, "name the replica that is complete first, and this one behind it: alone it lacks clicks, and statistics are 503")
		default:
			r.add(shown+found[i].Text, nil)
		}
	}
}

// queue asks Kafka for the topic of links that are to be written.
func (r *reader) queue(ctx context.Context, cfg config.Config) {
	q := r.settings.Queue
	if q == nil || r.told("CURT_WRITES") || r.told("CURT_WRITES_KAFKA") || r.told("CURT_EVENTS") {
		return
	}
	shown, wrong := "CURT_WRITES="+cfg.Writes, func(want string) error {
		return &config.Error{Setting: "CURT_WRITES", Value: cfg.Writes, Want: want}
	}
	err := q.Safe(ctx)
	switch missing := "Kafka has no topic " + q.Topic; {
	case errors.Is(err, kafka.ErrNoTopic) && r.settings.Roles.API: // which does not start without
		r.fail(wrong(missing), createTopic)
	case errors.Is(err, kafka.ErrNoTopic):
		r.doubt(aboutSettings, shown+": "+missing, createTopic)
	case errors.Is(err, kafka.ErrUnsafe) && cfg.WritesLoss:
		r.doubt(aboutSettings, shown+": "+OneLine(err).Error()+", and "+QueueLoses, SafeQueue)
	case errors.Is(err, kafka.ErrUnsafe):
		r.fail(wrong(OneLine(err).Error()), AllowQueue)
	case err != nil:
		r.asked("", wrong(OneLine(err).Error()))
	default:
		r.add(fmt.Sprintf("%s: Kafka is available, topic %s keeps each link on two brokers at least", shown, q.Topic), nil)
	}
}

// events asks Kafka for the topic. Without it no server starts worse: clicks wait.
func (r *reader) events(ctx context.Context, cfg config.Config) {
	k := r.settings.Kafka
	if k == nil || r.told("CURT_EVENTS") {
		return
	}
	shown := "CURT_EVENTS=" + config.Redact(cfg.Events)
	partitions, err := kafka.Probe(ctx, *k)
	switch {
	case errors.Is(err, kafka.ErrNoTopic):
		r.doubt(aboutSettings, shown+": Kafka has no topic "+k.Topic, createTopic)
	case err != nil:
		r.asked("", &config.Error{Setting: "CURT_EVENTS", Value: config.Redact(cfg.Events), Want: OneLine(err).Error()})
	default:
		r.add(fmt.Sprintf("%s: Kafka is available, partitions of topic %s: %d", shown, k.Topic, partitions), nil)
		if _, err := kafka.Probe(ctx, k.Created()); errors.Is(err, kafka.ErrNoTopic) {
			r.doubt(aboutSettings, shown+": Kafka has no topic "+k.Created().Topic, createTopic)
		}
	}
}
