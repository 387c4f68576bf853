package settings

import (
	"context"
	"errors"

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

// WithSenders calls f with the servers that the store of CURT_LINKS knows.
func WithSenders(ctx context.Context, cfg config.Config, f func(Senders) error) error {
	if config.IsDynamoDB(cfg.Links) {
		at, err := Tables(cfg)
		if err != nil {
			return err
		}
		links, err := dynamodb.OpenLinks(ctx, dynamodb.Config{Address: at, ReadOnly: true})
		if err != nil {
			return WrongTables(cfg, err)
		}
		return errors.Join(f(links.Senders()), links.Close())
	}
	links, err := postgres.OpenLinks(ctx, postgres.LinksConfig{URL: cfg.Links})
	if err != nil {
		return WrongDatabase("CURT_LINKS", cfg.Links, err)
	}
	return errors.Join(f(links.Senders()), links.Close())
}

// SendersOf returns the servers that the store of CURT_LINKS knows, and changes nothing there: the error wraps
// pgdb.ErrNotMigrated if it is not of this release.
func SendersOf(ctx context.Context, cfg config.Config) (all []ship.Sender, err error) {
	if config.IsDynamoDB(cfg.Links) {
		err = WithSenders(ctx, cfg, func(of Senders) (err error) {
			all, err = of.All(ctx)
			return err
		})
		return all, err
	}
	if all, err = postgres.ReadSenders(ctx, cfg.Links); err != nil {
		return nil, WrongDatabase("CURT_LINKS", cfg.Links, err)
	}
	return all, nil
}
