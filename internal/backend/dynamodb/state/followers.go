package state

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"curt/internal/backend/dynamodb/ddb"
	"curt/internal/feed"
	"curt/internal/link"
)

// Followers keeps where those stand of whom a fleet has one each. It implements feed.Positions for
// every log of the table.
type Followers struct{ db *ddb.Client }

var _ feed.Positions[link.Position] = Followers{}

// NewFollowers returns those of a table.
func NewFollowers(db *ddb.Client) Followers { return Followers{db} }

func followerKey(name string) ddb.Item { return ddb.StateKey("follower#"+name, nil) }

// FollowerPosition implements feed.Positions.
func (s Followers) FollowerPosition(ctx context.Context, name string) (at link.Position, begun bool, err error) {
	err = s.db.Read(ctx, func(ctx context.Context) error {
		item, err := s.db.Get(ctx, s.db.State, followerKey(name), true)
		at, begun = link.Position(ddb.TextOf(item, "position")), item != nil
		return err
	})
	if err != nil {
		return "", false, fmt.Errorf("position of %s: %w", name, err)
	}
	return at, begun, nil
}

// MoveFollower implements feed.Positions.
func (s Followers) MoveFollower(ctx context.Context, name string, fence uint64, to link.Position) error {
	err := s.db.Write(ctx, func(ctx context.Context) error {
		item := followerKey(name)
		item["fence"], item["position"] = ddb.Uint(fence), ddb.Text(string(to))
		err := s.db.Put(ctx, &dynamodb.PutItemInput{
			TableName: &s.db.State, Item: item, ConditionExpression: aws.String("attribute_not_exists(pk) OR fence <= :f"),
			ExpressionAttributeValues: ddb.Item{":f": ddb.Uint(fence)},
		})
		if _, refused := ddb.Conditions(err); refused {
			return link.ErrConflict
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("move %s to %s under %d: %w", name, to, fence, err)
	}
	return nil
}

// ForgetFollower implements feed.Positions.
func (s Followers) ForgetFollower(ctx context.Context, name string) error {
	err := s.db.Write(ctx, func(ctx context.Context) error { return s.db.Delete(ctx, s.db.State, followerKey(name)) })
	if err != nil {
		return fmt.Errorf("forget %s: %w", name, err)
	}
	return nil
}
