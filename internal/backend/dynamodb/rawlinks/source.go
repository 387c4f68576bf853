package rawlinks

import (
	"context"
	"fmt"
	"slices"

	"curt/internal/backend/coldsql/coldcopy"
	"curt/internal/backend/dynamodb/state"
)

// Freeze returns once no registered server writes links. without are servers that ended without a word.
func (t *Table) Freeze(ctx context.Context, token string, without []string) (*state.Frozen, error) {
	dead := make(map[string]bool, len(without))
	for _, name := range without {
		dead[name] = true
	}
	return state.Freeze(ctx, t.db, token, dead)
}

// MovedAway returns where the links of the table were moved to; "" = they are here.
func (t *Table) MovedAway(ctx context.Context) (string, error) { return state.Moved(ctx, t.db) }

// Unused returns what servers over the table were given. An error names those that are registered: they
// run, or ended without a word, as those of without have.
func (t *Table) Unused(ctx context.Context, without []string) (coldcopy.Issued, error) {
	names, err := state.Writers(ctx, t.db)
	names = slices.DeleteFunc(names, func(name string) bool { return slices.Contains(without, name) })
	if err == nil && len(names) > 0 {
		err = fmt.Errorf("servers use this table: end them first, or name those that were killed in --without: %v", names)
	}
	if err != nil {
		return coldcopy.Issued{}, err
	}
	return t.Issued(ctx)
}
