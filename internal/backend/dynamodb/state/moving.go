package state

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"curt/internal/backend/dynamodb/ddb"
	"curt/internal/background"
)

// MoveState is what servers need of a move of links into a table.
type MoveState struct {
	Began    time.Time `json:"began"`
	Switched bool      `json:"switched"` // nobody writes the links elsewhere any more
}

func moveKey() ddb.Item { return ddb.StateKey("move", nil) }

// Move returns what curt move keeps with a table that it moves links to; nil = it does not.
func Move(ctx context.Context, db *ddb.Client) (text []byte, err error) {
	err = db.Read(ctx, func(ctx context.Context) error {
		item, err := db.Get(ctx, db.State, moveKey(), true)
		text = ddb.BytesOf(item, attrValue)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read how far a move has come: %w", err)
	}
	return text, nil
}

// SaveMove keeps it. It begins as a MoveState.
func SaveMove(ctx context.Context, db *ddb.Client, text []byte) error {
	item := moveKey()
	item[attrValue] = ddb.Bytes(text)
	err := db.Write(ctx, func(ctx context.Context) error {
		return db.Put(ctx, &dynamodb.PutItemInput{TableName: &db.State, Item: item})
	})
	if err != nil {
		return fmt.Errorf("write how far the move has come: %w", err)
	}
	return nil
}

// DropMove forgets a move that did not begin.
func DropMove(ctx context.Context, db *ddb.Client) error {
	return db.Write(ctx, func(ctx context.Context) error { return db.Delete(ctx, db.State, moveKey()) })
}

// moveEvery is how often a server that waits asks.
const moveEvery = 200 * time.Millisecond

// AwaitMove returns when the links may be used: at once, unless curt move is copying links into the
// table. What it copies must be all there is, so that a server waits for the switch.
func AwaitMove(ctx context.Context, db *ddb.Client, log *slog.Logger) error {
	told := false
	for range background.Every(ctx, moveEvery) {
		state, err := moving(ctx, db)
		switch {
		case err != nil:
			return err
		case state.Switched:
			return nil
		case !told:
			told = true
			log.WarnContext(ctx, "curt move is copying links into these tables, waiting for its end", slog.Time("began", state.Began))
		}
	}
	return context.Cause(ctx)
}

// Moving reports that curt move is copying links into the table: a server that finds it behind its registration
// has to wait again.
func Moving(ctx context.Context, db *ddb.Client) (bool, error) {
	state, err := moving(ctx, db)
	return err == nil && !state.Switched, err
}

// moving returns the state of a move into the table; where there is none it has switched.
func moving(ctx context.Context, db *ddb.Client) (state MoveState, err error) {
	text, err := Move(ctx, db)
	if err == nil && text == nil {
		return MoveState{Switched: true}, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &state)
	}
	return state, err
}
