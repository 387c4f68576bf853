package settings

import (
	"context"

	"curt/internal/backend/dynamodb"
	"curt/internal/backend/postgres"
	"curt/internal/clicks/ship"
	"curt/internal/config"
)

// Senders are the servers that the store of links knows to send clicks.
type Senders interface {
	All(ctx context.Context) ([]ship.Sender, error)
	Forget(ctx context.Context, folder string) (found bool, err error)
}

// WithSenders calls f with the servers that the store of CURT_LINKS knows, and migrates nothing there: the error wraps
// pgdb.ErrNotMigrated if it is not of this release.
func WithSenders(ctx context.Context, cfg config.Config, f func(Senders) error) error {
	if config.IsDynamoDB(cfg.Links) {
		at, err := Tables(cfg)
		if err != nil {
			return err
		}
		all, end, err := dynamodb.OpenSenders(ctx, at)
		if err != nil {
			return WrongTables(cfg, err)
		}
		defer end()
		return f(all)
	}
	all, end, err := postgres.OpenSenders(ctx, cfg.Links)
	if err != nil {
		return WrongDatabase("CURT_LINKS", cfg.Links, err)
	}
	defer end()
	return f(all)
}

// SendersOf returns the servers that the store of CURT_LINKS knows, as WithSenders.
func SendersOf(ctx context.Context, cfg config.Config) (all []ship.Sender, err error) {
	err = WithSenders(ctx, cfg, func(of Senders) (err error) {
		all, err = of.All(ctx)
		return err
	})
	return all, err
}
