package ddb

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// What DynamoDB takes in one request.
const (
	MaxGet      = 100
	MaxPut      = 25
	MaxTransact = 100
)

// capacity is what a request is asked to say of its cost.
func (c *Client) capacity() types.ReturnConsumedCapacity {
	if c.meter == nil {
		return types.ReturnConsumedCapacityNone
	}
	return types.ReturnConsumedCapacityTotal
}

func (c *Client) spent(operation string, write bool, all ...types.ConsumedCapacity) {
	if c.meter == nil {
		return
	}
	for i := range all {
		u := Usage{Operation: operation, Table: aws.ToString(all[i].TableName)}
		if units := aws.ToFloat64(all[i].CapacityUnits); write {
			u.Writes = units
		} else {
			u.Reads = units
		}
		c.meter(u)
	}
}

func consumed(one *types.ConsumedCapacity) []types.ConsumedCapacity {
	if one == nil {
		return nil
	}
	return []types.ConsumedCapacity{*one}
}

// Get returns an item; nil = there is none. A consistent read costs twice as much. As each request that reads, it has the time
// of a call: a walk of many goes on for longer only while DynamoDB answers.
func (c *Client) Get(ctx context.Context, table string, key Item, consistent bool) (Item, error) {
	ctx, end := c.Bound(ctx)
	defer end()
	out, err := c.api.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: &table, Key: key, ConsistentRead: &consistent, ReturnConsumedCapacity: c.capacity(),
	})
	if err != nil {
		return nil, err
	}
	c.spent("GetItem", false, consumed(out.ConsumedCapacity)...)
	return out.Item, nil
}

// BatchGet reads the items of keys that differ, consistently, and calls found with those that are
// there, in any order.
func (c *Client) BatchGet(ctx context.Context, table string, keys []Item, found func(Item) error) error {
	for attempt := 0; len(keys) > 0; {
		n := min(len(keys), MaxGet)
		out, err := c.batchGet(ctx, &dynamodb.BatchGetItemInput{
			RequestItems:           map[string]types.KeysAndAttributes{table: {Keys: keys[:n:n], ConsistentRead: aws.Bool(true)}},
			ReturnConsumedCapacity: c.capacity(),
		})
		if err != nil {
			return err
		}
		c.spent("BatchGetItem", false, out.ConsumedCapacity...)
		for _, item := range out.Responses[table] {
			if err := found(item); err != nil {
				return err
			}
		}
		throttled := out.UnprocessedKeys[table].Keys
		if attempt, err = again(ctx, attempt, n, len(throttled)); err != nil {
			return err
		}
		keys = append(keys[n:len(keys):len(keys)], throttled...)
	}
	return nil
}

func (c *Client) batchGet(ctx context.Context, in *dynamodb.BatchGetItemInput) (*dynamodb.BatchGetItemOutput, error) {
	ctx, end := c.Bound(ctx)
	defer end()
	return c.api.BatchGetItem(ctx, in)
}

// again waits before the rest of a batch, in which what was throttled comes once more, behind the others.
// It returns how many requests in a row did nothing.
func again(ctx context.Context, attempt, sent, throttled int) (int, error) {
	if throttled == 0 {
		return 0, nil
	}
	if throttled < sent {
		attempt = 0
	}
	attempt++
	return attempt, backoff{}.sleep(ctx, attempt)
}

// Query returns a page of items, and the key to go on behind; nil = the end.
func (c *Client) Query(ctx context.Context, in *dynamodb.QueryInput) ([]Item, Item, error) {
	ctx, end := c.Bound(ctx)
	defer end()
	in.ReturnConsumedCapacity = c.capacity()
	out, err := c.api.Query(ctx, in)
	if err != nil {
		return nil, nil, err
	}
	c.spent("Query", false, consumed(out.ConsumedCapacity)...)
	return out.Items, out.LastEvaluatedKey, nil
}

// Put stores an item.
func (c *Client) Put(ctx context.Context, in *dynamodb.PutItemInput) error {
	in.ReturnConsumedCapacity = c.capacity()
	out, err := c.api.PutItem(ctx, in)
	if err == nil {
		c.spent("PutItem", true, consumed(out.ConsumedCapacity)...)
	}
	return err
}

