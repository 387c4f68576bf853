package changes

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"curt/internal/backend/dynamodb/ddb"
	"curt/internal/backend/dynamodb/linkitem"
	"curt/internal/background"
	"curt/internal/link"
)

const (
	// maxChunk entries are numbered at once: a transaction has 100 writes, of which one moves the head
	// and one stores the chunk.
	maxChunk = ddb.MaxTransact - 2
	// chunkBytes bounds a chunk: an item has 400 KB at the most.
	chunkBytes = 200 << 10
	// segment is how many sequences have one partition key; no chunk lies in two.
	segment = 4096
	// fewPages is how many pages of one partition are read in a round, of a megabyte each.
	fewPages = 4
)

func headKey() ddb.Item { return ddb.StateKey("head", nil) }

func segmentOf(s link.Sequence) string { return fmt.Sprintf("log#%d", uint64(s)/segment) }

// waiting is a pending item.
type waiting struct {
	key   ddb.Item
	sort  []byte
	text  string
	stamp int64
	erase string
	entry entry
}

// head returns the newest sequence.
func (l *Log) head(ctx context.Context) (link.Sequence, error) {
	item, err := l.db.Get(ctx, l.db.State, headKey(), true)
	return link.Sequence(ddb.IntOf(item, attrHead)), err
}

// number gives a sequence to every entry that is pending when it is called, and returns the head.
func (l *Log) number(ctx context.Context) (link.Sequence, error) {
	l.numbering.Lock()
	defer l.numbering.Unlock()
	for {
		head, err := l.head(ctx) // before the entries: whoever moved it later is noticed
		if err != nil || l.config.ReadOnly {
			return head, err
		}
		all, complete, err := l.waiting(ctx)
		if err != nil {
			return 0, err
		}
		overtaken := false
		for batch := range chunks(all, head) {
			if head, err = l.move(ctx, head, batch); errors.Is(err, link.ErrConflict) {
				overtaken = true
				break
			} else if err != nil {
				return 0, err
			}
		}
		if complete && !overtaken {
			return head, nil
		}
	}
}

// waiting returns what is pending, in an order in which it may be numbered. complete = false: there
// may be more.
func (l *Log) waiting(ctx context.Context) (all []waiting, complete bool, err error) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	complete = true
	for shard := range uint32(shards) {
		wg.Go(func() {
			some, whole, failed := l.shard(ctx, shardName(shard))
			mu.Lock()
			defer mu.Unlock()
			all, complete, err = append(all, some...), complete && whole, cmp.Or(err, failed) // one says what all say
		})
	}
	wg.Wait()
	if err != nil {
		return nil, false, err
	}
	order(all)
	return all, complete, nil
}

// shard reads a partition from its end.
func (l *Log) shard(ctx context.Context, partition string) (all []waiting, whole bool, err error) {
	in := &dynamodb.QueryInput{
		TableName: &l.db.State, ConsistentRead: aws.Bool(true), ScanIndexForward: aws.Bool(false),
		KeyConditionExpression: aws.String("pk = :p"), ExpressionAttributeValues: ddb.Item{":p": ddb.Text(partition)},
	}
	for range fewPages {
		items, next, err := l.db.Query(ctx, in)
		if err != nil {
			return nil, false, err
		}
		for _, item := range items {
			w := waiting{
				key: ddb.StateKey(partition, ddb.BytesOf(item, ddb.Sort)), sort: ddb.BytesOf(item, ddb.Sort),
				text: ddb.TextOf(item, attrEntry), stamp: ddb.IntOf(item, attrStamp), erase: ddb.TextOf(item, attrErase),
			}
			if err := json.Unmarshal([]byte(w.text), &w.entry); err != nil {
				return nil, false, fmt.Errorf("%w: a pending entry of the change log: %w", link.ErrUnavailable, err)
			}
			all = append(all, w)
		}
		if next == nil {
			return all, true, nil
		}
		in.ExclusiveStartKey = next
	}
	// Of the last link there may be earlier versions that were not read.
	last := all[len(all)-1].entry.key()
	some := slices.DeleteFunc(slices.Clone(all), func(w waiting) bool { return w.entry.key() == last })
	if len(some) == 0 {
		return nil, false, fmt.Errorf("%w: %d entries of one link are pending", link.ErrUnavailable, len(all))
	}
	return some, false, nil
}

// order sorts by the time of writers, and the entries of one link by its versions, whatever clocks
// say.
func order(all []waiting) {
	slices.SortFunc(all, func(a, b waiting) int { return cmp.Or(cmp.Compare(a.stamp, b.stamp), bytes.Compare(a.sort, b.sort)) })
	places := map[link.Key][]int{}
	for i := range all {
		if k := all[i].entry.key(); k != (link.Key{}) {
			places[k] = append(places[k], i)
		}
	}
	for _, of := range places {
		if len(of) == 1 {
			continue
		}
		same := make([]waiting, len(of))
		for i, at := range of {
			same[i] = all[at]
		}
		slices.SortFunc(same, func(a, b waiting) int {
			return cmp.Or(cmp.Compare(a.entry.Version, b.entry.Version), cmp.Compare(a.stamp, b.stamp))
		})
		for i, at := range of {
			all[at] = same[i]
		}
	}
}

