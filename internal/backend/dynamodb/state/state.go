// Package state keeps in DynamoDB what servers over one table of links share beside the links: leases
// of ids, the key of codes, keys of visitor tags, positions of followers, and senders of clicks. Each is
// an item of the table of state. Read leases.go first.
package state

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"curt/internal/backend/dynamodb/ddb"
)

// attrValue holds what an item is for.
const attrValue = "value"

// putNew stores an item unless there is one.
func putNew(ctx context.Context, db *ddb.Client, item ddb.Item) error {
	err := db.Put(ctx, &dynamodb.PutItemInput{TableName: &db.State, Item: item, ConditionExpression: aws.String("attribute_not_exists(pk)")})
	if _, refused := ddb.Conditions(err); refused {
		return nil
	}
	return err
}

// partition returns all items of a partition whose sort keys lie below one; nil = all.
func partition(ctx context.Context, db *ddb.Client, name string, below []byte) (all []ddb.Item, err error) {
	in := &dynamodb.QueryInput{
		TableName: &db.State, ConsistentRead: aws.Bool(true), KeyConditionExpression: aws.String("pk = :p"),
		ExpressionAttributeValues: ddb.Item{":p": ddb.Text(name)},
	}
	if below != nil {
		in.KeyConditionExpression = aws.String("pk = :p AND sk < :b")
		in.ExpressionAttributeValues[":b"] = ddb.Bytes(below)
	}
	for {
		some, next, err := db.Query(ctx, in)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
		if in.ExclusiveStartKey = next; next == nil {
			return all, nil
		}
	}
}
