package state

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"curt/internal/backend/dynamodb/ddb"
	"curt/internal/clicks/ship"
	"curt/internal/link"
)

// Senders are the servers that may hold clicks which nobody else has. A server that has begun to
// take clicks MUST have been enlisted before, or whoever shows statistics does not wait for it.
type Senders struct{ db *ddb.Client }

// NewSenders returns those of a table.
func NewSenders(db *ddb.Client) Senders { return Senders{db} }

const (
	senders       = "senders"
	attrHost      = "host"
	attrInstance  = "life" // "instance" is a reserved word of expressions
	attrBegan     = "began"
	attrForgotten = "forgotten"
)

func senderKey(folder string) ddb.Item { return ddb.StateKey(senders, []byte(folder)) }

func senderOf(item ddb.Item) ship.Sender {
	return ship.Sender{
		Folder: string(ddb.BytesOf(item, ddb.Sort)), Host: ddb.TextOf(item, attrHost), Instance: ddb.UintOf(item, attrInstance),
		Began: time.UnixMilli(ddb.IntOf(item, attrBegan)).UTC(), Forgotten: link.TimeOf(ddb.IntOf(item, attrForgotten)),
	}
}

// Enlist writes down a sender, in the place of the one that its folder had. It may be repeated: who
// begins again in the same life changes nothing but an earlier beginning, and what an operator said of
// the life before says nothing of the next.
func (s Senders) Enlist(ctx context.Context, one ship.Sender) error {
	err := s.db.Write(ctx, func(ctx context.Context) error {
		for {
			stored, err := s.db.Get(ctx, s.db.State, senderKey(one.Folder), true)
			if err != nil {
				return err
			}
			item, before := senderKey(one.Folder), senderOf(stored)
			began := max(0, one.Began.UnixMilli())
			if stored != nil && before.Instance == one.Instance {
				if began >= before.Began.UnixMilli() {
					return nil
				}
				if !before.Forgotten.IsZero() {
					item[attrForgotten] = stored[attrForgotten]
				}
			}
			item[attrHost], item[attrInstance], item[attrBegan] = ddb.Text(one.Host), ddb.Uint(one.Instance), ddb.Int(began)
			in := &dynamodb.PutItemInput{TableName: &s.db.State, Item: item, ConditionExpression: aws.String("attribute_not_exists(pk)")}
			if stored != nil {
				in.ConditionExpression = aws.String("life = :i AND began = :b")
				in.ExpressionAttributeValues = ddb.Item{":i": stored[attrInstance], ":b": stored[attrBegan]}
			}
			err = s.db.Put(ctx, in)
			if _, refused := ddb.Conditions(err); !refused {
				return err
			}
		}
	})
	if err != nil {
		return fmt.Errorf("register sender %s: %w", one.Folder, err)
	}
	return nil
}

// All returns the senders by the names of their folders. Whoever is not among them takes its first
// click later than this was asked.
func (s Senders) All(ctx context.Context) (all []ship.Sender, err error) {
	err = s.db.Read(ctx, func(ctx context.Context) error {
		items, err := partition(ctx, s.db, senders, nil)
		all = nil
		for _, item := range items {
			all = append(all, senderOf(item))
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list senders: %w", err)
	}
	slices.SortFunc(all, func(a, b ship.Sender) int { return cmp.Compare(a.Folder, b.Folder) })
	return all, nil
}

// Dismiss removes a sender all of whose clicks are counted, unless its folder lives again.
func (s Senders) Dismiss(ctx context.Context, one ship.Sender) error {
	err := s.db.Write(ctx, func(ctx context.Context) error {
		return s.db.DeleteIf(ctx, s.db.State, senderKey(one.Folder), "life = :i", ddb.Item{":i": ddb.Uint(one.Instance)})
	})
	if err != nil {
		return fmt.Errorf("mark sender %s complete: %w", one.Folder, err)
	}
	return nil
}

// Forget notes that an operator waits for no more clicks of a folder; false = there is no such
// sender. It holds until the sender is heard of again, or begins another life.
func (s Senders) Forget(ctx context.Context, folder string) (found bool, err error) {
	err = s.db.Write(ctx, func(ctx context.Context) error {
		_, err := s.db.Update(ctx, &dynamodb.UpdateItemInput{
			TableName: &s.db.State, Key: senderKey(folder), UpdateExpression: aws.String("SET forgotten = :n"),
			ConditionExpression: aws.String("attribute_exists(pk)"), ExpressionAttributeValues: ddb.Item{":n": ddb.Int(time.Now().UnixMilli())},
		})
		_, refused := ddb.Conditions(err)
		if found = !refused; refused {
			return nil
		}
		return err
	})
	if err != nil {
		return false, fmt.Errorf("forget sender %s: %w", folder, err)
	}
	return found, nil
}
