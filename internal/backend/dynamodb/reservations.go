package dynamodb

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"curt/internal/backend/dynamodb/ddb"
	"curt/internal/backend/dynamodb/linkitem"
	"curt/internal/backend/dynamodb/state"
	"curt/internal/backend/dynamodb/tables"
	"curt/internal/link"
)

// A reservation is the item under the key of its link, so that the condition of every create meets it. No time to live
// removes it: that table has none. The clock is that of the machine: DynamoDB shows none.

// reserver holds codes for workspaces that are about to create a link there.
type reserver struct {
	db     *ddb.Client
	reader *linkReader
	gate   *state.Gate
}

// attrCount is a number that grows with each reservation of a workspace.
const attrCount = "taken"

// sameReservation is the condition that a reservation is the one that was read.
const sameReservation = "held_by = :holder AND held_since = :since AND held_until = :until"

func isReservation(r *linkitem.Reservation) ddb.Item {
	return ddb.Item{":holder": ddb.Text(string(r.Workspace)), ":since": ddb.Int(r.Since), ":until": ddb.Int(r.Until)}
}

// Reserve implements link.Reserver: two reads, and a transaction.
func (s *reserver) Reserve(ctx context.Context, c link.Claim) (r link.Reservation, found bool, err error) {
	if err := s.db.Ready(ctx); err != nil {
		return link.Reservation{}, false, fmt.Errorf("reserve: %w", err)
	}
	if err := c.Validate(); err != nil {
		return link.Reservation{}, false, fmt.Errorf("reserve: %w", err)
	}
	err = s.gate.Write(ctx, func(ctx context.Context) error {
		for {
			r, found, err = s.reserve(ctx, &c, time.Now())
			if _, overtaken := ddb.Conditions(err); !overtaken {
				return err
			}
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
		}
	})
	if err != nil {
		return link.Reservation{}, false, fmt.Errorf("reserve %s: %w", c.Key, err)
	}
	return r, found, nil
}

// reserve tries once. Its error is a condition that did not hold where another caller was first in a way that may
// matter.
func (s *reserver) reserve(ctx context.Context, c *link.Claim, now time.Time) (r link.Reservation, found bool, err error) {
	item, err := s.db.Get(ctx, s.db.Links, linkitem.KeyOf(c.Key), true)
	if err != nil {
		return link.Reservation{}, false, err
	}
	there, reserved := linkitem.ReservationOf(item)
	switch held := reserved && !there.Lapsed(now); {
	case item != nil && !reserved:
		return link.Reservation{}, false, link.ErrExists
	case held && there.Workspace == c.Workspace:
		return there.At(now), true, nil
	case held:
		return link.Reservation{}, false, &link.HeldError{Reservation: there.At(now)}
	}
	holds, taken, err := s.held(ctx, c.Workspace, now)
	if err != nil {
		return link.Reservation{}, false, err
	}
	if holds >= c.Most {
		return link.Reservation{}, false, link.ErrTooManyReservations
	}
	mine := linkitem.Reservation{Key: c.Key, Workspace: c.Workspace, Since: now.UnixMilli(), Until: now.Add(c.For).UnixMilli()}
	put := &types.Put{TableName: &s.db.Links, Item: mine.Item(), ConditionExpression: aws.String(notThere)}
	if reserved {
		put.ConditionExpression, put.ExpressionAttributeValues = aws.String(sameReservation), isReservation(&there)
	}
	count := &types.Update{
		TableName: &s.db.State, Key: ddb.StateKey(linkitem.HeldPartition(c.Workspace), nil), UpdateExpression: aws.String("ADD taken :one"),
		ConditionExpression: aws.String("attribute_not_exists(pk)"), ExpressionAttributeValues: ddb.Item{":one": ddb.Int(1)},
	}
	if taken > 0 {
		count.ConditionExpression = aws.String("taken = :taken")
		count.ExpressionAttributeValues[":taken"] = ddb.Int(taken)
	}
	err = s.db.Transact(ctx, []types.TransactWriteItem{
		{Put: put}, {Update: count}, {Put: &types.Put{TableName: &s.db.State, Item: mine.Counted()}},
	})
	return mine.At(now), false, err
}

// held counts the reservations of a workspace, and returns the number by which they are counted one after the other.
func (s *reserver) held(ctx context.Context, w link.WorkspaceID, now time.Time) (holds int, taken int64, err error) {
	in := &dynamodb.QueryInput{
		TableName: &s.db.State, ConsistentRead: aws.Bool(true), KeyConditionExpression: aws.String("pk = :p"),
		ExpressionAttributeValues: ddb.Item{":p": ddb.Text(linkitem.HeldPartition(w))},
	}
	for {
		items, next, err := s.db.Query(ctx, in)
		if err != nil {
			return 0, 0, err
		}
		for _, item := range items {
			if n := ddb.IntOf(item, attrCount); n > 0 {
				taken = n
			} else if !link.Lapsed(ddb.IntOf(item, linkitem.Since), ddb.IntOf(item, linkitem.Until), now.UnixMilli()) {
				holds++
			}
		}
		if in.ExclusiveStartKey = next; next == nil {
			return holds, taken, nil
		}
	}
}

