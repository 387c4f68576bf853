package dynamodb

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"curt/internal/backend/dynamodb/ddb"
	"curt/internal/backend/dynamodb/linkitem"
	"curt/internal/backend/dynamodb/state"
	"curt/internal/backend/dynamodb/tables"
	"curt/internal/codegen"
	"curt/internal/link"
)

// Migrate creates the tables at an address where they are missing, and returns what it did in lines.
// restored says that an operator restored them from a backup: what they count is then older than what
// servers have given away, so that ids are skipped as after any restore, and followers of the change
// log start over.
func Migrate(ctx context.Context, at ddb.Address, restored bool) (done []string, err error) {
	s, err := open(ctx, Config{Address: at}.withDefaults())
	if err != nil {
		return nil, err
	}
	defer s.db.Close()
	if done, err = tables.Migrate(ctx, s.db, at); err != nil {
		return done, err
	}
	_, err = tables.Inspect(ctx, s.db, at)
	switch {
	case restored && err == nil:
		return append(done, "the tables were not restored since the last migrate"), nil
	case restored && errors.Is(err, tables.ErrRestored):
		lines, err := s.afterRestore(ctx)
		return append(done, lines...), err
	case errors.Is(err, tables.ErrRestored):
		return done, err
	}
	if err := tables.Identify(ctx, s.db, at, false); err != nil {
		return done, fmt.Errorf("write the identity of the tables: %w", err)
	}
	return done, nil
}

// oldest is how old a backup may be of which nobody knows its time: AWS keeps them for 35 days.
const oldest = 35 * 24 * time.Hour

// afterRestore skips what may have been given away since the backup. The identity comes last, so that
// an interrupted run is repeated.
func (s *Links) afterRestore(ctx context.Context) (done []string, err error) {
	if err := s.Begin(ctx); err != nil {
		return nil, err
	}
	age := oldest
	if to, err := tables.RestoredTo(ctx, s.db, s.config.Address); err != nil {
		return nil, err
	} else if !to.IsZero() {
		age = time.Since(to)
	}
	for length := codegen.MinLength; length <= codegen.MaxLength; length++ {
		if err := codegen.SkipAfterRestore(ctx, s, codegen.DefaultPrefix, length, age); err != nil {
			return done, err
		}
	}
	if err := s.Skip(ctx, codegen.KeysEpoch, 1); err != nil { // links that were lost may have had them
		return done, fmt.Errorf("void keys that were generated ahead: %w", err)
	}
	done = append(done, "skipped the ids that may have been issued in "+days(age))
	if err := s.log.Restart(ctx); err != nil {
		return done, fmt.Errorf("restart the change log: %w", err)
	}
	many, err := s.rechoose(ctx)
	if err != nil {
		return done, fmt.Errorf("walk the links: %w", err)
	}
	done = append(done, "followers of the change log start over", fmt.Sprintf("%d chosen codes are registered", many))
	return done, tables.Identify(ctx, s.db, s.config.Address, true)
}

// rechoose stores the items of all chosen codes again: two tables are not restored to one moment, and
// whoever fills a filter from these items would call the code of a link without one unknown.
func (s *Links) rechoose(ctx context.Context) (many int, err error) {
	in := &dynamodb.ScanInput{
		TableName: &s.db.Links, ConsistentRead: aws.Bool(true), ProjectionExpression: aws.String("k, minted, held_by"),
	}
	for {
		page, err := s.db.API().Scan(ctx, in)
		if err != nil {
			return many, err
		}
		for _, item := range page.Items {
			if _, reserved := linkitem.ReservationOf(item); reserved || link.CodeKind(ddb.UintOf(item, "minted")) != link.Chosen {
				continue
			}
			if err := s.db.Put(ctx, &dynamodb.PutItemInput{TableName: &s.db.State, Item: linkitem.Chosen(linkitem.ParseKey(item))}); err != nil {
				return many, err
			}
			many++
		}
		if in.ExclusiveStartKey = page.LastEvaluatedKey; in.ExclusiveStartKey == nil {
			return many, nil
		}
	}
}

// OpenSenders returns the servers that may hold clicks, for who is none, and changes nothing else in the tables. end
// closes the connections.
func OpenSenders(ctx context.Context, at ddb.Address) (s state.Senders, end func(), err error) {
	db, err := tables.Open(ctx, at, ddb.Config{})
	if err != nil {
		return s, nil, fmt.Errorf("open the senders: %w", err)
	}
	return state.NewSenders(db), db.Close, nil
}

// days is a time in days, or in hours of the first one.
func days(age time.Duration) string {
	if age < 24*time.Hour {
		return fmt.Sprintf("%.1f hours", age.Hours())
	}
	return fmt.Sprintf("%.0f days", age.Hours()/24)
}
