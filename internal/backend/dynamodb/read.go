package dynamodb

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"curt/internal/backend/dynamodb/ddb"
	"curt/internal/backend/dynamodb/linkitem"
	"curt/internal/backend/dynamodb/tables"
	"curt/internal/link"
)

// linkReader reads links.
type linkReader struct {
	db       *ddb.Client
	identity string // of the tables
	delay    time.Duration
}

// Lookup implements link.Store: one eventually consistent read, and a consistent one before it says
// that there is no such link.
func (s *linkReader) Lookup(ctx context.Context, k link.Key) (target link.Target, err error) {
	err = s.db.Read(ctx, func(ctx context.Context) error {
		l, err := s.item(ctx, k, false)
		if errors.Is(err, link.ErrNotFound) {
			l, err = s.item(ctx, k, true)
		}
		if err == nil {
			target, err = l.Leads()
		}
		return err
	})
	if err != nil {
		return link.Target{}, fmt.Errorf("look up %s: %w", k, err)
	}
	return target, nil
}

// Get implements link.Store.
func (s *linkReader) Get(ctx context.Context, k link.Key) (l link.Link, err error) {
	err = s.db.Read(ctx, func(ctx context.Context) error {
		l, err = s.item(ctx, k, true)
		return err
	})
	if err != nil {
		return link.Link{}, fmt.Errorf("get %s: %w", k, err)
	}
	return l, nil
}

func (s *linkReader) item(ctx context.Context, k link.Key, consistent bool) (link.Link, error) {
	if !link.ValidCode(k.Code) {
		return link.Link{}, link.ErrNotFound
	}
	item, err := s.db.Get(ctx, s.db.Links, linkitem.KeyOf(k), consistent)
	switch {
	case err != nil:
		return link.Link{}, err
	case item == nil:
		return link.Link{}, link.ErrNotFound
	}
	return linkitem.Unmarshal(item)
}

// GetMany implements link.ManyGetter.
func (s *linkReader) GetMany(ctx context.Context, keys []link.Key) ([]link.Link, error) {
	if len(keys) > link.MaxPage {
		return nil, fmt.Errorf("get %d links: %w", len(keys), link.ErrInvalid)
	}
	var found map[link.Key]link.Link
	err := s.db.ReadMany(ctx, func(ctx context.Context) (err error) {
		found, err = s.many(ctx, keys)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("get %d links: %w", len(keys), err)
	}
	links := make([]link.Link, len(keys))
	for i, k := range keys {
		links[i] = found[k]
		links[i].Tags = append([]string(nil), links[i].Tags...) // a key may come twice
	}
	return links, nil
}

// many reads links consistently; what is not there or damaged is left out.
func (s *linkReader) many(ctx context.Context, keys []link.Key) (map[link.Key]link.Link, error) {
	found := make(map[link.Key]link.Link, len(keys))
	err := s.db.BatchGet(ctx, s.db.Links, itemsOf(keys), func(item ddb.Item) error {
		l, err := linkitem.Unmarshal(item)
		if err != nil && !link.Absent(err) {
			return err
		}
		if err == nil {
			found[l.Key] = l
		}
		return nil
	})
	return found, err
}

// itemsOf are the keys of items, each once.
func itemsOf(keys []link.Key) (items []ddb.Item) {
	asked := make(map[link.Key]bool, len(keys))
	for _, k := range keys {
		if link.ValidCode(k.Code) && !asked[k] {
			asked[k] = true
			items = append(items, linkitem.KeyOf(k))
		}
	}
	return items
}

// Expired implements link.Store, by an index.
func (s *linkReader) Expired(ctx context.Context, after link.Cursor, before time.Time, n int) ([]link.Key, link.Cursor, error) {
	at, err := link.ParseNumberedKey(after)
	if err != nil {
		return nil, "", err
	}
	w := walk{index: tables.ByExpiry, hash: linkitem.OfExpiry, sort: linkitem.Expiry, hi: ddb.Sortable(before.UnixMilli() + 1), forward: true}
	w.lo = ddb.Sortable(at.N)
	if after != "" {
		w.lo = append(linkitem.TimedKey(at.N, at.Key), 0) // the next there can be
	}
	var keys []link.Key
	err = s.db.ReadMany(ctx, func(ctx context.Context) error {
		keys = nil
		m := s.merge(w, allShards(), n/linkitem.Shards+8)
		for len(keys) < n {
			item, more, err := m.next(ctx)
			if err != nil || !more {
				return err
			}
			ms, k := linkitem.ParseTimedKey(ddb.BytesOf(item, linkitem.Expiry))
			keys = append(keys, k)
			at = link.NumberedKey{N: ms, Key: k}
		}
		return nil
	})
	switch {
	case err != nil:
		return nil, "", fmt.Errorf("walk expired links: %w", err)
	case len(keys) == 0:
		return nil, after, nil
	}
	return keys, at.Cursor(), nil
}

// Chosen implements link.Store: shard by shard.
func (s *linkReader) Chosen(ctx context.Context, after link.Cursor, n int) (keys []link.Key, next link.Cursor, err error) {
	shard, from, err := parseChosen(after)
	if err != nil {
		return nil, "", err
	}
	err = s.db.ReadMany(ctx, func(ctx context.Context) error {
		for shard < linkitem.ChosenShards && len(keys) < n {
			items, more, err := s.db.Query(ctx, &dynamodb.QueryInput{
				TableName: &s.db.State, ConsistentRead: aws.Bool(true), Limit: aws.Int32(int32(n - len(keys))),
				KeyConditionExpression: aws.String("pk = :p AND sk > :s"), ProjectionExpression: aws.String("sk"),
				ExpressionAttributeValues: ddb.Item{":p": ddb.Text(linkitem.ChosenPartition(shard)), ":s": ddb.Bytes(from)},
			})
			if err != nil {
				return err
			}
			for _, item := range items {
				from = ddb.BytesOf(item, ddb.Sort)
				keys = append(keys, linkitem.ParseOrdered(from))
			}
			if more == nil {
				shard, from = shard+1, []byte{0}
			}
		}
		return nil
	})
	switch {
	case err != nil:
		return nil, "", fmt.Errorf("walk chosen codes: %w", err)
	case shard == linkitem.ChosenShards:
		return keys, "", nil
	}
	return keys, link.Cursor(strconv.Itoa(shard) + "/" + base64.RawURLEncoding.EncodeToString(from)), nil
}

func parseChosen(after link.Cursor) (shard int, from []byte, err error) {
	if after == "" {
		return 0, []byte{0}, nil
	}
	number, text, _ := strings.Cut(string(after), "/")
	shard, err = strconv.Atoi(number)
	from, decoded := base64.RawURLEncoding.DecodeString(text)
	if err != nil || decoded != nil || shard < 0 || shard >= linkitem.ChosenShards || len(from) == 0 {
		return 0, nil, link.BadCursor(after)
	}
	return shard, from, nil
}
