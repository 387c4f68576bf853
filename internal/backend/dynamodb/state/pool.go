package state

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"curt/internal/backend/dynamodb/ddb"
	"curt/internal/codegen"
	"curt/internal/codegen/keypool"
	"curt/internal/link"
)

// Keys are the pools of keys in a table of state. A batch is an item: while it is unused, of one partition for all
// pools of an epoch, in the order of puts; while it is held, of another one, without its keys. What is unused, held
// and leaked is counted in an item for each pool, in the transaction that changes it: no walk has to add it up.
//
// A table that was restored to a moment in the past has keys as unused that links had since. Whoever restores one
// raises the counter of the epoch (codegen.SkipRestored), and batches of another epoch than the present one are
// not there.
//
// DynamoDB has no clock that a condition could ask, so times are those of servers. They decide what is counted as
// leaked and how long the pool lasts, never who has a key.
type Keys struct{ db *ddb.Client }

var _ keypool.Store = Keys{}

// Keys are the pools of keys beside the leases.
func (s *Leases) Keys() Keys { return Keys{s.db} }

const (
	unusedKeys = "unused-keys#" // and the epoch; sorted by pool and number
	heldKeys   = "held-keys"    // sorted by number
	usedKeys   = "used-keys#"   // and the pool; sorted by the time of the take
	keyPool    = "key-pool#"    // and the pool: its counts
	keyBatches = "key-batches"  // the number of the newest batch

	attrPool   = "pool_name"
	attrHolder = "holder"
	attrSize   = "keys_count"
	attrTaken  = "taken_at" // Unix milliseconds
	attrSeen   = "seen_at"  // Unix milliseconds
	attrHeld   = "held_keys"
	attrLeaked = "leaked_keys"
	attrUnused = "unused_" // and the epoch
)

// usedFor is how long takes are kept, for their rate.
const usedFor = time.Hour

func poolPrefix(pool string) []byte { return append([]byte(pool), 0) }

func unusedKey(epoch uint64, pool string, batch uint64) ddb.Item {
	return ddb.StateKey(fmt.Sprint(unusedKeys, epoch), append(poolPrefix(pool), ddb.Sortable(int64(batch))...))
}

func heldKey(batch uint64) ddb.Item { return ddb.StateKey(heldKeys, ddb.Sortable(int64(batch))) }

func usedKey(pool string, taken int64, batch uint64) ddb.Item {
	return ddb.StateKey(usedKeys+pool, append(ddb.Sortable(taken), ddb.Sortable(int64(batch))...))
}

func keyOf(item ddb.Item) ddb.Item {
	return ddb.Item{ddb.Partition: item[ddb.Partition], ddb.Sort: item[ddb.Sort]}
}

// epoch returns the present one.
func (k Keys) epoch(ctx context.Context) (uint64, error) {
	item, err := k.db.Get(ctx, k.db.State, counterKey(codegen.KeysEpoch), true)
	return ddb.UintOf(item, attrNext), err
}

// put returns the write that adds a batch to the unused ones.
func (k Keys) put(ctx context.Context, epoch uint64, pool, text string, size int) (w types.TransactWriteItem, err error) {
	// A request that is sent again may take two numbers: then one belongs to nothing.
	got, err := k.db.Update(ctx, &dynamodb.UpdateItemInput{
		TableName: &k.db.State, Key: ddb.StateKey(keyBatches, nil), ReturnValues: types.ReturnValueUpdatedNew,
		UpdateExpression: aws.String("ADD upcoming :one"), ExpressionAttributeValues: ddb.Item{":one": ddb.Int(1)},
	})
	if err != nil {
		return w, err
	}
	item := unusedKey(epoch, pool, ddb.UintOf(got, attrNext))
	item[attrValue], item[attrSize] = ddb.Text(text), ddb.Int(int64(size))
	w.Put = &types.Put{TableName: &k.db.State, Item: item, ConditionExpression: aws.String("attribute_not_exists(pk)")}
	return w, nil
}

