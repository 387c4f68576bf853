package server

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"curt/internal/auth"
	"curt/internal/backend/coldsql"
	"curt/internal/backend/postgres"
	"curt/internal/backend/sqlite"
	"curt/internal/clicks"
	"curt/internal/codegen"
	"curt/internal/config"
	"curt/internal/idempotency"
	"curt/internal/joblease"
	"curt/internal/link"
	"curt/internal/moderation"
)

// stores are what the server keeps things in, each chosen by itself: none is asked for what
// another one is for.
type stores struct {
	links    link.Backend
	creates  link.CreateLog // of links
	keyring  keyring
	leases   codegen.Leaser
	beside   coldsql.Accounts // in the database of links
	accounts accounts
	loops    []loop                       // that look after other stores than links
	senders  clickSenders                 // nil = clicks are this server's alone
	replicas func() postgres.ReplicaStats // nil = look-ups have no standbys
	needs    []dependency                 // of these stores, for /readyz
}

// keyring keeps the secrets that servers over the same links share.
type keyring interface {
	clicks.DayKeys

	// CodeKey returns the key of the permutation, which other secrets are derived from.
	CodeKey(ctx context.Context) ([32]byte, error)
}

// clickSenders are the servers that may hold clicks which nobody else has.
type clickSenders interface {
	Enlist(ctx context.Context, one clicks.Sender) error
	All(ctx context.Context) ([]clicks.Sender, error)
	Dismiss(ctx context.Context, one clicks.Sender) error
}

// journal is the journal of moderation with how much of it has taken effect.
type journal interface {
	moderation.Journal
	moderation.ProgressStore
}

// accounts is what is kept of those who use links, and what was decided about these.
type accounts struct {
	once    idempotency.Store
	jobs    joblease.Store
	keys    auth.Store
	shares  auth.ShareStore
	journal journal
	cases   moderation.Cases
	appeals moderation.Appeals
	peers   moderation.Peers // nil = no other process has them
}

// accountsOf takes the contracts of accounts apart.
func accountsOf(a coldsql.Accounts, j journal) accounts {
	peers, _ := j.(moderation.Peers)
	return accounts{a.Idempotency(), a.JobLeases(), a.Keys(), a.Shares(), j, a.Cases(), a.Appeals(), peers}
}

// openAccounts has the accounts where CURT_ACCOUNTS says. A server that neither makes nor judges
// links has no use for them.
func (s *Server) openAccounts(ctx context.Context) error {
	if !s.roles.judges() {
		return nil
	}
	if s.config.Accounts == "" {
		return wrongAccounts(s.config, s.beside.Beside(ctx))
	}
	name := "" // links that one server has
	if s.shared() {
		var err error
		if name, err = instance(s.config.Data); err != nil {
			return err
		}
	}
	of := coldsql.Of(s.codeKey)
	a, err := postgres.OpenAccounts(ctx, postgres.AccountsConfig{URL: s.config.Accounts, Instance: name, Of: of, Log: s.log})
	if err != nil {
		return wrongDatabase("CURT_ACCOUNTS", s.config.Accounts, err)
	}
	s.closers = append(s.closers, a.Close)
	if err := coldsql.Part(ctx, s.beside, a.Accounts.Accounts, of); err != nil {
		return wrongAccounts(s.config, err)
	}
	s.accounts = accountsOf(a.Accounts.Accounts, a.Journal())
	if !s.shared() {
		s.accounts.peers = nil
	}
	s.loops = append(s.loops, loop{"accounts", a.Run})
	s.needs = append(s.needs, dependency{"accounts", !s.roles.redirects, func() error { return errors.Join(a.Healthy(), a.Tables()) }})
	return nil
}

// wrongAccounts makes a wrong setting of links and accounts that do not go together.
func wrongAccounts(cfg config.Config, err error) error {
	for _, wrong := range []error{coldsql.ErrApart, coldsql.ErrBeside, coldsql.ErrForeign} {
		if errors.Is(err, wrong) {
			return &config.Error{Setting: "CURT_ACCOUNTS", Value: config.Redact(cfg.Accounts), Want: wrong.Error()}
		}
	}
	return err
}

// openStores opens the stores that are set.
func (s *Server) openStores(ctx context.Context) error {
	if s.config.Links == config.SQLite {
		return s.openSQLite(ctx)
	}
	return s.openPostgres(ctx)
}

