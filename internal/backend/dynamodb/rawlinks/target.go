package rawlinks

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"curt/internal/backend/coldsql/coldcopy"
	"curt/internal/backend/dynamodb/linkitem"
	"curt/internal/backend/dynamodb/state"
	"curt/internal/link"
)

// ErrUsed means that the tables have links that are not of this move.
var ErrUsed = errors.New("these tables have links already, or servers have used them; use empty ones")

// Target is a table that links are moved to: from Begin to the switch no server opens it
// (state.AwaitMove), so that only the move writes.
type Target struct {
	*Table

	limited map[link.Key]bool // links with max_clicks
	known   bool              // limited has all of them
}

// NewTarget returns a table as a target.
func NewTarget(t *Table) *Target { return &Target{Table: t, limited: map[link.Key]bool{}} }

// Stored returns what an earlier run of the move kept; nil = there was none.
func (t *Target) Stored(ctx context.Context) ([]byte, error) { return state.Move(ctx, t.db) }

// Store keeps how far the move has come: JSON that begins as a state.MoveState.
func (t *Target) Store(ctx context.Context, text []byte) error {
	return state.SaveMove(ctx, t.db, text)
}

// Begin has empty tables make codes with a key, and keeps how far the move has come. ErrUsed: they are
// not empty.
func (t *Target) Begin(ctx context.Context, key [32]byte, text []byte) error {
	if err := t.empty(ctx); err != nil {
		return err
	}
	if err := t.Store(ctx, text); err != nil { // before the key: no server makes one from now on
		return err
	}
	t.known = true // of an empty table; what is there from now on comes by Put
	return t.Continue(ctx, key)
}

// Continue is the end of Begin, for a move that was interrupted in it.
func (t *Target) Continue(ctx context.Context, key [32]byte) error {
	return t.db.Write(ctx, func(ctx context.Context) error { return state.PutCodeKey(ctx, t.db, key) })
}

// empty returns ErrUsed unless the tables were just made.
func (t *Target) empty(ctx context.Context) error {
	used := false
	err := t.db.ReadMany(ctx, func(ctx context.Context) error {
		some, _, err := t.db.Scan(ctx, &dynamodb.ScanInput{TableName: &t.db.Links, ConsistentRead: aws.Bool(true), Limit: aws.Int32(1)})
		if err != nil {
			return err
		}
		begun, err := state.HasCodeKey(ctx, t.db)
		used = begun || len(some) > 0
		return err
	})
	if err == nil && used {
		return ErrUsed
	}
	return err
}

// Put is Put of a Table.
func (t *Target) Put(ctx context.Context, links []link.Link) error {
	if err := t.Table.Put(ctx, links); err != nil {
		return err
	}
	for i := range links {
		if links[i].MaxClicks > 0 {
			t.limited[links[i].Key] = true
		}
	}
	return nil
}

// Same returns coldcopy.ErrDiffers unless the links are stored as they are.
func (t *Target) Same(ctx context.Context, links []link.Link) error {
	links = newest(links)
	keys := make([]link.Key, len(links))
	var here, there coldcopy.Digest
	for i := range links {
		keys[i] = links[i].Key
		if err := addLink(&here, &links[i]); err != nil {
			return err
		}
	}
	stored, err := t.Get(ctx, keys)
	for i := range stored {
		err = errors.Join(err, addLink(&there, &stored[i]))
	}
	if err == nil && here != there {
		err = fmt.Errorf("%d changed links: %w", len(links), coldcopy.ErrDiffers)
	}
	return err
}

func addLink(sum *coldcopy.Digest, l *link.Link) error {
	d, err := coldcopy.OfLink(l)
	sum.Add(d)
	return err
}

// Limited returns the keys of links with max_clicks, whose counter changes without a word in the log.
// The table is read for those of an earlier run once.
func (t *Target) Limited(ctx context.Context) (keys []link.Key, err error) {
	in := &dynamodb.ScanInput{
		TableName: &t.db.Links, ConsistentRead: aws.Bool(true), Limit: aws.Int32(walkPage),
		FilterExpression: aws.String("attribute_exists(" + linkitem.Limit + ")"), ProjectionExpression: aws.String(linkitem.Key),
	}
	for !t.known {
		err := t.db.ReadMany(ctx, func(ctx context.Context) error {
			items, next, err := t.db.Scan(ctx, in)
			for _, item := range items {
				t.limited[linkitem.ParseKey(item)] = true
			}
			in.ExclusiveStartKey = next
			t.known = err == nil && next == nil
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("find links with max_clicks: %w", err)
		}
	}
	for k := range t.limited {
		keys = append(keys, k)
	}
	return keys, nil
}

// GoOn has servers be given what others would have been given next.
func (t *Target) GoOn(ctx context.Context, from coldcopy.Issued) error {
	return state.NewLeases(t.db).GoOn(ctx, from)
}

// Workspaces returns the workspace of each link; "" = it does not exist.
func (t *Target) Workspaces(ctx context.Context, keys []link.Key) (names []string, err error) {
	stored, err := t.Get(ctx, keys)
	if err != nil {
		return nil, err
	}
	of := make(map[link.Key]string, len(stored))
	for i := range stored {
		of[stored[i].Key] = string(stored[i].Workspace)
	}
	names = make([]string, len(keys))
	for i, k := range keys {
		names[i] = of[k]
	}
	return names, nil
}