// counts changes how many keys of a pool there are.
func (k Keys) counts(pool string, epoch uint64, unused, held, leaked int64) types.TransactWriteItem {
	return types.TransactWriteItem{Update: &types.Update{
		TableName: &k.db.State, Key: ddb.StateKey(keyPool+pool, nil),
		UpdateExpression:          aws.String("ADD #u :u, held_keys :h, leaked_keys :l"),
		ExpressionAttributeNames:  map[string]string{"#u": fmt.Sprint(attrUnused, epoch)},
		ExpressionAttributeValues: ddb.Item{":u": ddb.Int(unused), ":h": ddb.Int(held), ":l": ddb.Int(leaked)},
	}}
}

// remove deletes an item that has to be there.
func (k Keys) remove(item ddb.Item) types.TransactWriteItem {
	return types.TransactWriteItem{Delete: &types.Delete{
		TableName: &k.db.State, Key: keyOf(item), ConditionExpression: aws.String("attribute_exists(pk)"),
	}}
}

// Put implements keypool.Store.
func (k Keys) Put(ctx context.Context, pool string, keys []link.Code) error {
	text, err := keypool.Encode(keys)
	if err == nil {
		err = k.db.Write(ctx, func(ctx context.Context) error {
			epoch, err := k.epoch(ctx)
			if err != nil {
				return err
			}
			put, err := k.put(ctx, epoch, pool, text, len(keys))
			if err != nil {
				return err
			}
			return k.db.Transact(ctx, []types.TransactWriteItem{put, k.counts(pool, epoch, int64(len(keys)), 0, 0)})
		})
	}
	if err != nil {
		return fmt.Errorf("put keys into %s: %w", pool, err)
	}
	return nil
}

// Take implements keypool.Store. Takers meet at the oldest batch and in the counts: who loses looks again.
func (k Keys) Take(ctx context.Context, pool, holder string) (b keypool.Batch, err error) {
	var taken ddb.Item
	err = k.db.Write(ctx, func(ctx context.Context) error {
		for {
			epoch, err := k.epoch(ctx)
			if err != nil {
				return err
			}
			if taken, err = k.oldest(ctx, epoch, pool); err != nil || taken == nil {
				return err
			}
			err = k.db.Transact(ctx, k.take(taken, epoch, pool, holder, time.Now()))
			if _, refused := ddb.Conditions(err); !refused {
				return err
			}
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
		}
	})
	if err == nil && taken == nil {
		err = keypool.ErrEmpty
	}
	if err != nil {
		return keypool.Batch{}, fmt.Errorf("take keys of %s: %w", pool, err)
	}
	b = keypool.Batch{ID: numberOf(pool, taken), Holder: holder}
	if b.Keys, err = keypool.Decode(ddb.TextOf(taken, attrValue)); err != nil {
		err = errors.Join(err, k.Release(ctx, b, nil, int(ddb.IntOf(taken, attrSize))))
		return keypool.Batch{}, fmt.Errorf("take keys of %s: %w", pool, err)
	}
	return b, nil
}

// numberOf returns the number of an unused batch.
func numberOf(pool string, unused ddb.Item) uint64 {
	return uint64(ddb.SortableOf(ddb.BytesOf(unused, ddb.Sort)[len(poolPrefix(pool)):]))
}

// oldest returns the batch of a pool that was put first; nil = there is none.
func (k Keys) oldest(ctx context.Context, epoch uint64, pool string) (ddb.Item, error) {
	some, _, err := k.db.Query(ctx, &dynamodb.QueryInput{
		TableName: &k.db.State, ConsistentRead: aws.Bool(true), Limit: aws.Int32(1),
		KeyConditionExpression:    aws.String("pk = :p AND begins_with(sk, :s)"),
		ExpressionAttributeValues: ddb.Item{":p": ddb.Text(fmt.Sprint(unusedKeys, epoch)), ":s": ddb.Bytes(poolPrefix(pool))},
	})
	if err != nil || len(some) == 0 {
		return nil, err
	}
	return some[0], nil
}