func (s *Server) openSQLite(ctx context.Context) error {
	if err := noLostLinks(s.config); err != nil {
		return err
	}
	l, err := sqlite.OpenLinks(ctx, sqlite.LinksConfig{
		Path:        filepath.Join(s.config.Data, "curt.db"),
		Synchronous: s.config.SQLiteSynchronous, Stored: s.finder.stored, Tracer: s.traces.Tracer(), Rest: s.rest(),
		Aside: s.questions.answer, Force: s.force, Log: s.log,
	})
	if err != nil {
		return notWhole(s.config.Data, err)
	}
	s.closers = append(s.closers, l.Close)
	s.stores = stores{links: l, creates: l, keyring: l, leases: l, beside: l.Accounts().Accounts, accounts: accountsOf(l.Accounts().Accounts, l.Accounts().Journal())}
	return nil
}

func (s *Server) openPostgres(ctx context.Context) error {
	if err := noOwnLinks(s.config); err != nil {
		return err
	}
	name, err := instance(s.config.Data)
	if err != nil {
		return err
	}
	l, err := postgres.OpenLinks(ctx, postgres.LinksConfig{
		URL: s.config.Links, Instance: name, Stored: s.finder.stored, Log: s.log,
		Readers: s.config.LinksConns - s.config.LinksConns/3, Writers: s.config.LinksConns / 3,
		Replicas: s.config.LinksReplicas, MaxLag: s.config.LinksReplicaLag,
		ReadOnly: !s.roles.judges(),
	})
	if err != nil {
		return wrongDatabase("CURT_LINKS", s.config.Links, err)
	}
	s.closers = append(s.closers, l.Close)
	s.stores = stores{
		links: l, creates: l, keyring: l, leases: l, beside: l.Accounts().Accounts, accounts: accountsOf(l.Accounts().Accounts, l.Accounts().Journal()),
		senders: l.Senders(), needs: []dependency{{"tables", true, l.Tables}},
	}
	if len(s.config.LinksReplicas) > 0 {
		s.replicas = l.Replicas
		s.needs = append(s.needs, dependency{"replicas", false, func() error {
			if known := l.Replicas(); known.Usable < len(known.Lags) {
				return fmt.Errorf("%d of %d standbys are asked; the others are away, or too far behind", known.Usable, len(known.Lags))
			}
			return nil
		}})
	}
	return nil
}

// noLostLinks refuses a folder whose links are in a database, and one that has clicks and no
// links: whoever started on it would answer 404 for links that are elsewhere, were lost or not
// restored, and could give their codes to others. The store of links is the first that a new
// folder gets.
func noLostLinks(cfg config.Config) error {
	info, err := os.Stat(filepath.Join(cfg.Data, "curt.db"))
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("look for the links: %w", err)
	case err == nil && info.Size() > 0:
		return nil
	}
	if Elsewhere(cfg.Data) != nil {
		return &config.Error{
			Setting: "CURT_DATA", Value: cfg.Data,
			Want: "its links are in a database, as CURT_LINKS says, and CURT_LINKS is not set here; set it as it was, or take another folder",
		}
	}
	beside, err := leftBehind(cfg.Data)
	if err != nil || beside == "" {
		return err
	}
	return &config.Error{
		Setting: "CURT_DATA", Value: cfg.Data,
		Want: "its links are gone: curt.db is missing or empty, and " + beside + "; bring a backup back with curt restore --force, or take another folder",
	}
}

// notWhole makes a wrong setting of a folder whose links, or some of them, are gone.
func notWhole(folder string, err error) error {
	if lost, ok := errors.AsType[*sqlite.LostError](err); ok {
		return &config.Error{Setting: "CURT_DATA", Value: folder, Want: lost.Error()}
	}
	if errors.Is(err, sqlite.ErrUnfit) {
		return &config.Error{Setting: "CURT_DATA", Value: folder, Want: sqlite.ErrUnfit.Error()}
	}
	if errors.Is(err, sqlite.ErrGone) {
		return &config.Error{Setting: "CURT_DATA", Value: folder, Want: err.Error()}
	}
	return err
}

// Whole returns an error for a data folder that no server uses and whose write-ahead log
// lost confirmed links: whatever reads the links by SQLite would not see them, and leave less
// for others to notice it by. A folder that a server uses is whole.
func Whole(ctx context.Context, folder string) error {
	if held, err := Held(folder); held || err != nil {
		return err
	}
	o, err := sqlite.Look(ctx, filepath.Join(folder, "curt.db"))
	if err == nil && o.Lost != nil && !o.New {
		err = o.Lost
	}
	return notWhole(folder, err)
}

