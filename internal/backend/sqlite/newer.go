package sqlite

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/pressly/goose/v3"
)

// NewerError says that a newer curt has changed the file in a way that this one must
// not meet. The operator starts the newer one, or restores a backup from before the upgrade.
type NewerError struct {
	Needs int64 // the oldest schema that a program must know to open the file
	Knows int64 // the newest that this one knows
}

// Error returns one line.
func (e *NewerError) Error() string {
	return fmt.Sprintf("the file was changed by a newer curt (it needs schema %d, this one knows %d); "+
		"start the newer one, or restore a backup from before the upgrade", e.Needs, e.Knows)
}

// tooNew returns a NewerError where the file says so.
//
// Migrations go forward only, and one program works on the schemas of its successors:
// they add tables, indexes and columns with defaults. So a release that disappoints is
// taken back by starting the one before. A migration that the programs before it could
// not live with says so in the file, which all releases look at first:
//
//	PRAGMA user_version = 7; -- the number of that migration
func tooNew(ctx context.Context, db *sql.DB, p *goose.Provider) error {
	var needs, knows int64
	if err := db.QueryRowContext(ctx, sqlNeeds).Scan(&needs); err != nil {
		return fmt.Errorf("ask for the schema: %w", err)
	}
	for _, s := range p.ListSources() {
		knows = max(knows, s.Version)
	}
	if needs > knows {
		return &NewerError{Needs: needs, Knows: knows}
	}
	return nil
}
