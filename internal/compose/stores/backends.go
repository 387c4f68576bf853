package stores

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"curt/internal/auth"
	"curt/internal/backend/coldsql"
	"curt/internal/backend/coldsql/coldjobs"
	"curt/internal/backend/coldsql/coldreviews"
	"curt/internal/backend/dynamodb"
	"curt/internal/backend/postgres"
	pgaccounts "curt/internal/backend/postgres/accounts"
	"curt/internal/backend/sqlite"
	"curt/internal/clicks/capture"
	"curt/internal/clicks/ship"
	"curt/internal/compose"
	"curt/internal/config"
	"curt/internal/datafolder"
	"curt/internal/feed"
	"curt/internal/handover"
	"curt/internal/idempotency"
	"curt/internal/job"
	"curt/internal/joblease"
	"curt/internal/link"
	"curt/internal/moderation"
	"curt/internal/settings"
)

// Keyring keeps the secrets that servers over the same links share.
type Keyring interface {
	capture.DayKeys

	// CodeKey returns the key of the permutation, which other secrets are derived from.
	CodeKey(ctx context.Context) ([32]byte, error)
}

// Feeds are the logs of a store of links, and the positions of their followers that a fleet has one
// of.
type Feeds interface {
	link.EventLog
	link.CreateLog
	Head(ctx context.Context) (link.Position, error)
	Followers() feed.Positions[link.Position]
	CreateFollowers() feed.Positions[link.Position]
	BothFollowers() feed.Positions[link.Position]
}

// ClickSenders are the servers that may hold clicks that are nowhere else.
type ClickSenders interface {
	Enlist(ctx context.Context, one ship.Sender) error
	All(ctx context.Context) ([]ship.Sender, error)
	Dismiss(ctx context.Context, one ship.Sender) error
}

// Journal is the journal of moderation with how much of it has taken effect.
type Journal interface {
	moderation.Journal
	moderation.ProgressStore
}

// Accounts are the stores of those who use links, and of decisions about links.
type Accounts struct {
	Once    idempotency.Store
	Leases  joblease.Store
	Jobs    job.Store
	Keys    auth.Store
	Shares  auth.ShareStore
	Journal Journal
	Cases   moderation.Cases
	Appeals moderation.Appeals
	Blocked moderation.Destinations
	Lists   moderation.Lists
	Peers   moderation.Peers // nil = no other process has them

	Database coldsql.DB // for what is stored beside them
}

// accountsOf takes the contracts of accounts apart.
func accountsOf(a coldsql.Accounts, j Journal) Accounts {
	peers, _ := j.(moderation.Peers)
	return Accounts{a.Idempotency(), a.JobLeases(), coldjobs.New(a.DB(), job.DefaultBounds()), a.Keys(), a.Shares(), j, coldreviews.NewCases(a.DB()), coldreviews.NewAppeals(a.DB()), coldreviews.NewDestinations(a.DB()), a.Lists(), peers, a.Database()}
}

