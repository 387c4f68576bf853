package move

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"curt/internal/backend/coldsql/coldcopy"
	"curt/internal/backend/dynamodb/rawlinks"
	"curt/internal/backend/dynamodb/state"
	"curt/internal/backend/postgres/movein"
	"curt/internal/link"
)

// linkTarget is what the links of a folder are moved to. Each write keeps how far the move has come,
// with it or behind it: then links may be written again.
type linkTarget interface {
	PutLinks(ctx context.Context, links []link.Link, s *movein.State) error
	Same(ctx context.Context, links []link.Link) error // coldcopy.ErrDiffers: they are not stored as they are
	Limited(ctx context.Context) ([]link.Key, error)
	Digest(ctx context.Context, told func(rows int64)) (coldcopy.Digest, error)
	CountLinks(ctx context.Context) (int64, error)
	DropLinks(ctx context.Context, s *movein.State) error
	Workspaces(ctx context.Context, keys []link.Key) ([]string, error)
	Save(ctx context.Context, s *movein.State) error
}

// accountsURL names the database that takes accounts and statistics.
func (c *Config) accountsURL() string {
	if c.Accounts != "" {
		return c.Accounts
	}
	return c.To
}

// openTarget opens the database of accounts, and what the links are moved to: the same, or tables of
// DynamoDB.
func openTarget(ctx context.Context, m *move) (err error) {
	if m.target, err = movein.Open(ctx, m.accountsURL(), m.Log); err != nil {
		return err
	}
	if m.Accounts == "" {
		m.links = m.target
		return nil
	}
	t, err := rawlinks.Open(ctx, m.To)
	if err != nil {
		return err
	}
	m.tables = &tableTarget{Target: rawlinks.NewTarget(t), accounts: m.target}
	m.links = m.tables
	return nil
}

// tableTarget is tables of DynamoDB, whose accounts are in a database.
type tableTarget struct {
	*rawlinks.Target
	accounts *movein.Target

	counted bool
	rows    int64 // once they are counted: DynamoDB cannot count a large table in the time of a freeze
}

// fit returns rawlinks.ErrUsed for tables that cannot take the links that of stands for. It writes nothing: the
// database of accounts is marked only where the tables are fit.
func (t *tableTarget) fit(ctx context.Context, of []byte) error {
	stored, err := t.Stored(ctx)
	switch {
	case err != nil:
		return err
	case stored == nil:
		return t.Empty(ctx)
	case !sameMove(stored, of):
		return rawlinks.ErrUsed
	}
	return nil
}

// begin has empty tables keep the move, or finds out that they do.
func (t *tableTarget) begin(ctx context.Context, key [32]byte, s *movein.State) error {
	stored, err := t.Stored(ctx)
	if err != nil {
		return err
	}
	text, err := tableState(s)
	switch {
	case err != nil:
		return err
	case stored == nil:
		return t.Begin(ctx, key, text)
	case !sameMove(stored, s.Of):
		return rawlinks.ErrUsed
	}
	return t.Continue(ctx, key)
}

// kept is what tables keep of a move whose progress is in the database of accounts.
type kept struct {
	state.MoveState

	Of []byte `json:"of"`
}

func tableState(s *movein.State) ([]byte, error) {
	return json.Marshal(kept{state.MoveState{Began: s.Began, Switched: s.Switched}, s.Of})
}

func sameMove(stored, of []byte) bool {
	var k kept
	return json.Unmarshal(stored, &k) == nil && string(k.Of) == string(of)
}

// PutLinks implements linkTarget.
func (t *tableTarget) PutLinks(ctx context.Context, links []link.Link, s *movein.State) error {
	if t.counted {
		fresh, err := t.absent(ctx, links)
		if err != nil {
			return err
		}
		t.rows += fresh
	}
	if err := t.Put(ctx, links); err != nil {
		t.counted = false
		return err
	}
	return t.accounts.Save(ctx, s)
}

// absent is how many of some links are not stored.
func (t *tableTarget) absent(ctx context.Context, links []link.Link) (n int64, err error) {
	keys := map[link.Key]bool{}
	var all []link.Key
	for i := range links {
		if k := links[i].Key; !keys[k] {
			keys[k] = true
			all = append(all, k)
		}
	}
	there, err := t.Get(ctx, all)
	return int64(len(all) - len(there)), err
}

// Digest implements linkTarget.
func (t *tableTarget) Digest(ctx context.Context, told func(rows int64)) (coldcopy.Digest, error) {
	sum, err := t.Target.Digest(ctx, told)
	t.counted, t.rows = err == nil, sum.Rows
	return sum, err
}

// CountLinks implements linkTarget.
func (t *tableTarget) CountLinks(ctx context.Context) (int64, error) {
	if !t.counted {
		if _, err := t.Digest(ctx, func(int64) {}); err != nil {
			return 0, err
		}
	}
	return t.rows, nil
}

// DropLinks implements linkTarget. Nothing is dropped: no link ever leaves a folder, so that all are
// written anew.
func (t *tableTarget) DropLinks(ctx context.Context, s *movein.State) error {
	t.counted = false
	return t.accounts.Save(ctx, s)
}

// Save implements linkTarget. Servers are let in once the database knows that the folder has switched.
func (t *tableTarget) Save(ctx context.Context, s *movein.State) error {
	if err := t.accounts.Save(ctx, s); err != nil || !s.Switched {
		return err
	}
	text, err := tableState(s)
	if err == nil {
		err = t.Store(ctx, text)
	}
	return err
}

// goOn has servers over the tables be given what the folder's would have been given next.
func (t *tableTarget) goOn(ctx context.Context) error {
	all, err := coldcopy.ReadIssued(ctx, t.accounts.Cold())
	if err == nil {
		err = t.GoOn(ctx, all)
	}
	return err
}

// resume finds a move that is behind its switch.
func (t *tableTarget) resume(ctx context.Context, of []byte) error {
	stored, err := t.Stored(ctx)
	if err == nil && !sameMove(stored, of) {
		err = errors.New("these are not the tables that the links of the folder were moved to")
	}
	if err != nil {
		return fmt.Errorf("check the tables: %w", err)
	}
	return nil
}
