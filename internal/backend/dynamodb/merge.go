package dynamodb

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"curt/internal/backend/dynamodb/ddb"
	"curt/internal/backend/dynamodb/linkitem"
	"curt/internal/link"
)

// walk is a range of an index that has shards: all items from lo to hi.
type walk struct {
	index, hash, sort string
	lo, hi            []byte
	forward           bool
}

// merge reads the shards of a walk in one order. It is for one goroutine.
type merge struct {
	db     *ddb.Client
	walk   walk
	limit  int32 // items of one query
	shards []shard
}

// shard is how far one of them was read.
type shard struct {
	name  string
	items []ddb.Item
	next  ddb.Item // where to go on; nil = the end, once begun
	begun bool
}

// merge begins a walk; some is how many items it takes of one shard at once.
func (s *linkReader) merge(w walk, names []string, some int) *merge {
	m := &merge{db: s.db, walk: w, limit: int32(min(some, link.MaxPage)), shards: make([]shard, len(names))}
	for i, name := range names {
		m.shards[i].name = name
	}
	return m
}

func allShards() []string {
	names := make([]string, linkitem.Shards)
	for i := range names {
		names[i] = linkitem.Shard(uint32(i))
	}
	return names
}

// next returns the next item; more = false: there is none.
func (m *merge) next(ctx context.Context) (item ddb.Item, more bool, err error) {
	if err := m.fill(ctx); err != nil {
		return nil, false, err
	}
	var first *shard
	for i := range m.shards {
		s := &m.shards[i]
		if len(s.items) > 0 && (first == nil || m.before(s.items[0], first.items[0])) {
			first = s
		}
	}
	if first == nil {
		return nil, false, nil
	}
	item, first.items = first.items[0], first.items[1:]
	return item, true, nil
}

func (m *merge) before(a, b ddb.Item) bool {
	order := bytes.Compare(ddb.BytesOf(a, m.walk.sort), ddb.BytesOf(b, m.walk.sort))
	return order < 0 == m.walk.forward && order != 0
}

// fill reads on where nothing is left of a shard that has more.
func (m *merge) fill(ctx context.Context) error {
	var wg sync.WaitGroup
	failed := make([]error, len(m.shards))
	for i := range m.shards {
		if s := &m.shards[i]; len(s.items) == 0 && (!s.begun || s.next != nil) {
			wg.Go(func() { failed[i] = m.read(ctx, s) })
		}
	}
	wg.Wait()
	return cmp.Or(failed...) // one says what all say
}

// read reads a shard until there is an item, or the end.
func (m *merge) read(ctx context.Context, s *shard) (err error) {
	if bytes.Compare(m.walk.lo, m.walk.hi) > 0 { // which DynamoDB refuses
		s.begun = true
		return nil
	}
	for len(s.items) == 0 && (!s.begun || s.next != nil) {
		s.items, s.next, err = m.db.Query(ctx, &dynamodb.QueryInput{
			TableName: &m.db.Links, IndexName: &m.walk.index, ExclusiveStartKey: s.next, Limit: &m.limit, ScanIndexForward: &m.walk.forward,
			KeyConditionExpression:    aws.String("#h = :h AND #s BETWEEN :lo AND :hi"),
			ExpressionAttributeNames:  map[string]string{"#h": m.walk.hash, "#s": m.walk.sort},
			ExpressionAttributeValues: ddb.Item{":h": ddb.Text(s.name), ":lo": ddb.Bytes(m.walk.lo), ":hi": ddb.Bytes(m.walk.hi)},
		})
		if s.begun = true; err != nil {
			return fmt.Errorf("read index %s: %w", m.walk.index, err)
		}
	}
	return nil
}
