package pgdb

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"

	"curt/internal/background"
)

// SettingMove is the setting of a database that curt move writes to, or has written to.
const SettingMove = "move"

// MoveState is what servers need of SettingMove.
type MoveState struct {
	Began    time.Time `json:"began"`
	Switched bool      `json:"switched"` // the folder's server writes no links any more
}

const (
	sqlMove   = `SELECT value FROM settings WHERE name = $1`
	moveEvery = 100 * time.Millisecond
)

// AwaitMove returns when the links may be used: at once, unless curt move is copying a data folder
// here. What it copies must be all there is, so that a server waits for the switch.
func (s *Database) AwaitMove(ctx context.Context) error {
	told := false
	for range background.Every(ctx, moveEvery) {
		var state MoveState
		var stored []byte
		found, err := One(ctx, s.WritePool, func(row pgx.Row) error { return row.Scan(&stored) }, sqlMove, SettingMove)
		if err == nil && found {
			err = json.Unmarshal(stored, &state)
		}
		switch {
		case err != nil:
			return fmt.Errorf("read whether links are being moved here: %w", err)
		case !found || state.Switched:
			return nil
		case !told:
			told = true
			s.Log.WarnContext(ctx, "curt move is copying a data folder into this database, waiting for its end", slog.Time("began", state.Began))
		}
	}
	return context.Cause(ctx)
}
