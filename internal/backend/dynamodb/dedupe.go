package dynamodb

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"curt/internal/backend/dynamodb/ddb"
	"curt/internal/backend/dynamodb/linkitem"
	"curt/internal/backend/dynamodb/tables"
	"curt/internal/link"
)

// The item of dedupe of a workspace and an answer names the link that was created for it last. It is
// stored with that link in one transaction, and replaced only under the condition that it names the
// link that was found to be no equivalent any more: so of many callers exactly one creates.
const attrHolder = "holder"

// mostVerified is how many links of an index are read again for one question.
const mostVerified = 50

// FindSame implements link.Deduper.
func (s *linkReader) FindSame(ctx context.Context, wanted link.Link, now time.Time) (same link.Link, err error) {
	err = s.db.Read(ctx, func(ctx context.Context) error {
		candidates, err := s.twins(ctx, &wanted, now)
		if err != nil {
			return err
		}
		if holder, err := s.holder(ctx, &wanted); err != nil {
			return err
		} else if holder.Code != "" {
			candidates = append(candidates, holder)
		}
		same, _, err = s.verify(ctx, candidates, &wanted, now)
		return err
	})
	if err != nil {
		return link.Link{}, fmt.Errorf("find the same link: %w", err)
	}
	return same, nil
}

// twins returns the keys of links that an index shows as equivalent, oldest first.
func (s *linkReader) twins(ctx context.Context, wanted *link.Link, now time.Time) (keys []link.Key, err error) {
	in := &dynamodb.QueryInput{
		TableName: &s.db.Links, IndexName: aws.String(tables.BySame), Limit: aws.Int32(100),
		KeyConditionExpression: aws.String("of_same = :s"), ExpressionAttributeValues: ddb.Item{":s": ddb.Text(linkitem.SameAs(wanted))},
	}
	for looked := 0; looked < link.MaxTwins; {
		items, next, err := s.db.Query(ctx, in)
		if err != nil {
			return nil, err
		}
		for _, item := range items {
			if l, err := linkitem.Unmarshal(item); err == nil && l.Equivalent(*wanted, now) && len(keys) < mostVerified {
				keys = append(keys, l.Key)
			}
		}
		looked += len(items)
		if in.ExclusiveStartKey = next; next == nil || len(keys) > 0 {
			break
		}
	}
	return keys, nil
}

// holder returns the key that the item of dedupe names; no code = there is none.
func (s *linkReader) holder(ctx context.Context, wanted *link.Link) (link.Key, error) {
	twin, err := linkitem.Twin(wanted)
	if err != nil {
		return link.Key{}, err
	}
	item, err := s.db.Get(ctx, s.db.State, ddb.StateKey(twin, nil), true)
	if err != nil || item == nil {
		return link.Key{}, err
	}
	return linkitem.ParseOrdered(ddb.BytesOf(item, attrHolder)), nil
}

// verify reads links as they are now, and returns the oldest that is equivalent; ErrNotFound for none.
func (s *linkReader) verify(ctx context.Context, keys []link.Key, wanted *link.Link, now time.Time) (same link.Link, found map[link.Key]link.Link, err error) {
	if len(keys) == 0 {
		return link.Link{}, nil, link.ErrNotFound
	}
	if found, err = s.many(ctx, keys); err != nil {
		return link.Link{}, nil, err
	}
	for _, l := range found {
		if l.Equivalent(*wanted, now) && (same.Version == 0 || bytes.Compare(linkitem.AgeOf(&l), linkitem.AgeOf(&same)) < 0) {
			same = l
		}
	}
	if same.Version == 0 {
		err = link.ErrNotFound
	}
	return same, found, err
}

// FindOrCreate implements link.Deduper. A link that is found costs a query of an index and a read, one
// that is created the query and a transaction.
func (s *creator) FindOrCreate(ctx context.Context, l link.Link, now time.Time) (stored link.Link, found bool, err error) {
	if err := s.db.Ready(ctx); err != nil {
		return link.Link{}, false, fmt.Errorf("find or create: %w", err)
	}
	if err := l.Validate(); err != nil {
		return link.Link{}, false, fmt.Errorf("find or create: %w", err)
	}
	err = s.gate.WriteMany(ctx, func(ctx context.Context) error {
		stored, found, err = s.findOrCreate(ctx, l, now, nil)
		return err
	})
	if err != nil {
		return link.Link{}, false, fmt.Errorf("find or create %s: %w", l.Key, err)
	}
	return stored, found, nil
}

// flight is a question for an equivalent link that is under way in this process; those who come with
// the same question look at its answer first.
type flight struct {
	done chan struct{}
	key  link.Key // once done; no code = it failed
}

