package changes

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"curt/internal/backend/dynamodb/ddb"
	"curt/internal/link"
)

// maxPage is how many chunks one request reads: each has an entry at least.
const maxPage = 100

// numbered is an entry with its sequence.
type numbered struct {
	entry

	at link.Sequence
}

// Changes implements link.Store.
func (l *Log) Changes(ctx context.Context, after link.Position, n int) (all []link.Change, next link.Position, err error) {
	next, err = l.after(ctx, after, n, func(_ context.Context, page []numbered) error {
		all = nil
		for _, e := range page {
			all = append(all, link.Change{Sequence: e.at, Key: e.key(), Version: link.Version(e.Version)})
		}
		return nil
	})
	return all, next, err
}

// Events implements link.EventLog.
func (l *Log) Events(ctx context.Context, after link.Position, n int) (all []link.Event, next link.Position, err error) {
	next, err = l.after(ctx, after, n, func(ctx context.Context, page []numbered) error {
		all = nil
		events := make([]link.Event, len(page))
		for i, e := range page {
			var err error
			if events[i], err = e.event(e.at); err != nil {
				return err
			}
		}
		if err := l.oldValues(ctx, page, events); err != nil {
			return err
		}
		all = events
		return nil
	})
	return all, next, err
}

// oldValues sets the old values of fields that are still there.
func (l *Log) oldValues(ctx context.Context, page []numbered, all []link.Event) error {
	var keys []ddb.Item
	places := map[string]int{}
	for i, e := range page {
		if !e.Fields {
			continue
		}
		partition, sort := oldOf(e.key()), versionSort(link.Version(e.Version))
		places[partition+"\x00"+string(sort)] = i
		keys = append(keys, ddb.StateKey(partition, sort))
	}
	return l.db.BatchGet(ctx, l.db.State, keys, func(item ddb.Item) error {
		e := &all[places[ddb.TextOf(item, ddb.Partition)+"\x00"+string(ddb.BytesOf(item, ddb.Sort))]]
		return e.Parse(ddb.TextOf(item, attrOld), "")
	})
}

// Head implements link.Store.
func (l *Log) Head(ctx context.Context) (link.Position, error) {
	var head link.Sequence
	err := l.db.ReadMany(ctx, func(ctx context.Context) (err error) {
		head, err = l.end(ctx)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("read the head of the change log: %w", err)
	}
	return head.Position(), nil
}

// after reads up to n entries behind a position, gives them to take and returns the position behind
// them. Where the end could not be reached it does so with the entries that have a sequence, and
// returns why.
func (l *Log) after(ctx context.Context, at link.Position, n int, take func(ctx context.Context, page []numbered) error) (link.Position, error) {
	from, err := at.Sequence()
	if err != nil {
		return "", fmt.Errorf("read changes: %w", err)
	}
	to := from
	err = l.db.ReadMany(ctx, func(ctx context.Context) error {
		head, err := l.head(ctx)
		if err != nil {
			return err
		}
		var short error
		if head < from+link.Sequence(n) { // the end is within reach
			var end link.Sequence
			end, short = l.end(ctx)
			head = max(head, end)
		}
		if err := from.Continues(0, head); err != nil {
			return err
		}
		page, err := l.page(ctx, from, min(head, from+link.Sequence(n)))
		if err != nil {
			return err
		}
		if err := take(ctx, page); err != nil {
			return err
		}
		if to = from + link.Sequence(len(page)); len(page) == n {
			return nil
		}
		return short
	})
	switch {
	case err == nil:
		return to.Position(), nil
	case to > from:
		return to.Position(), fmt.Errorf("read changes after %d: %w", to, err)
	}
	return "", fmt.Errorf("read changes after %d: %w", from, err)
}

// page returns the entries behind from, up to end, or fewer where some of them are gone; ErrConflict
// where the first of them is.
func (l *Log) page(ctx context.Context, from, end link.Sequence) (all []numbered, err error) {
	now := time.Now().Unix()
	for at := from; at < end; {
		partition := segmentOf(at + 1)
		items, next, err := l.db.Query(ctx, &dynamodb.QueryInput{
			TableName: &l.db.State, ConsistentRead: aws.Bool(true), Limit: aws.Int32(int32(min(end-at, maxPage))),
			KeyConditionExpression:    aws.String("pk = :p AND sk > :s"),
			ExpressionAttributeValues: ddb.Item{":p": ddb.Text(partition), ":s": ddb.Bytes(ddb.Sortable(int64(at)))},
		})
		if err != nil {
			return nil, err
		}
		before := at
		for _, item := range items {
			first := link.Sequence(ddb.IntOf(item, attrFirst))
			// DynamoDB removes what has expired when it likes, and in any order.
			if first > at+1 || ddb.IntOf(item, ddb.TTL) < now {
				return all, hole(all, from)
			}
			if all, err = decode(all, item, first, at, end); err != nil {
				return nil, err
			}
			at = from + link.Sequence(len(all))
		}
		if at == before || next == nil && at < end && segmentOf(at+1) == partition {
			return all, hole(all, from)
		}
	}
	return all, nil
}

// hole is the error of a page that ends before entries that are gone.
func hole(all []numbered, from link.Sequence) error {
	if len(all) > 0 {
		return nil
	}
	return fmt.Errorf("changes after %d were trimmed: %w", from, link.ErrConflict)
}

// decode adds the entries of a chunk that lie behind a sequence and not behind end.
func decode(all []numbered, chunk ddb.Item, first, after, end link.Sequence) ([]numbered, error) {
	var entries []entry
	d := json.NewDecoder(bytes.NewReader([]byte(ddb.TextOf(chunk, attrEntry))))
	if err := d.Decode(&entries); err != nil {
		return nil, fmt.Errorf("%w: a chunk of the change log: %w", link.ErrUnavailable, err)
	}
	for i := range entries {
		if at := first + link.Sequence(i); at > after && at <= end {
			all = append(all, numbered{entries[i], at})
		}
	}
	return all, nil
}

// Restart leaves a hole behind the newest sequence, so that followers of a log that was restored from
// a backup start over: sequences that they have read would come again with another meaning.
func (l *Log) Restart(ctx context.Context) error {
	return l.db.Write(ctx, func(ctx context.Context) error {
		_, err := l.db.UpdateOnce(ctx, &dynamodb.UpdateItemInput{
			TableName: &l.db.State, Key: headKey(), UpdateExpression: aws.String("ADD head :n"),
			ExpressionAttributeValues: ddb.Item{":n": ddb.Int(restarted)},
		})
		return err
	})
}

// restarted is more than any log grows by between a backup and its restore, in whole segments.
const restarted = segment << 20
