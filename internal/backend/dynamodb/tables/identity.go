package tables

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"curt/internal/backend/dynamodb/ddb"
)

// ErrRestored says that the tables were restored from a backup, and that what they count is older
// than what servers have given away.
var ErrRestored = fmt.Errorf("%w: they were restored from a backup; run curt migrate --restored once, before any server", ddb.ErrUnfit)

// attrTables of the identity are the ids of both tables, which DynamoDB gives to each new one: also
// to one that a backup is restored to, with the identity of before among its items.
const attrTables = "tables"

func identityKey() ddb.Item { return ddb.StateKey("identity", nil) }

// identityOf stands for tables. DynamoDB Local gives them no ids, but times.
func identityOf(all []*types.TableDescription) string {
	sum := sha256.New()
	for _, t := range all {
		_, _ = fmt.Fprintf(sum, "%s %s %d\n", aws.ToString(t.TableId), aws.ToString(t.TableArn), aws.ToTime(t.CreationDateTime).UnixMilli()) // a hash takes all
	}
	return hex.EncodeToString(sum.Sum(nil)[:16])
}

// openTime bounds an Open.
const openTime = 20 * time.Second

// Open connects to the tables at an address for who is no server, and changes nothing there. Errors are those of
// Inspect.
func Open(ctx context.Context, at ddb.Address, c ddb.Config) (*ddb.Client, error) {
	db, err := ddb.Open(ctx, at, c)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, openTime, errors.New("DynamoDB did not answer within 20 s"))
	defer cancel()
	if _, err := Inspect(ctx, db, at); err != nil {
		db.Close()
		return nil, err
	}
	return db, nil
}

// Inspect returns the identity of the tables for good, or ddb.ErrUnfit for what no server can work
// with: missing tables, others, and ErrRestored.
func Inspect(ctx context.Context, db *ddb.Client, at ddb.Address) (identity string, err error) {
	var all []*types.TableDescription
	for _, t := range All(at) {
		is, err := describe(ctx, db, t.Name)
		switch {
		case err != nil:
			return "", fmt.Errorf("table %s: %w", t.Name, err)
		case is == nil:
			return "", fmt.Errorf("%w: table %s is missing; run curt migrate", ddb.ErrUnfit, t.Name)
		}
		if err := t.compare(is); err != nil {
			return "", err
		}
		all = append(all, is)
	}
	identity = identityOf(all)
	var stored ddb.Item
	err = db.Manage(ctx, func(ctx context.Context, _ *dynamodb.Client) (err error) {
		stored, err = db.Get(ctx, at.State(), identityKey(), true)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("read the identity of the tables: %w", err)
	}
	switch ddb.TextOf(stored, attrTables) {
	case "":
		return "", fmt.Errorf("%w: table %s was never migrated; run curt migrate", ddb.ErrUnfit, at.State())
	case identity:
		return identity, nil
	}
	return "", ErrRestored
}

// Identify writes down which tables these are: those that are new, and with restored = true also those
// that were restored, when all that their age matters to is done.
func Identify(ctx context.Context, db *ddb.Client, at ddb.Address, restored bool) error {
	var all []*types.TableDescription
	for _, t := range All(at) {
		is, err := describe(ctx, db, t.Name)
		if err != nil || is == nil {
			return errors.Join(err, fmt.Errorf("table %s is missing", t.Name))
		}
		all = append(all, is)
	}
	if !restored {
		if err := fresh(ctx, db, at); err != nil {
			return err
		}
	}
	item := identityKey()
	item[attrTables] = ddb.Text(identityOf(all))
	in := &dynamodb.PutItemInput{TableName: aws.String(at.State()), Item: item}
	if !restored {
		in.ConditionExpression = aws.String("attribute_not_exists(pk)")
	}
	err := db.Put(ctx, in)
	if _, there := ddb.Conditions(err); there {
		return nil
	}
	return err
}

// fresh returns ErrRestored for tables without identity that have links: only one of both was restored,
// or the other one was deleted.
func fresh(ctx context.Context, db *ddb.Client, at ddb.Address) error {
	stored, err := db.Get(ctx, at.State(), identityKey(), true)
	if err != nil || stored != nil {
		return err
	}
	some, err := db.API().Scan(ctx, &dynamodb.ScanInput{TableName: aws.String(at.Table), Limit: aws.Int32(1)})
	if err != nil {
		return fmt.Errorf("check for links: %w", err)
	}
	if some.Count > 0 {
		return fmt.Errorf("%w: table %s has links, but %s is new; restore both to the same time", ddb.ErrUnfit, at.Table, at.State())
	}
	return nil
}

// Alive returns nil while DynamoDB answers.
func Alive(ctx context.Context, db *ddb.Client) error {
	_, err := db.Get(ctx, db.State, identityKey(), false)
	return err
}

// RestoredTo returns the time that a table was restored to; zero = nobody knows.
func RestoredTo(ctx context.Context, db *ddb.Client, at ddb.Address) (time.Time, error) {
	is, err := describe(ctx, db, at.State())
	if err != nil || is == nil || is.RestoreSummary == nil {
		return time.Time{}, err
	}
	return aws.ToTime(is.RestoreSummary.RestoreDateTime), nil
}