// chunks parts entries behind a sequence.
func chunks(all []waiting, head link.Sequence) func(yield func([]waiting) bool) {
	return func(yield func([]waiting) bool) {
		for len(all) > 0 {
			n, size := 0, 0
			for n < len(all) && n < maxChunk && (n == 0 || size+len(all[n].text) <= chunkBytes && segmentOf(head+1) == segmentOf(head+link.Sequence(n)+1)) {
				size += len(all[n].text)
				n++
			}
			if !yield(all[:n]) {
				return
			}
			head += link.Sequence(n)
			all = all[n:]
		}
	}
}

// move numbers a chunk behind a head and returns the new one. link.ErrConflict: somebody else moved
// it.
func (l *Log) move(ctx context.Context, head link.Sequence, batch []waiting) (link.Sequence, error) {
	if err := l.erase(ctx, batch); err != nil {
		return 0, err
	}
	to := head + link.Sequence(len(batch))
	texts := make([]json.RawMessage, len(batch))
	for i := range batch {
		texts[i] = json.RawMessage(batch[i].text)
	}
	text, err := json.Marshal(texts)
	if err != nil {
		return 0, fmt.Errorf("a chunk of the change log: %w", err)
	}
	chunk := ddb.StateKey(segmentOf(head+1), ddb.Sortable(int64(to)))
	chunk[attrFirst], chunk[attrEntry], chunk[ddb.TTL] = ddb.Int(int64(head+1)), ddb.Text(string(text)), l.until(time.Now())
	condition := "head = :from"
	if head == 0 {
		condition = "attribute_not_exists(head)"
	}
	values := ddb.Item{":to": ddb.Int(int64(to))}
	if head > 0 {
		values[":from"] = ddb.Int(int64(head))
	}
	writes := []types.TransactWriteItem{
		{Update: &types.Update{
			TableName: &l.db.State, Key: headKey(), UpdateExpression: aws.String("SET head = :to"),
			ConditionExpression: &condition, ExpressionAttributeValues: values,
		}},
		l.put(chunk),
	}
	for i := range batch {
		writes = append(writes, types.TransactWriteItem{Delete: &types.Delete{TableName: &l.db.State, Key: batch[i].key}})
	}
	if err := l.db.Transact(ctx, writes); err != nil {
		if _, refused := ddb.Conditions(err); refused {
			return 0, fmt.Errorf("number after %d: %w", head, link.ErrConflict)
		}
		return 0, err
	}
	return to, nil
}

// erase removes what goes with the links whose deletion is about to be visible: old values of their
// fields, and the items by which equivalent links were found.
func (l *Log) erase(ctx context.Context, batch []waiting) error {
	for i := range batch {
		if batch[i].entry.Kind != string(link.WasDeleted) {
			continue
		}
		if err := l.eraseOne(ctx, batch[i].entry.key(), batch[i].erase); err != nil {
			return err
		}
	}
	return nil
}

// Erase removes at once what goes with a link that was deleted. What it cannot remove goes before the
// deletion has a sequence.
func (l *Log) Erase(ctx context.Context, k link.Key, twin string) { _ = l.eraseOne(ctx, k, twin) }

func (l *Log) eraseOne(ctx context.Context, k link.Key, twin string) error {
	if twin != "" {
		// Another link may stand for the same answer by now.
		own := ddb.Item{":h": ddb.Bytes(linkitem.Ordered(k))}
		if err := l.db.DeleteIf(ctx, l.db.State, ddb.StateKey(twin, nil), "holder = :h", own); err != nil {
			return err
		}
	}
	return l.deleteAll(ctx, oldOf(k))
}

// deleteAll removes a partition.
func (l *Log) deleteAll(ctx context.Context, partition string) error {
	in := &dynamodb.QueryInput{
		TableName: &l.db.State, ConsistentRead: aws.Bool(true), ProjectionExpression: aws.String("pk, sk"),
		KeyConditionExpression: aws.String("pk = :p"), ExpressionAttributeValues: ddb.Item{":p": ddb.Text(partition)},
	}
	for {
		items, next, err := l.db.Query(ctx, in)
		if err != nil {
			return err
		}
		for _, item := range items {
			if err := l.db.Delete(ctx, l.db.State, ddb.Item{ddb.Partition: item[ddb.Partition], ddb.Sort: item[ddb.Sort]}); err != nil {
				return err
			}
		}
		if in.ExclusiveStartKey = next; next == nil {
			return nil
		}
	}
}

// How often Run numbers: soon after a write of this process, and otherwise what others left behind.
const (
	numberSoon  = 50 * time.Millisecond
	numberEvery = 2 * time.Second
)

// Run numbers entries until ctx ends, so that those who only read see them. failed is called with
// each error.
func (l *Log) Run(ctx context.Context, failed func(error)) {
	if l.config.ReadOnly {
		<-ctx.Done()
		return
	}
	every := time.NewTicker(numberEvery)
	defer every.Stop()
	for {
		wait := time.Duration(0)
		select {
		case <-ctx.Done():
			return
		case <-every.C:
		case <-l.poke:
			wait = numberSoon // others are about to write, too
		}
		if !background.Sleep(ctx, wait) {
			return
		}
		err := l.db.ReadMany(ctx, func(ctx context.Context) error {
			_, err := l.number(ctx)
			return err
		})
		if err != nil && ctx.Err() == nil {
			failed(err)
		}
	}
}