// leftBehind says what shows that a folder had links once; "" = nothing does. Each of these
// is made after the store of links. What is empty shows nothing: a first start that was
// killed leaves files that it had not filled yet.
func leftBehind(folder string) (what string, err error) {
	counts, err := os.Stat(filepath.Join(folder, "clicks.db"))
	switch {
	case err == nil && counts.Size() > 0:
		return "clicks.db beside it has counts", nil
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("look for the counts: %w", err)
	}
	segments, err := os.ReadDir(filepath.Join(folder, "clicks"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("look for the click log: %w", err)
	}
	if slices.ContainsFunc(segments, func(e fs.DirEntry) bool { return clicks.IsSegment(e.Name()) }) {
		return "the click log beside it has clicks", nil
	}
	key, err := os.Stat(filepath.Join(folder, "admin.key"))
	switch {
	case err == nil && key.Size() > 0:
		return "admin.key beside it is of a server that ran here", nil
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("look for the admin key: %w", err)
	}
	return "", nil
}

// noOwnLinks refuses a folder with links of its own, which nobody would serve any more.
func noOwnLinks(cfg config.Config) error {
	_, err := os.Stat(filepath.Join(cfg.Data, "curt.db"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return &config.Error{
		Setting: "CURT_DATA", Value: cfg.Data,
		Want: "CURT_LINKS names a database, and this folder has links of its own in curt.db; take another folder (curt export and curt import move links)",
	}
}

// wrongDatabase makes a wrong setting of a database that no retry helps with, and one line of
// what a driver says of each of its attempts, which has no password in it.
func wrongDatabase(setting, url string, err error) error {
	if !errors.Is(err, postgres.ErrUnfit) {
		return oneLine{err}
	}
	return &config.Error{Setting: setting, Value: config.Redact(url), Want: err.Error()}
}

// oneLine is an error whose text may have several.
type oneLine struct{ error }

func (e oneLine) Error() string { return strings.Join(strings.Fields(e.error.Error()), " ") }
func (e oneLine) Unwrap() error { return e.error }

// shared reports whether other processes may work on the same links.
func (s *Server) shared() bool { return s.config.Links != config.SQLite }

// instanceFile is in the folders of servers whose links are in a database.
const instanceFile = "instance"

// AccountsElsewhere reports whether the accounts of the links in a data folder are in a database.
func AccountsElsewhere(ctx context.Context, folder string) (apart bool, err error) {
	s, err := sqlite.TakeSnapshot(ctx, filepath.Join(folder, "curt.db"))
	if err != nil {
		return false, err
	}
	apart, err = s.AccountsApart()
	return apart, errors.Join(err, s.Close())
}

// Elsewhere returns an error for a data folder whose links are in a database: the commands
// that work on the folder have nothing to say about those.
func Elsewhere(folder string) error {
	_, err := os.Stat(filepath.Join(folder, instanceFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return fmt.Errorf("the links of %s are in a database, as CURT_LINKS says; use PostgreSQL's own means, such as pg_dump", folder)
}

// CountsElsewhere returns an error for a data folder whose statistics are in a database.
func CountsElsewhere(folder string) error {
	_, err := os.Stat(filepath.Join(folder, "clicks.db"))
	if Elsewhere(folder) == nil || !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return fmt.Errorf("the statistics of %s are in a database, as CURT_ANALYTICS says, or there are none; use PostgreSQL's own means, such as pg_dump", folder)
}

// Inhabited reports whether a server has used a data folder.
func Inhabited(folder string) bool {
	for _, name := range []string{"curt.db", "clicks.db", instanceFile} {
		if _, err := os.Stat(filepath.Join(folder, name)); err == nil {
			return true
		}
	}
	return false
}

// instance names this folder's server to others, for good: it is made at the first start.
// A server that starts on the same folder comes after the one of before, as the folder's
// lock sees to.
func instance(folder string) (string, error) {
	name := filepath.Join(folder, instanceFile)
	text, err := os.ReadFile(name)
	if err == nil && len(text) > 0 {
		return string(text), nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("read the name of this instance: %w", err)
	}
	made := rand.Text()
	if err := os.WriteFile(name, []byte(made), 0o600); err != nil {
		return "", fmt.Errorf("name this instance: %w", err)
	}
	return made, nil
}