// findOrCreate is FindOrCreate of a valid link; made are links that an index may not show yet.
func (s *creator) findOrCreate(ctx context.Context, l link.Link, now time.Time, made []link.Link) (stored link.Link, found bool, err error) {
	twin, err := linkitem.Twin(&l)
	if err != nil {
		return link.Link{}, false, err
	}
	mine, before := s.board(twin)
	if mine == nil {
		select {
		case <-before.done:
		case <-ctx.Done():
			return link.Link{}, false, context.Cause(ctx)
		}
		if before.key.Code != "" {
			stored, found, err = s.own(ctx, &l, []link.Key{before.key}, now)
			if !errors.Is(err, link.ErrNotFound) {
				return stored, found, err
			}
		}
		return s.search(ctx, l, now, made, twin)
	}
	defer func() {
		if err == nil {
			mine.key = stored.Key
		}
		s.mu.Lock()
		delete(s.flights, twin)
		s.mu.Unlock()
		close(mine.done)
	}()
	return s.search(ctx, l, now, made, twin)
}

// board begins a flight, or returns the one that is under way.
func (s *creator) board(twin string) (mine, before *flight) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f := s.flights[twin]; f != nil {
		return nil, f
	}
	mine = &flight{done: make(chan struct{})}
	s.flights[twin] = mine
	return mine, nil
}

// own returns the caller's own link where an earlier call made it, else the oldest equivalent one of
// keys; ErrNotFound for none of both.
func (s *creator) own(ctx context.Context, l *link.Link, keys []link.Key, now time.Time) (stored link.Link, found bool, err error) {
	same, all, err := s.verify(ctx, append(slices.Clone(keys), l.Key), l, now)
	if there, ok := all[l.Key]; ok && there.ID == l.ID {
		return there, false, nil
	}
	return same, err == nil, err
}

func (s *creator) search(ctx context.Context, l link.Link, now time.Time, made []link.Link, twin string) (stored link.Link, found bool, err error) {
	candidates, err := s.twins(ctx, &l, now)
	if err != nil {
		return link.Link{}, false, err
	}
	for i := range made {
		if made[i].Equivalent(l, now) {
			candidates = append(candidates, made[i].Key)
		}
	}
	if len(candidates) > 0 {
		if stored, found, err = s.own(ctx, &l, candidates, now); !errors.Is(err, link.ErrNotFound) {
			return stored, found, err
		}
	}
	if l.MaxClicks > 0 || l.Status != link.Active || l.Safety != link.Clean { // nobody may be given it
		twin = ""
	}
	return s.claim(ctx, l, now, twin)
}

// claimed is an item of dedupe as a create wants to find it.
type claimed struct {
	twin   string // its name; "" = none
	holder []byte // that is no equivalent any more; nil = there is no item
}

// claim creates a link with its item of dedupe, or finds the one that it names.
func (s *creator) claim(ctx context.Context, l link.Link, now time.Time, twin string) (stored link.Link, found bool, err error) {
	from := claimed{twin: twin}
	for {
		err = ddb.Retry(ctx, func() (err error) {
			stored, err = s.create(ctx, l, from)
			return err
		})
		failed, refused := ddb.Conditions(err)
		if !refused {
			return stored, false, err
		}
		holder := ddb.BytesOf(failed[len(failed)-1].Item, attrHolder) // the code may be taken, too
		if stored, found, err = s.own(ctx, &l, []link.Key{linkitem.ParseOrdered(holder)}, now); !errors.Is(err, link.ErrNotFound) {
			return stored, found, err
		}
		if ctx.Err() != nil {
			return link.Link{}, false, context.Cause(ctx)
		}
		from.holder = holder
	}
}

// standFor is the write of the item of dedupe.
func (s *creator) standFor(l *link.Link, from claimed) types.TransactWriteItem {
	item := ddb.StateKey(from.twin, nil)
	item[attrHolder] = ddb.Bytes(linkitem.Ordered(l.Key))
	if !l.Expires.IsZero() { // nobody is given it then
		item[ddb.TTL] = ddb.Int(l.Expires.Add(24 * time.Hour).Unix())
	}
	put := &types.Put{
		TableName: &s.db.State, Item: item, ConditionExpression: aws.String("attribute_not_exists(pk)"),
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
	if from.holder != nil {
		put.ConditionExpression = aws.String("attribute_not_exists(pk) OR holder = :h")
		put.ExpressionAttributeValues = ddb.Item{":h": ddb.Bytes(from.holder)}
	}
	return types.TransactWriteItem{Put: put}
}
