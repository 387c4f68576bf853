package tables

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"curt/internal/backend/dynamodb/ddb"
)

// migrateTime bounds the wait for a new table.
const migrateTime = 5 * time.Minute

// Migrate creates the tables that are missing, and sets what protects them. It is idempotent, and
// returns what it did in lines. A table that is there and is another one is ddb.ErrUnfit.
func Migrate(ctx context.Context, db *ddb.Client, at ddb.Address) (done []string, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, migrateTime, errors.New("the tables did not become active in time"))
	defer cancel()
	for _, t := range All(at) {
		line, err := t.migrate(ctx, db, at)
		if err != nil {
			return done, fmt.Errorf("table %s: %w", t.Name, err)
		}
		done = append(done, line)
	}
	return done, nil
}

func (t *Table) migrate(ctx context.Context, db *ddb.Client, at ddb.Address) (line string, err error) {
	api := db.API()
	is, err := describe(ctx, db, t.Name)
	if err != nil {
		return "", err
	}
	line = "table " + t.Name + " exists"
	made := is == nil
	if made {
		line = "created table " + t.Name
		if _, err := api.CreateTable(ctx, t.request(at)); err != nil {
			if _, other := errors.AsType[*types.ResourceInUseException](err); !other { // else another migrate was first
				return "", fmt.Errorf("create: %w", err)
			}
		}
		if err := t.active(ctx, api); err != nil {
			return "", err
		}
		if is, err = describe(ctx, db, t.Name); err != nil {
			return "", err
		}
	}
	if err := t.compare(is); err != nil {
		return "", err
	}
	changed, err := t.protect(ctx, api, at, is)
	if err == nil {
		err = t.expire(ctx, api)
	}
	if err == nil {
		var on string
		if on, err = t.recoverable(ctx, api, at); on != "" && !made {
			changed += on
		}
	}
	return line + changed, err
}

// active waits until what was asked of the table is done.
func (t *Table) active(ctx context.Context, api *dynamodb.Client) error {
	waiter := dynamodb.NewTableExistsWaiter(api, func(o *dynamodb.TableExistsWaiterOptions) { o.MinDelay, o.MaxDelay = time.Millisecond, 5*time.Second })
	if err := waiter.Wait(ctx, &dynamodb.DescribeTableInput{TableName: &t.Name}, migrateTime); err != nil {
		return fmt.Errorf("wait until it is active: %w", err)
	}
	return nil
}

// protect gives a table the deletion protection of the address, and returns what it changed for the line that says so.
func (t *Table) protect(ctx context.Context, api *dynamodb.Client, at ddb.Address, is *types.TableDescription) (changed string, err error) {
	if aws.ToBool(is.DeletionProtectionEnabled) == at.Protection {
		return "", nil
	}
	_, err = api.UpdateTable(ctx, &dynamodb.UpdateTableInput{TableName: &t.Name, DeletionProtectionEnabled: &at.Protection})
	if err != nil {
		return "", fmt.Errorf("set its deletion protection: %w", err)
	}
	if err := t.active(ctx, api); err != nil {
		return "", err
	}
	if at.Protection {
		return "; turned its deletion protection on", nil
	}
	return "; turned its deletion protection off, as protection=off says", nil
}

// describe returns a table; nil = there is none.
func describe(ctx context.Context, db *ddb.Client, name string) (is *types.TableDescription, err error) {
	err = db.Manage(ctx, func(ctx context.Context, api *dynamodb.Client) error {
		out, err := api.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &name})
		if _, none := errors.AsType[*types.ResourceNotFoundException](err); none {
			return nil
		}
		if err != nil {
			return fmt.Errorf("describe: %w", err)
		}
		is = out.Table
		return nil
	})
	return is, err
}

// request is what creates the table.
func (t *Table) request(at ddb.Address) *dynamodb.CreateTableInput {
	in := &dynamodb.CreateTableInput{
		TableName: &t.Name, BillingMode: types.BillingModePayPerRequest, KeySchema: schema(t.Hash, t.Sort),
		DeletionProtectionEnabled: aws.Bool(at.Protection),
	}
	for _, c := range t.columns() {
		in.AttributeDefinitions = append(in.AttributeDefinitions, types.AttributeDefinition{AttributeName: aws.String(c.Name), AttributeType: c.Type})
	}
	for i := range t.Indexes {
		x := &t.Indexes[i]
		in.GlobalSecondaryIndexes = append(in.GlobalSecondaryIndexes, types.GlobalSecondaryIndex{
			IndexName: aws.String(x.Name), KeySchema: schema(x.Hash, x.Sort), Projection: &types.Projection{ProjectionType: x.projection()},
		})
	}
	for _, name := range slices.Sorted(maps.Keys(at.Tags)) {
		in.Tags = append(in.Tags, types.Tag{Key: aws.String(name), Value: aws.String(at.Tags[name])})
	}
	return in
}