// openAccounts has the accounts where CURT_ACCOUNTS says. A server that neither makes nor judges
// links has no use for them.
func (s *Stores) openAccounts(ctx context.Context, c *compose.Capability) error {
	if !s.env.Roles.Judges() {
		return nil
	}
	if s.env.Config.Accounts == "" {
		return wrongAccounts(s.env.Config, s.beside.Beside(ctx))
	}
	name := "" // links that one server has
	if s.env.Shared() {
		var err error
		if name, err = datafolder.Instance(s.env.Config.Data); err != nil {
			return err
		}
	}
	of := coldsql.Of(s.CodeKey)
	a, err := pgaccounts.Open(ctx, pgaccounts.Config{URL: s.env.Config.Accounts, Instance: name, Of: of, Log: s.env.Log})
	if err != nil {
		return settings.WrongDatabase("CURT_ACCOUNTS", s.env.Config.Accounts, err)
	}
	c.OnClose(a.Close)
	if config.IsDynamoDB(s.env.Config.Links) { // no accounts are ever beside those links
		err = a.Belong(ctx, of)
	} else {
		err = coldsql.Part(ctx, s.beside, a.Accounts.Accounts, of)
	}
	if err != nil {
		return wrongAccounts(s.env.Config, err)
	}
	s.Accounts = accountsOf(a.Accounts.Accounts, a.Journal())
	if !s.env.Shared() {
		s.Accounts.Peers = nil
	}
	c.Run("accounts", a.Run)
	c.Need("accounts", !s.env.Roles.Redirects, func() error { return errors.Join(a.Healthy(), a.Tables()) })
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

func (s *Stores) openSQLite(ctx context.Context, c *compose.Capability) error {
	if err := datafolder.CheckLinks(s.env.Config); err != nil {
		return err
	}
	l, err := sqlite.OpenLinks(ctx, sqlite.LinksConfig{
		Path:        filepath.Join(s.env.Config.Data, "curt.db"),
		Synchronous: s.env.Config.SQLiteSynchronous, Stored: s.stored, NeverIssued: s.neverIssued, Tracer: s.env.Traces.Tracer(), Yielder: s.env.Background,
		Force: s.env.Force, Log: s.env.Log,
	})
	if err != nil {
		return datafolder.Damaged(s.env.Config.Data, err)
	}
	c.OnClose(l.Close)
	mover := &handover.Server{Folder: s.env.Config.Data, Store: sqlite.FreezerOf(l), Log: s.env.Log, Prepare: func(ctx context.Context) error {
		_, err := l.DayKey(ctx, time.Now().Add(24*time.Hour)) // clicks go on here, perhaps past midnight
		return err
	}}
	c.Run("handover", mover.Run)
	s.Links, s.Creates, s.Keyring, s.Leases, s.Keys, s.beside, s.Feeds = l, l, l, l, l.Keys(), l.Accounts().Accounts, l
	s.Accounts = accountsOf(s.beside, l.Accounts().Journal())
	return nil
}

func (s *Stores) openPostgres(ctx context.Context, c *compose.Capability) error {
	if err := datafolder.CheckLinks(s.env.Config); err != nil {
		return err
	}
	name, err := datafolder.Instance(s.env.Config.Data)
	if err != nil {
		return err
	}
	l, err := postgres.OpenLinks(ctx, postgres.LinksConfig{
		URL: s.env.Config.Links, Instance: name, Stored: s.stored, Log: s.env.Log,
		Readers: s.env.Config.LinksConns - s.env.Config.LinksConns/3, Writers: s.env.Config.LinksConns / 3,
		Replicas: s.env.Config.LinksReplicas, MaxLag: s.env.Config.LinksReplicaLag,
		ReadOnly: !s.env.Roles.Writes(),
	})
	if err != nil {
		return settings.WrongDatabase("CURT_LINKS", s.env.Config.Links, err)
	}
	c.OnClose(l.Close)
	s.Links, s.Creates, s.Keyring, s.Leases, s.Keys, s.beside, s.Senders, s.Feeds = l, l, l, l, l.Keys(), l.Accounts().Accounts, l.Senders(), l
	s.Accounts = accountsOf(s.beside, l.Accounts().Journal())
	c.Need("tables", true, l.Tables)
	if len(s.env.Config.LinksReplicas) > 0 {
		s.replicas = l.Replicas
		c.Need("replicas", false, func() error {
			if known := l.Replicas(); known.Usable < len(known.Lags) {
				return fmt.Errorf("%d of %d standbys in use; the others are unavailable or lagging", known.Usable, len(known.Lags))
			}
			return nil
		})
	}
	return nil
}

func (s *Stores) openDynamoDB(ctx context.Context, c *compose.Capability) error {
	if err := datafolder.CheckLinks(s.env.Config); err != nil {
		return err
	}
	name, err := datafolder.Instance(s.env.Config.Data) // which also marks whose the folder is
	if err != nil {
		return err
	}
	at, err := settings.Tables(s.env.Config)
	if err != nil {
		return err
	}
	l, err := dynamodb.OpenLinks(ctx, dynamodb.Config{Address: at, Instance: name, Stored: s.stored, ReadOnly: !s.env.Roles.Judges(), Log: s.env.Log})
	if err != nil {
		return settings.WrongTables(s.env.Config, err)
	}
	c.OnClose(l.Close)
	s.Links, s.Creates, s.Keyring, s.Leases, s.Keys, s.Senders, s.Feeds = l, l, l, l, l.Keys(), l.Senders(), tableFeeds{l}
	return nil
}

// tableFeeds are the logs of a table. The positions of all followers are kept alike.
type tableFeeds struct{ *dynamodb.Links }

func (f tableFeeds) Followers() feed.Positions[link.Position] { return f.Links.Followers() }

func (f tableFeeds) CreateFollowers() feed.Positions[link.Position] { return f.Links.Followers() }

func (f tableFeeds) BothFollowers() feed.Positions[link.Position] { return f.Links.Followers() }