// take returns the writes that make an unused batch a held one.
func (k Keys) take(unused ddb.Item, epoch uint64, pool, holder string, now time.Time) []types.TransactWriteItem {
	batch, size := numberOf(pool, unused), ddb.IntOf(unused, attrSize)
	at := ddb.Int(now.UnixMilli())
	held := heldKey(batch)
	held[attrPool], held[attrHolder], held[attrSize] = ddb.Text(pool), ddb.Text(holder), ddb.Int(size)
	held[attrTaken], held[attrSeen] = at, at
	used := usedKey(pool, now.UnixMilli(), batch)
	used[attrSize], used[ddb.TTL] = ddb.Int(size), ddb.Int(now.Add(usedFor).Unix())
	return []types.TransactWriteItem{
		k.remove(unused),
		{Put: &types.Put{TableName: &k.db.State, Item: held}},
		{Put: &types.Put{TableName: &k.db.State, Item: used}},
		k.counts(pool, epoch, -size, size, 0),
	}
}

// Release implements keypool.Store.
func (k Keys) Release(ctx context.Context, b keypool.Batch, rest []link.Code, leaked int) error {
	text, err := "", error(nil)
	if len(rest) > 0 {
		text, err = keypool.Encode(rest)
	}
	if err == nil {
		err = k.db.Write(ctx, func(ctx context.Context) error { return k.release(ctx, b, text, len(rest), leaked) })
	}
	if err != nil {
		return fmt.Errorf("release batch %d of keys: %w", b.ID, err)
	}
	return nil
}

func (k Keys) release(ctx context.Context, b keypool.Batch, rest string, n, leaked int) error {
	held, err := k.db.Get(ctx, k.db.State, heldKey(b.ID), true)
	if err != nil {
		return err
	}
	if held == nil || ddb.TextOf(held, attrHolder) != b.Holder {
		return link.ErrNotFound
	}
	epoch, err := k.epoch(ctx)
	if err != nil {
		return err
	}
	pool, taken := ddb.TextOf(held, attrPool), ddb.IntOf(held, attrTaken)
	writes := []types.TransactWriteItem{k.remove(held), k.counts(pool, epoch, int64(n), -ddb.IntOf(held, attrSize), int64(leaked))}
	if n > 0 {
		put, err := k.put(ctx, epoch, pool, rest, n)
		if err != nil {
			return err
		}
		writes = append(writes, put)
	}
	if n > 0 && time.Since(time.UnixMilli(taken)) < usedFor/2 { // else nobody counts the take any more, and it may be gone
		writes = append(writes, types.TransactWriteItem{Update: &types.Update{
			TableName: &k.db.State, Key: usedKey(pool, taken, b.ID), UpdateExpression: aws.String("ADD keys_count :n"),
			ExpressionAttributeValues: ddb.Item{":n": ddb.Int(int64(-n))},
		}})
	}
	err = k.db.Transact(ctx, writes)
	if _, refused := ddb.Conditions(err); refused {
		return link.ErrNotFound
	}
	return err
}

// Abandon implements keypool.Store, and removes the batches of epochs before the present one.
func (k Keys) Abandon(ctx context.Context, holder string) (leaked uint64, err error) {
	err = k.db.WriteMany(ctx, func(ctx context.Context) error {
		epoch, err := k.epoch(ctx)
		if err != nil {
			return err
		}
		for old := range epoch {
			if err := k.drop(ctx, fmt.Sprint(unusedKeys, old)); err != nil {
				return err
			}
		}
		return k.leak(ctx, epoch, &leaked, func(held ddb.Item) bool { return ddb.TextOf(held, attrHolder) == holder })
	})
	if err != nil {
		return 0, fmt.Errorf("abandon keys of %s: %w", holder, err)
	}
	return leaked, nil
}

func (k Keys) drop(ctx context.Context, name string) error {
	all, err := partition(ctx, k.db, name, nil)
	for i := 0; i < len(all) && err == nil; i++ {
		err = k.db.Delete(ctx, k.db.State, keyOf(all[i]))
	}
	return err
}

