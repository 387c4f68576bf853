package state

import (
	"context"
	"crypto/rand"
	"fmt"
	"math"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"curt/internal/backend/dynamodb/ddb"
	"curt/internal/codegen"
	"curt/internal/link"
)

// Leases are what servers have been given, each once: ids of codes, the key that makes codes of them,
// and keys of visitor tags. It implements codegen.Leaser.
type Leases struct {
	db      *ddb.Client
	codeKey [32]byte
}

var _ codegen.Leaser = (*Leases)(nil)

// NewLeases returns those of a table, for Begin.
func NewLeases(db *ddb.Client) *Leases { return &Leases{db: db} }

// attrNext is the lowest id of a counter that was never leased. An attribute "next" would be a
// reserved word of expressions.
const attrNext = "upcoming"

const (
	leasePrefix = "lease#"
	codeKeyItem = "code-key"
)

func counterKey(counter string) ddb.Item { return ddb.StateKey(leasePrefix+counter, nil) }

// Begin makes the key of codes at the first start, and reads it.
func (s *Leases) Begin(ctx context.Context) error {
	key := ddb.StateKey(codeKeyItem, nil)
	err := s.db.Write(ctx, func(ctx context.Context) error {
		stored, err := s.db.Get(ctx, s.db.State, key, true)
		if err != nil {
			return err
		}
		if stored == nil {
			fresh := make([]byte, len(s.codeKey))
			_, _ = rand.Read(fresh) // never fails: crypto/rand ends the process instead
			item := ddb.StateKey(codeKeyItem, nil)
			item[attrValue] = ddb.Bytes(fresh)
			if err := putNew(ctx, s.db, item); err != nil {
				return err
			}
			if stored, err = s.db.Get(ctx, s.db.State, key, true); err != nil {
				return err
			}
		}
		if text := ddb.BytesOf(stored, attrValue); copy(s.codeKey[:], text) != len(text) || len(text) != len(s.codeKey) {
			return fmt.Errorf("%w: the code key has %d bytes, expected %d", ddb.ErrUnfit, len(text), len(s.codeKey))
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("read the code key: %w", err)
	}
	return nil
}

// CodeKey returns the key of the permutation, which was made at the first start. It is a secret:
// whoever has it can tell the order of links from their codes.
func (s *Leases) CodeKey(ctx context.Context) ([32]byte, error) {
	if ctx.Err() != nil {
		return [32]byte{}, fmt.Errorf("read the code key: %w", context.Cause(ctx))
	}
	return s.codeKey, nil
}

// Lease implements codegen.Leaser. A request that is sent again may take ids twice: then some belong to
// nobody.
func (s *Leases) Lease(ctx context.Context, counter string, n uint64) (uint64, error) {
	if n == 0 || n > math.MaxInt64 {
		return 0, fmt.Errorf("lease %d ids from %s: %w", n, counter, link.ErrInvalid)
	}
	var next uint64
	err := s.db.Write(ctx, func(ctx context.Context) error {
		got, err := s.db.Update(ctx, &dynamodb.UpdateItemInput{
			TableName: &s.db.State, Key: counterKey(counter), ReturnValues: types.ReturnValueUpdatedNew,
			UpdateExpression:          aws.String("ADD upcoming :n"),
			ConditionExpression:       aws.String("attribute_not_exists(upcoming) OR upcoming <= :most"),
			ExpressionAttributeValues: ddb.Item{":n": ddb.Uint(n), ":most": ddb.Uint(math.MaxInt64 - n)},
		})
		if _, refused := ddb.Conditions(err); refused {
			return fmt.Errorf("no %d ids are left: %w", n, link.ErrInvalid)
		}
		next = ddb.UintOf(got, attrNext)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("lease from %s: %w", counter, err)
	}
	return next - n, nil
}

// Leased implements codegen.Leaser.
func (s *Leases) Leased(ctx context.Context, counter string) (next uint64, err error) {
	err = s.db.Read(ctx, func(ctx context.Context) error {
		item, err := s.db.Get(ctx, s.db.State, counterKey(counter), true)
		next = ddb.UintOf(item, attrNext)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("read the high-water mark of %s: %w", counter, err)
	}
	return next, nil
}

// Skip implements codegen.Leaser.
func (s *Leases) Skip(ctx context.Context, counter string, n uint64) error {
	_, err := s.Lease(ctx, counter, n)
	return err
}

// Raise implements codegen.Leaser. A counter without an item is at 0.
func (s *Leases) Raise(ctx context.Context, counter string, from, to uint64) error {
	if to <= from || to > math.MaxInt64 {
		return fmt.Errorf("raise %s to %d: %w", counter, to, link.ErrInvalid)
	}
	condition := "upcoming = :from"
	if from == 0 {
		condition += " OR attribute_not_exists(upcoming)"
	}
	err := s.db.Write(ctx, func(ctx context.Context) error {
		_, err := s.db.UpdateOnce(ctx, &dynamodb.UpdateItemInput{
			TableName: &s.db.State, Key: counterKey(counter), UpdateExpression: aws.String("SET upcoming = :to"),
			ConditionExpression: &condition, ExpressionAttributeValues: ddb.Item{":from": ddb.Uint(from), ":to": ddb.Uint(to)},
		})
		if _, refused := ddb.Conditions(err); refused {
			return link.ErrConflict
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("raise %s from %d: %w", counter, from, err)
	}
	return nil
}

// day is a UTC day by its number.
const day = 24 * time.Hour

const dayKeys = "days"

// DayKey returns the key of visitor tags for the UTC day that holds a time, the same to all processes.
// It makes the key when it is asked for first, and deletes the keys of earlier days that are over.
// Backups have them as long as those are kept.
func (s *Leases) DayKey(ctx context.Context, at time.Time) (key [16]byte, err error) {
	number := at.UTC().Unix() / int64(day.Seconds())
	err = s.db.Write(ctx, func(ctx context.Context) error {
		of := ddb.StateKey(dayKeys, ddb.Sortable(number))
		stored, err := s.db.Get(ctx, s.db.State, of, true)
		if err != nil {
			return err
		}
		if stored == nil {
			var fresh [16]byte
			_, _ = rand.Read(fresh[:]) // never fails
			of[attrValue] = ddb.Bytes(fresh[:])
			if err := putNew(ctx, s.db, of); err != nil {
				return err
			}
			if stored, err = s.db.Get(ctx, s.db.State, ddb.StateKey(dayKeys, ddb.Sortable(number)), true); err != nil {
				return err
			}
		}
		if copy(key[:], ddb.BytesOf(stored, attrValue)) != len(key) {
			return fmt.Errorf("a key of %d bytes", len(ddb.BytesOf(stored, attrValue)))
		}
		return s.dropDays(ctx, min(number, time.Now().UTC().Unix()/int64(day.Seconds())))
	})
	if err != nil {
		return [16]byte{}, fmt.Errorf("key of visitor tags for %s: %w", at.UTC().Format(time.DateOnly), err)
	}
	return key, nil
}

// dropDays deletes the keys of days before one.
func (s *Leases) dropDays(ctx context.Context, before int64) error {
	old, err := partition(ctx, s.db, dayKeys, ddb.Sortable(before))
	if err != nil {
		return err
	}
	for _, item := range old {
		if err := s.db.Delete(ctx, s.db.State, ddb.Item{ddb.Partition: item[ddb.Partition], ddb.Sort: item[ddb.Sort]}); err != nil {
			return err
		}
	}
	return nil
}
