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

// end numbers what is pending, unless others are to do that, and returns the head.
func (l *Log) end(ctx context.Context) (link.Sequence, error) {
	if l.config.ReadOnly {
		return l.head(ctx)
	}
	return l.number(ctx)
}

// number returns the newest sequence when every entry that was pending at the call has one, given here or by
// another process. With an error it returns what is known by then: entries that could be read are numbered
// all the same.
//
// All who call while a round is under way share the next one: a server has half a dozen followers, and each round is
// some 18 requests.
func (l *Log) number(ctx context.Context) (link.Sequence, error) {
	for {
		f, lead := l.board()
		if lead {
			l.lead(ctx, f)
			return f.head, f.err
		}
		select {
		case <-f.done:
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
		if !f.left {
			return f.head, f.err
		}
	}
}

// flight is a round that callers wait for.
type flight struct {
	done chan struct{}

	// Set once done is closed.
	head link.Sequence
	err  error
	left bool // its leader's context ended: others try again
}

// board returns the round that has not begun. lead: the caller has to run it.
func (l *Log) board() (f *flight, lead bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.next != nil {
		return l.next, false
	}
	l.next = &flight{done: make(chan struct{})}
	return l.next, true
}

// lead runs a round, after the one before.
func (l *Log) lead(ctx context.Context, f *flight) {
	defer close(f.done)
	begin := func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.next = nil
	}
	select {
	case l.turn <- struct{}{}:
		defer func() { <-l.turn }()
	case <-ctx.Done():
		begin()
		f.err, f.left = context.Cause(ctx), true
		return
	}
	begin() // who comes from now on is not content with what this one reads
	r := round{log: l}
	f.err = ddb.Retry(ctx, func() error {
		for {
			if done, err := r.attempt(ctx); done || err != nil {
				return err
			}
		}
	})
	f.head, f.left = r.head, f.err != nil && ctx.Err() != nil
}

// round numbers what is pending when it begins. Where writers never rest and other processes are always faster, each of its own
// transactions fails. It ends all the same: what it owes, others have numbered.
type round struct {
	log  *Log
	head link.Sequence   // the newest that is known
	owed map[string]bool // what was pending at the first complete reading; nil = there was none yet
}

// attempt reads what is pending and numbers it. done = false: others were faster, or there may be more.
func (r *round) attempt(ctx context.Context) (done bool, err error) {
	all, complete, failed := r.waiting(ctx)
	// The head after the entries: what others numbered before the entries were read is not behind it. What they
	// number later is noticed, as an entry has to be there to be numbered.
	head, err := r.log.head(ctx)
	if err != nil {
		return false, err
	}
	r.head = head
	if complete && r.settled(all) {
		return true, nil
	}
	for batch := range chunks(all, r.head) {
		to, err := r.move(ctx, r.head, batch)
		switch {
		case errors.Is(err, link.ErrConflict):
			return false, failed
		case err != nil:
			return false, err
		}
		r.head = to
	}
	return complete, failed
}

// settled reports whether nothing is pending any more of what was at the first complete reading.
func (r *round) settled(all []waiting) bool {
	if r.owed == nil {
		r.owed = make(map[string]bool, len(all))
		for i := range all {
			r.owed[all[i].name()] = true
		}
		return len(all) == 0
	}
	return !slices.ContainsFunc(all, func(w waiting) bool { return r.owed[w.name()] })
}

// name tells a pending item from all others.
func (w *waiting) name() string { return ddb.TextOf(w.key, ddb.Partition) + string(w.sort) }

// waiting returns what is pending, in an order in which it may be numbered, within the time of a call.
// complete = false: there may be more. With an error it returns what the partitions had that could be read.
func (r *round) waiting(ctx context.Context) (all []waiting, complete bool, err error) {
	ctx, cancel := r.log.db.Bound(ctx)
	defer cancel()
	var mu sync.Mutex
	var wg sync.WaitGroup
	complete = true
	for shard := range uint32(shards) {
		wg.Go(func() {
			some, whole, failed := r.shard(ctx, shardName(shard))
			mu.Lock()
			defer mu.Unlock()
			all, complete, err = append(all, some...), complete && whole, cmp.Or(err, failed) // one says what all say
		})
	}
	wg.Wait()
	order(all)
	return all, complete && err == nil, err
}

// shard reads a partition from its end.
func (r *round) shard(ctx context.Context, partition string) (all []waiting, whole bool, err error) {
	in := &dynamodb.QueryInput{
		TableName: &r.log.db.State, ConsistentRead: aws.Bool(true), ScanIndexForward: aws.Bool(false),
		KeyConditionExpression: aws.String("pk = :p"), ExpressionAttributeValues: ddb.Item{":p": ddb.Text(partition)},
	}
	for range fewPages {
		items, next, err := r.log.db.Query(ctx, in)
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
// it, or numbered some of the chunk.
func (r *round) move(ctx context.Context, head link.Sequence, batch []waiting) (link.Sequence, error) {
	ctx, cancel := r.log.db.Bound(ctx)
	defer cancel()
	if err := r.log.erase(ctx, batch); err != nil {
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
	chunk[attrFirst], chunk[attrEntry], chunk[ddb.TTL] = ddb.Int(int64(head+1)), ddb.Text(string(text)), r.log.until(time.Now())
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
			TableName: &r.log.db.State, Key: headKey(), UpdateExpression: aws.String("SET head = :to"),
			ConditionExpression: &condition, ExpressionAttributeValues: values,
		}},
		r.log.put(chunk),
	}
	for i := range batch {
		writes = append(writes, types.TransactWriteItem{Delete: &types.Delete{
			TableName: &r.log.db.State, Key: batch[i].key, ConditionExpression: aws.String("attribute_exists(pk)"),
		}})
	}
	if err := r.log.db.Transact(ctx, writes); err != nil {
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

// How often Run numbers: soon after a write of this process, and otherwise what others left behind. Those who
// only read do so rarely, for a fleet whose last writer died between a write and its number.
const (
	numberSoon  = 50 * time.Millisecond
	numberEvery = 2 * time.Second
	numberLeft  = 5 * time.Second
)

// Run numbers entries until ctx ends, so that those who only read see them. failed is called with
// each error.
func (l *Log) Run(ctx context.Context, failed func(error)) {
	often := numberEvery
	if l.config.ReadOnly {
		often = numberLeft
	}
	every := time.NewTicker(often)
	defer every.Stop()
	for {
		err := l.db.Read(ctx, func(ctx context.Context) error {
			_, err := l.number(ctx)
			return err
		})
		if err != nil && ctx.Err() == nil {
			failed(err)
		}
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
	}
}
