package movedata

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"curt/internal/backend/coldsql"
	"curt/internal/backend/dynamodb"
	"curt/internal/backend/dynamodb/ddb"
	"curt/internal/backend/postgres"
	pgaccounts "curt/internal/backend/postgres/accounts"
	"curt/internal/backend/postgres/movein"
	"curt/internal/cli"
	"curt/internal/config"
	"curt/internal/settings"
	"curt/internal/transfer"
)

// openStore opens a database or a table to import into; end closes it.
func openStore(ctx context.Context, url, accounts string, log *slog.Logger) (sink transfer.Sink, end func() error, err error) {
	switch {
	case config.IsDynamoDB(url) && !config.IsPostgres(accounts):
		return nil, nil, cli.UsageError("DynamoDB keeps no accounts: pass --accounts, or set CURT_ACCOUNTS")
	case config.IsDynamoDB(url):
		sink, end, err = openTable(ctx, url, accounts, log)
	case config.IsPostgres(url):
		sink, end, err = openDatabase(ctx, url, log)
	default:
		return nil, nil, cli.UsageError("--to: expected postgres://user@host/database or dynamodb://table?region=region")
	}
	if err != nil {
		return nil, nil, settings.OneLine(err)
	}
	return sink, end, nil
}

// openTable opens a table of DynamoDB, whose decisions are in a database of accounts.
func openTable(ctx context.Context, url, accounts string, log *slog.Logger) (transfer.Sink, func() error, error) {
	at, err := ddb.ParseAddress(url)
	if err != nil {
		return nil, nil, err
	}
	links, err := dynamodb.OpenLinks(ctx, dynamodb.Config{Address: at, Log: log})
	if err != nil {
		return nil, nil, err
	}
	key, err := links.CodeKey(ctx)
	if err != nil {
		return nil, nil, errors.Join(err, links.Close())
	}
	of := coldsql.Of(key)
	a, err := pgaccounts.Open(ctx, pgaccounts.Config{URL: accounts, Of: of, Log: log})
	if err != nil {
		return nil, nil, errors.Join(err, links.Close())
	}
	if err := a.Belong(ctx, of); err != nil {
		return nil, nil, errors.Join(err, a.Close(), links.Close())
	}
	return &transfer.Folder{Links: links, Journal: a.Journal()}, func() error { return errors.Join(a.Close(), links.Close()) }, nil
}

// openDatabase opens a database of PostgreSQL that no server uses.
func openDatabase(ctx context.Context, url string, log *slog.Logger) (transfer.Sink, func() error, error) {
	made, err := postgres.OpenLinks(ctx, postgres.LinksConfig{URL: movein.Named(url), Instance: "curt-import", Log: log, Readers: 4, Writers: 4})
	if err == nil { // it has a key of codes now
		err = made.Close()
	}
	if err != nil {
		return nil, nil, err
	}
	t, err := movein.Open(ctx, url, log)
	if err != nil {
		return nil, nil, err
	}
	accounts := coldsql.New(t.Cold())
	if _, err = t.Unused(ctx); err == nil {
		err = accounts.Beside(ctx) // imported decisions would have no effect
	}
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("open the database: %w", err), t.Close())
	}
	return &transfer.Folder{Links: t, Journal: accounts.Journal()}, t.Close, nil
}