// redeem has a create of a chosen code end the reservation that it met, if it may: what it sends next goes over that
// one alone.
func redeem(l *link.Link, met *linkitem.Reservation, writes []types.TransactWriteItem, state string) ([]types.TransactWriteItem, error) {
	if now := time.Now(); !met.Lapsed(now) && met.Workspace != l.Workspace {
		return nil, &link.HeldError{Reservation: met.At(now)}
	}
	over := *writes[0].Put
	over.ConditionExpression, over.ExpressionAttributeValues = aws.String(sameReservation), isReservation(met)
	all := append([]types.TransactWriteItem{{Put: &over}}, writes[1:]...)
	return append(all, types.TransactWriteItem{Delete: &types.Delete{TableName: &state, Key: met.CountedKey()}}), nil
}

// Occupants implements link.Reserver.
func (s *reserver) Occupants(ctx context.Context, keys []link.Key) ([]link.Occupant, error) {
	if len(keys) > link.MaxPage {
		return nil, fmt.Errorf("find the occupants of %d keys: %w", len(keys), link.ErrInvalid)
	}
	has := map[link.Key]link.Occupant{}
	err := s.db.ReadMany(ctx, func(ctx context.Context) error {
		return s.db.BatchGet(ctx, s.db.Links, itemsOf(keys), func(item ddb.Item) error {
			r, reserved := linkitem.ReservationOf(item)
			o := link.Occupant{Linked: !reserved}
			if now := time.Now(); reserved && !r.Lapsed(now) {
				o.Reservation = r.At(now)
			}
			has[linkitem.ParseKey(item)] = o
			return nil
		})
	})
	if err != nil {
		return nil, fmt.Errorf("find the occupants of %d keys: %w", len(keys), err)
	}
	all := make([]link.Occupant, len(keys))
	for i, k := range keys {
		all[i] = has[k]
	}
	return all, nil
}

// Release implements link.Reserver.
func (s *reserver) Release(ctx context.Context, k link.Key, w link.WorkspaceID) error {
	err := s.gate.Write(ctx, func(ctx context.Context) error {
		for {
			if !link.ValidCode(k.Code) {
				return link.ErrNotFound
			}
			item, err := s.db.Get(ctx, s.db.Links, linkitem.KeyOf(k), true)
			if err != nil {
				return err
			}
			r, reserved := linkitem.ReservationOf(item)
			if !reserved || r.Lapsed(time.Now()) || w != "" && r.Workspace != w {
				return link.ErrNotFound
			}
			if gone, err := s.remove(ctx, &r); gone || err != nil {
				return err
			}
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
		}
	})
	if err != nil {
		return fmt.Errorf("release %s: %w", k, err)
	}
	return nil
}

// remove removes a reservation that was read. gone = false: something else is there by now.
func (s *reserver) remove(ctx context.Context, r *linkitem.Reservation) (gone bool, err error) {
	err = s.db.Transact(ctx, []types.TransactWriteItem{
		{Delete: &types.Delete{
			TableName: &s.db.Links, Key: linkitem.KeyOf(r.Key),
			ConditionExpression: aws.String(sameReservation), ExpressionAttributeValues: isReservation(r),
		}},
		{Delete: &types.Delete{TableName: &s.db.State, Key: r.CountedKey()}},
	})
	if _, other := ddb.Conditions(err); other {
		return false, nil
	}
	return err == nil, err
}

// RemoveLapsed implements link.Reserver, by an index.
func (s *reserver) RemoveLapsed(ctx context.Context, n int) (removed int, err error) {
	now := time.Now()
	w := walk{
		index: tables.ByExpiry, hash: linkitem.OfExpiry, sort: linkitem.Expiry, forward: true,
		lo: ddb.Sortable(0), hi: ddb.Sortable(now.UnixMilli() + 1),
	}
	var shards []string
	for i := range uint32(linkitem.Shards) {
		shards = append(shards, linkitem.ReservedShard(i))
	}
	err = s.gate.WriteMany(ctx, func(ctx context.Context) error {
		m := s.reader.merge(w, shards, n/linkitem.Shards+8)
		for removed < n {
			shown, more, err := m.next(ctx)
			if err != nil || !more {
				return err
			}
			item, err := s.db.Get(ctx, s.db.Links, linkitem.KeyOf(linkitem.ParseKey(shown)), true)
			if err != nil {
				return err
			}
			r, reserved := linkitem.ReservationOf(item)
			if !reserved || !r.Lapsed(now) {
				continue // an index shows the past
			}
			gone, err := s.remove(ctx, &r)
			if err != nil {
				return err
			}
			if gone {
				removed++
			}
		}
		return nil
	})
	if err != nil {
		return removed, fmt.Errorf("remove lapsed reservations: %w", err)
	}
	return removed, nil
}
