package postgres

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// AccountsConfig says which database of accounts is opened, and how.
type AccountsConfig struct {
	URL      string // as that of links
	Instance string // as that of links
	Of       []byte // says whose accounts they are
	Log      *slog.Logger
}

// AccountStore is a database of accounts whose links are elsewhere. Its schema is that of links,
// whose tables stay empty.
//
// Run must be running for Healthy to say something.
type AccountStore struct {
	Accounts
	*database

	closing sync.Once
}

// accountReaders and accountWriters bound the connections: accounts are asked once for a write of
// links, at the most, and never for a visitor.
const accountReaders, accountWriters = 4, 2

// OpenAccounts connects and brings the schema up to date.
func OpenAccounts(ctx context.Context, config AccountsConfig) (*AccountStore, error) {
	db := newDatabase(accountsHealth(config.Of), accountReaders, config.Log)
	if err := db.connect(ctx, config.URL, accountReaders, accountWriters); err != nil {
		db.closePools()
		return nil, fmt.Errorf("open accounts: %w", err)
	}
	return &AccountStore{Accounts: accountsOf(db, config.Instance), database: db}, nil
}

// Run looks after the database until ctx ends.
func (s *AccountStore) Run(ctx context.Context) error {
	turns := time.NewTicker(healthEvery)
	defer turns.Stop()
	for {
		s.look(ctx)
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-turns.C:
		}
	}
}

// Close waits for calls under way and closes the connections. A second Close does nothing.
func (s *AccountStore) Close() error {
	s.closing.Do(func() {
		s.closed.Store(true)
		s.closePools()
	})
	return nil
}