// Renew implements keypool.Store.
func (k Keys) Renew(ctx context.Context, holder string, silence time.Duration) (leaked uint64, err error) {
	err = k.db.WriteMany(ctx, func(ctx context.Context) error {
		epoch, err := k.epoch(ctx)
		if err != nil {
			return err
		}
		now := time.Now()
		err = k.leak(ctx, epoch, &leaked, func(held ddb.Item) bool {
			return ddb.TextOf(held, attrHolder) != holder && now.UnixMilli()-ddb.IntOf(held, attrSeen) > silence.Milliseconds()
		})
		if err != nil {
			return err
		}
		return k.see(ctx, holder, now)
	})
	if err != nil {
		return 0, fmt.Errorf("renew keys of %s: %w", holder, err)
	}
	return leaked, nil
}

// see writes down that a holder is alive.
func (k Keys) see(ctx context.Context, holder string, now time.Time) error {
	all, err := partition(ctx, k.db, heldKeys, nil)
	if err != nil {
		return err
	}
	for _, held := range all {
		if ddb.TextOf(held, attrHolder) != holder {
			continue
		}
		_, err := k.db.Update(ctx, &dynamodb.UpdateItemInput{
			TableName: &k.db.State, Key: keyOf(held), UpdateExpression: aws.String("SET seen_at = :s"),
			ConditionExpression: aws.String("attribute_exists(pk)"), ExpressionAttributeValues: ddb.Item{":s": ddb.Int(now.UnixMilli())},
		})
		if _, ended := ddb.Conditions(err); err != nil && !ended {
			return err
		}
	}
	return nil
}

// leak counts the keys of held batches as leaked, and adds to n how many they are. A batch that was renewed or released
// meanwhile stays as it is.
func (k Keys) leak(ctx context.Context, epoch uint64, n *uint64, lost func(held ddb.Item) bool) error {
	all, err := partition(ctx, k.db, heldKeys, nil)
	if err != nil {
		return err
	}
	for _, held := range all {
		if !lost(held) {
			continue
		}
		size := ddb.IntOf(held, attrSize)
		remove := k.remove(held)
		remove.Delete.ConditionExpression = aws.String("seen_at = :s")
		remove.Delete.ExpressionAttributeValues = ddb.Item{":s": held[attrSeen]}
		err := ddb.Retry(ctx, func() error {
			return k.db.Transact(ctx, []types.TransactWriteItem{remove, k.counts(ddb.TextOf(held, attrPool), epoch, 0, -size, size)})
		})
		switch _, ended := ddb.Conditions(err); {
		case ended:
		case err != nil:
			return err
		default:
			*n += uint64(size)
		}
	}
	return nil
}

// Level implements keypool.Store.
func (k Keys) Level(ctx context.Context, pool string) (l keypool.Level, err error) {
	err = k.db.Read(ctx, func(ctx context.Context) error {
		epoch, err := k.epoch(ctx)
		if err != nil {
			return err
		}
		counts, err := k.db.Get(ctx, k.db.State, ddb.StateKey(keyPool+pool, nil), true)
		if err != nil {
			return err
		}
		l = keypool.Level{
			Unused: ddb.UintOf(counts, fmt.Sprint(attrUnused, epoch)), Held: ddb.UintOf(counts, attrHeld), Leaked: ddb.UintOf(counts, attrLeaked),
		}
		l.Taken, err = k.taken(ctx, pool, time.Now().Add(-keypool.RateWindow))
		return err
	})
	if err != nil {
		return keypool.Level{}, fmt.Errorf("read the level of %s: %w", pool, err)
	}
	return l, nil
}

// taken returns how many keys were taken since a time.
func (k Keys) taken(ctx context.Context, pool string, since time.Time) (n uint64, err error) {
	in := &dynamodb.QueryInput{
		TableName: &k.db.State, ConsistentRead: aws.Bool(true), KeyConditionExpression: aws.String("pk = :p AND sk >= :s"),
		ExpressionAttributeValues: ddb.Item{":p": ddb.Text(usedKeys + pool), ":s": ddb.Bytes(ddb.Sortable(since.UnixMilli()))},
	}
	for {
		some, next, err := k.db.Query(ctx, in)
		if err != nil {
			return 0, err
		}
		for _, item := range some {
			n += ddb.UintOf(item, attrSize)
		}
		if in.ExclusiveStartKey = next; next == nil {
			return n, nil
		}
	}
}