func schema(hash, sort Column) []types.KeySchemaElement {
	all := []types.KeySchemaElement{{AttributeName: aws.String(hash.Name), KeyType: types.KeyTypeHash}}
	if sort.Name != "" {
		all = append(all, types.KeySchemaElement{AttributeName: aws.String(sort.Name), KeyType: types.KeyTypeRange})
	}
	return all
}

// compare returns ddb.ErrUnfit for a table that is another one.
func (t *Table) compare(is *types.TableDescription) error {
	fail := func(what string) error { return fmt.Errorf("%w: %s: %s", ddb.ErrUnfit, t.Name, what) }
	if !sameSchema(is.KeySchema, schema(t.Hash, t.Sort)) {
		return fail("it has a different key; name a new table")
	}
	for _, c := range t.columns() {
		if !slices.ContainsFunc(is.AttributeDefinitions, func(d types.AttributeDefinition) bool {
			return aws.ToString(d.AttributeName) == c.Name && d.AttributeType == c.Type
		}) {
			return fail("the key attribute " + c.Name + " is missing or of another type")
		}
	}
	for i := range t.Indexes {
		x := &t.Indexes[i]
		at := slices.IndexFunc(is.GlobalSecondaryIndexes, func(d types.GlobalSecondaryIndexDescription) bool { return aws.ToString(d.IndexName) == x.Name })
		switch {
		case at < 0:
			return fail("the index " + x.Name + " is missing")
		case !sameSchema(is.GlobalSecondaryIndexes[at].KeySchema, schema(x.Hash, x.Sort)),
			is.GlobalSecondaryIndexes[at].Projection.ProjectionType != x.projection():
			return fail("the index " + x.Name + " has a different key or projection")
		}
	}
	return nil
}

func sameSchema(a, b []types.KeySchemaElement) bool {
	return slices.EqualFunc(a, b, func(a, b types.KeySchemaElement) bool {
		return aws.ToString(a.AttributeName) == aws.ToString(b.AttributeName) && a.KeyType == b.KeyType
	})
}

// expire sets the time to live, once: DynamoDB refuses what is set already.
func (t *Table) expire(ctx context.Context, api *dynamodb.Client) error {
	if t.TTL == "" {
		return nil
	}
	out, err := api.DescribeTimeToLive(ctx, &dynamodb.DescribeTimeToLiveInput{TableName: &t.Name})
	if err != nil {
		return fmt.Errorf("read the time to live: %w", err)
	}
	if d := out.TimeToLiveDescription; d != nil && (d.TimeToLiveStatus == types.TimeToLiveStatusEnabled || d.TimeToLiveStatus == types.TimeToLiveStatusEnabling) {
		if aws.ToString(d.AttributeName) != t.TTL {
			return fmt.Errorf("%w: items expire by %s, not by %s", ddb.ErrUnfit, aws.ToString(d.AttributeName), t.TTL)
		}
		return nil
	}
	_, err = api.UpdateTimeToLive(ctx, &dynamodb.UpdateTimeToLiveInput{
		TableName: &t.Name, TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: &t.TTL, Enabled: aws.Bool(true)},
	})
	if err != nil {
		return fmt.Errorf("set the time to live: %w", err)
	}
	return nil
}

// recoverable turns backups of every second on where they are off, and returns what it changed for the
// line that says so. What runs on one machine has none.
func (t *Table) recoverable(ctx context.Context, api *dynamodb.Client, at ddb.Address) (changed string, err error) {
	unknown := func(err error) bool {
		is, ok := errors.AsType[smithy.APIError](err)
		return ok && at.Endpoint != "" && is.ErrorCode() == "UnknownOperationException"
	}
	is, err := api.DescribeContinuousBackups(ctx, &dynamodb.DescribeContinuousBackupsInput{TableName: &t.Name})
	if unknown(err) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read whether point-in-time recovery is on: %w", err)
	}
	if b := is.ContinuousBackupsDescription; b != nil && b.PointInTimeRecoveryDescription != nil &&
		b.PointInTimeRecoveryDescription.PointInTimeRecoveryStatus == types.PointInTimeRecoveryStatusEnabled {
		return "", nil
	}
	_, err = api.UpdateContinuousBackups(ctx, &dynamodb.UpdateContinuousBackupsInput{
		TableName: &t.Name, PointInTimeRecoverySpecification: &types.PointInTimeRecoverySpecification{PointInTimeRecoveryEnabled: aws.Bool(true)},
	})
	if unknown(err) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("turn point-in-time recovery on: %w", err)
	}
	return "; turned its point-in-time recovery on", nil
}
