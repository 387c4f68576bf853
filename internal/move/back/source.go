package back

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"curt/internal/backend/coldsql"
	"curt/internal/backend/coldsql/coldcopy"
	"curt/internal/backend/dynamodb/ddb"
	"curt/internal/backend/dynamodb/rawlinks"
	"curt/internal/backend/postgres/movein"
	"curt/internal/link"
)

// backSource is a store whose links are moved back to a folder.
type backSource interface {
	Each(ctx context.Context, f func([]link.Link) error) error
	MovedAway(ctx context.Context) (to string, err error)
	Close() error

	// unused returns what servers were given. Servers that use the store are an error.
	unused(ctx context.Context) (coldcopy.Issued, error)
	// freeze has servers that start meanwhile write no links.
	freeze(ctx context.Context) (frozenSource, error)
}

// frozenSource is a store whose links nobody writes.
type frozenSource interface {
	Switch(ctx context.Context, to string) error
	Release(ctx context.Context) error
}

// databaseSource is a database of links.
type databaseSource struct{ *movein.Source }

func (s databaseSource) unused(ctx context.Context) (coldcopy.Issued, error) {
	if _, err := s.Unused(ctx); err != nil {
		return coldcopy.Issued{}, err
	}
	return s.Issued(ctx)
}

// lockAttempts bounds how often the lock is asked for: PostgreSQL's own maintenance makes way within a second.
const lockAttempts = 5

func (s databaseSource) freeze(ctx context.Context) (frozenSource, error) {
	var failed error
	for range lockAttempts {
		f, err := s.Freeze(ctx)
		if err == nil {
			return f, nil
		}
		if failed = err; ctx.Err() != nil {
			break
		}
	}
	return nil, failed
}

// tableSource is tables of links.
type tableSource struct {
	*rawlinks.Table
	without []string
}

func (s tableSource) unused(ctx context.Context) (coldcopy.Issued, error) {
	return s.Unused(ctx, s.without)
}

func (s tableSource) freeze(ctx context.Context) (frozenSource, error) {
	f, err := s.Freeze(ctx, rand.Text(), s.without)
	if err != nil {
		return nil, err
	}
	return f, nil
}

var errApart = errors.New("the accounts of these links are in another database: pass it with --accounts")

// open opens what has links and accounts, refuses what does not belong together, and returns the key of codes. It
// writes nothing before all of that is known.
func (b *back) open(ctx context.Context) (key [32]byte, err error) {
	if err := b.openSources(ctx); err != nil {
		return key, err
	}
	issued, err := b.from.unused(ctx)
	if err != nil {
		return key, err
	}
	here, err := filepath.Abs(b.Data)
	if err != nil {
		return key, err
	}
	to, err := b.from.MovedAway(ctx)
	switch {
	case err != nil:
		return key, err
	case to != "" && to != here:
		return key, fmt.Errorf("the links were moved to %s already", to)
	}
	accounts := coldsql.New(b.source.Cold())
	if b.Accounts == "" {
		if err = accounts.Beside(ctx); errors.Is(err, coldsql.ErrApart) {
			err = errApart
		}
	} else {
		err = accounts.Owned(ctx, coldsql.Of(issued.Key))
	}
	if err == nil && to == "" {
		b.frozen, err = b.from.freeze(ctx)
	}
	if err == nil && b.Accounts != "" {
		err = movein.Sink{Target: b.source}.GoOn(ctx, issued) // from where the folder takes them with the accounts
	}
	return issued.Key, err
}

func (b *back) openSources(ctx context.Context) (err error) {
	if b.Accounts != "" {
		if b.source, err = movein.OpenAsIs(ctx, b.Accounts, b.Log); err != nil {
			return fmt.Errorf("accounts: %w", err)
		}
	}
	if strings.HasPrefix(b.To, ddb.Scheme) {
		t, err := rawlinks.Open(ctx, b.To)
		if err == nil {
			b.from = tableSource{t, b.Without}
		}
		return err
	}
	s, err := movein.OpenSource(ctx, b.To, b.Log)
	if err != nil {
		return err
	}
	if b.from = (databaseSource{s}); b.source == nil {
		b.source = s.Target
	}
	return nil
}

// leave says durably that the links are in the folder, so that no server writes to the store any more.
func (b *back) leave(ctx context.Context) error {
	if b.frozen == nil {
		return nil
	}
	here, err := filepath.Abs(b.Data)
	if err == nil {
		err = b.frozen.Switch(ctx, here)
	}
	if err != nil {
		return fmt.Errorf("say that the links are in the folder: %w; end all servers and run this again", err)
	}
	return nil
}

// close lets go of both stores.
func (b *back) close(ctx context.Context) error {
	var errs []error
	if b.frozen != nil {
		errs = append(errs, b.frozen.Release(ctx))
	}
	if b.from != nil {
		errs = append(errs, b.from.Close())
	}
	if b.source != nil && b.Accounts != "" { // else it is the same
		errs = append(errs, b.source.Close())
	}
	return errors.Join(errs...)
}