// BatchPut stores items of keys that differ, in place of what is there, without a condition.
func (c *Client) BatchPut(ctx context.Context, table string, items []Item) error {
	all := make([]types.WriteRequest, len(items))
	for i := range items {
		all[i].PutRequest = &types.PutRequest{Item: items[i]}
	}
	for attempt := 0; len(all) > 0; {
		n := min(len(all), MaxPut)
		out, err := c.api.BatchWriteItem(ctx, &dynamodb.BatchWriteItemInput{
			RequestItems: map[string][]types.WriteRequest{table: all[:n:n]}, ReturnConsumedCapacity: c.capacity(),
		})
		if err != nil {
			return err
		}
		c.spent("BatchWriteItem", true, out.ConsumedCapacity...)
		throttled := out.UnprocessedItems[table]
		if attempt, err = again(ctx, attempt, n, len(throttled)); err != nil {
			return err
		}
		all = append(all[n:len(all):len(all)], throttled...)
	}
	return nil
}

// Scan returns a page of all items, and the key to go on behind; nil = the end.
func (c *Client) Scan(ctx context.Context, in *dynamodb.ScanInput) ([]Item, Item, error) {
	ctx, end := c.Bound(ctx)
	defer end()
	in.ReturnConsumedCapacity = c.capacity()
	out, err := c.api.Scan(ctx, in)
	if err != nil {
		return nil, nil, err
	}
	c.spent("Scan", false, consumed(out.ConsumedCapacity)...)
	return out.Items, out.LastEvaluatedKey, nil
}

// Update changes an item and returns what the request asked for.
func (c *Client) Update(ctx context.Context, in *dynamodb.UpdateItemInput) (Item, error) {
	in.ReturnConsumedCapacity = c.capacity()
	out, err := c.api.UpdateItem(ctx, in)
	if err != nil {
		return nil, err
	}
	c.spent("UpdateItem", true, consumed(out.ConsumedCapacity)...)
	return out.Attributes, nil
}

// UpdateOnce is Update whose request is sent again only where it is known to have had no effect: for
// a change that would have one twice.
func (c *Client) UpdateOnce(ctx context.Context, in *dynamodb.UpdateItemInput) (Item, error) {
	in.ReturnConsumedCapacity = c.capacity()
	out, err := c.api.UpdateItem(ctx, in, func(o *dynamodb.Options) { o.Retryer = onlyUndone{retryer(c.pace)} })
	if err != nil {
		return nil, err
	}
	c.spent("UpdateItem", true, consumed(out.ConsumedCapacity)...)
	return out.Attributes, nil
}

// onlyUndone sends again what had no effect.
type onlyUndone struct{ aws.Retryer }

func (r onlyUndone) IsErrorRetryable(err error) bool {
	return notDone(err) && r.Retryer.IsErrorRetryable(err)
}

// Delete removes an item, if there is one.
func (c *Client) Delete(ctx context.Context, table string, key Item) error {
	out, err := c.api.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: &table, Key: key, ReturnConsumedCapacity: c.capacity()})
	if err == nil {
		c.spent("DeleteItem", true, consumed(out.ConsumedCapacity)...)
	}
	return err
}

// DeleteIf removes an item where a condition holds.
func (c *Client) DeleteIf(ctx context.Context, table string, key Item, condition string, values Item) error {
	out, err := c.api.DeleteItem(ctx, &dynamodb.DeleteItemInput{
		TableName: &table, Key: key, ConditionExpression: &condition, ExpressionAttributeValues: values, ReturnConsumedCapacity: c.capacity(),
	})
	if _, refused := Conditions(err); refused {
		return nil
	}
	if err == nil {
		c.spent("DeleteItem", true, consumed(out.ConsumedCapacity)...)
	}
	return err
}

// Transact makes writes, all or none. The SDK gives them a token, by which a request that it sends
// again has no second effect.
func (c *Client) Transact(ctx context.Context, writes []types.TransactWriteItem) error {
	out, err := c.api.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: writes, ReturnConsumedCapacity: c.capacity()})
	if err == nil {
		c.spent("TransactWriteItems", true, out.ConsumedCapacity...)
	}
	return err
}
