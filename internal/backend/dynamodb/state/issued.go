package state

import (
	"context"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"curt/internal/backend/coldsql/coldcopy"
	"curt/internal/backend/dynamodb/ddb"
	"curt/internal/codegen"
)

// Issued returns all that servers were given, for a move to another store.
func (s *Leases) Issued(ctx context.Context) (all coldcopy.Issued, err error) {
	names := codegen.Counters()
	keys := make([]ddb.Item, len(names))
	for i, name := range names {
		keys[i] = counterKey(name)
	}
	err = s.db.ReadMany(ctx, func(ctx context.Context) error {
		all = coldcopy.Issued{Key: s.codeKey, Counters: map[string]int64{}, Days: map[int64][]byte{}}
		err := s.db.BatchGet(ctx, s.db.State, keys, func(item ddb.Item) error {
			all.Counters[strings.TrimPrefix(ddb.TextOf(item, ddb.Partition), leasePrefix)] = ddb.IntOf(item, attrNext)
			return nil
		})
		if err != nil {
			return err
		}
		days, err := partition(ctx, s.db, dayKeys, nil)
		for _, item := range days {
			all.Days[ddb.SortableOf(ddb.BytesOf(item, ddb.Sort))] = ddb.BytesOf(item, attrValue)
		}
		return err
	})
	if err != nil {
		return all, fmt.Errorf("read leases: %w", err)
	}
	return all, nil
}

// GoOn has the table give what another store would have given next. Its key of codes is put by Begin of
// a move.
func (s *Leases) GoOn(ctx context.Context, from coldcopy.Issued) error {
	err := s.db.WriteMany(ctx, func(ctx context.Context) error {
		for name, next := range from.Counters {
			_, err := s.db.Update(ctx, &dynamodb.UpdateItemInput{
				TableName: &s.db.State, Key: counterKey(name), UpdateExpression: aws.String("SET upcoming = :n"),
				ConditionExpression:       aws.String("attribute_not_exists(upcoming) OR upcoming < :n"),
				ExpressionAttributeValues: ddb.Item{":n": ddb.Int(next)},
			})
			if _, further := ddb.Conditions(err); err != nil && !further {
				return err
			}
		}
		for day, key := range from.Days {
			item := ddb.StateKey(dayKeys, ddb.Sortable(day))
			item[attrValue] = ddb.Bytes(key)
			if err := s.db.Put(ctx, &dynamodb.PutItemInput{TableName: &s.db.State, Item: item}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("write leases: %w", err)
	}
	return nil
}

// PutCodeKey stores the key of codes of another store. It must be called before a server starts.
func PutCodeKey(ctx context.Context, db *ddb.Client, key [32]byte) error {
	item := ddb.StateKey(codeKeyItem, nil)
	item[attrValue] = ddb.Bytes(key[:])
	return db.Put(ctx, &dynamodb.PutItemInput{TableName: &db.State, Item: item})
}

// HasCodeKey reports whether servers have used the table, or a move has begun to fill it.
func HasCodeKey(ctx context.Context, db *ddb.Client) (bool, error) {
	item, err := db.Get(ctx, db.State, ddb.StateKey(codeKeyItem, nil), true)
	return item != nil, err
}
