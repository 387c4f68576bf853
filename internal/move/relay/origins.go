package relay

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"curt/internal/backend/coldsql/coldcopy"
	"curt/internal/backend/dynamodb"
	"curt/internal/backend/dynamodb/ddb"
	"curt/internal/backend/dynamodb/rawlinks"
	"curt/internal/backend/postgres"
	"curt/internal/backend/postgres/movein"
	"curt/internal/link"
)

// logs are what a store of links tells of its writes.
type logs interface {
	link.CreateLog
	link.ManyGetter
	Head(ctx context.Context) (link.Position, error)
	Changes(ctx context.Context, after link.Position, n int) ([]link.Change, link.Position, error)
	Close() error
}

// origin is a store that servers write to while its links are moved away.
type origin interface {
	Identity(ctx context.Context) (string, error) // what tells it from any other store, whatever URL names it
	// Page returns up to n links, tombstones included. A walk sees every link that existed throughout.
	Page(ctx context.Context, after link.Cursor, n int) (page []link.Link, damaged []error, next link.Cursor, err error)
	Issued(ctx context.Context) (coldcopy.Issued, error)
	MovedAway(ctx context.Context) (to string, err error)
	Close() error

	open(ctx context.Context) (logs, error)
	// freeze returns once no server writes links.
	freeze(ctx context.Context) (frozen, error)
	// last returns logs that show all creates of before a freeze, as far as the store can say.
	last(ctx context.Context) (logs, error)
	// late reports whether creates may show up behind the freeze, so that the links are read once more.
	late() bool
}

// frozen is a store whose links nobody writes.
type frozen interface {
	Switch(ctx context.Context, to string) error
	Release(ctx context.Context) error
}

// Pages is a store whose links are read by pages, tombstones included.
type Pages interface {
	Page(ctx context.Context, after link.Cursor, n int) (page []link.Link, damaged []error, next link.Cursor, err error)
	Close() error
}

// OpenPages opens a database of PostgreSQL, or a table of DynamoDB, for an export beside its servers.
func OpenPages(ctx context.Context, url string, log *slog.Logger) (Pages, error) {
	if isTable(url) {
		return openTable(ctx, url, nil, log)
	}
	return openDatabase(ctx, url, log)
}

// errThawed is of a switch that came too late, or of a freeze that did not come.
var errThawed = errors.New("servers write links again")

// database is a database of PostgreSQL that links are moved from.
type database struct {
	*movein.Source
	url string
	log *slog.Logger
}

func openDatabase(ctx context.Context, url string, log *slog.Logger) (*database, error) {
	s, err := movein.OpenSource(ctx, url, log)
	if err != nil {
		return nil, err
	}
	return &database{s, url, log}, nil
}

func (d *database) Page(ctx context.Context, after link.Cursor, n int) ([]link.Link, []error, link.Cursor, error) {
	page, next, err := d.Source.Page(ctx, after, n)
	return page, nil, next, err
}

func (d *database) open(ctx context.Context) (logs, error) {
	return postgres.OpenLinks(ctx, postgres.LinksConfig{URL: movein.Named(d.url), Instance: "curt-move", Log: d.log, Readers: 4, Writers: 4, ReadOnly: true})
}

func (d *database) freeze(ctx context.Context) (frozen, error) {
	f, err := d.Freeze(ctx)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errThawed, err)
	}
	return f, nil
}

func (d *database) last(ctx context.Context) (logs, error) { return d.open(ctx) }

func (d *database) late() bool { return false }

// table is a table of DynamoDB that links are moved from.
type table struct {
	*rawlinks.Table
	url     string
	without []string
	log     *slog.Logger
}

// settle is how long the indexes of a frozen table are given to show its last creates. AWS says
// "usually within a second", and gives no bound: the links are read once more behind the switch.
const settle = 3 * time.Second

func openTable(ctx context.Context, url string, without []string, log *slog.Logger) (*table, error) {
	t, err := rawlinks.Open(ctx, url)
	if err != nil {
		return nil, err
	}
	return &table{t, url, without, log}, nil
}

func (t *table) open(ctx context.Context) (logs, error) { return t.opened(ctx, 0) }

func (t *table) opened(ctx context.Context, delay time.Duration) (logs, error) {
	at, err := ddb.ParseAddress(t.url)
	if err != nil {
		return nil, err
	}
	return dynamodb.OpenLinks(ctx, dynamodb.Config{Address: at, ReadOnly: true, CreatesDelay: delay, CallTime: callTime, Log: t.log})
}

// callTime bounds a request: nobody waits for it but a command.
const callTime = 10 * time.Second

func (t *table) freeze(ctx context.Context) (frozen, error) {
	return t.Freeze(ctx, rand.Text(), t.without)
}

func (t *table) last(ctx context.Context) (logs, error) {
	select {
	case <-time.After(settle):
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	return t.opened(ctx, time.Millisecond)
}

func (t *table) late() bool { return true }
