package dynamodb

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"curt/internal/backend/dynamodb/changes"
	"curt/internal/backend/dynamodb/ddb"
	"curt/internal/backend/dynamodb/linkitem"
	"curt/internal/backend/dynamodb/state"
	"curt/internal/link"
)

// creator creates and changes links.
type creator struct {
	*linkReader

	log    *changes.Log
	gate   *state.Gate
	stored func(link.ID)

	mu      sync.Mutex
	flights map[string]*flight // guarded by mu
}

// notThere is the condition of a create: nobody has the code, or ever had.
const notThere = "attribute_not_exists(k)"

// Create implements link.Store.
func (s *creator) Create(ctx context.Context, l link.Link) (link.Link, error) {
	if err := s.db.Ready(ctx); err != nil {
		return link.Link{}, fmt.Errorf("create: %w", err)
	}
	if err := l.Validate(); err != nil {
		return link.Link{}, fmt.Errorf("create: %w", err)
	}
	var stored link.Link
	err := s.gate.Write(ctx, func(ctx context.Context) (err error) {
		stored, err = s.create(ctx, l, claimed{})
		return err
	})
	if err != nil {
		return link.Link{}, fmt.Errorf("create %s: %w", l.Key, err)
	}
	return stored, nil
}

// create stores a valid link. from is the item of dedupe that is stored with it, if there is one: where
// that is refused, the error is its condition's.
func (s *creator) create(ctx context.Context, l link.Link, from claimed) (link.Link, error) {
	send, err := s.prepare(&l, from)
	if err != nil {
		return link.Link{}, err
	}
	return s.finish(ctx, l, send)
}

// sending stores a link: with over, in place of that reservation alone.
type sending func(ctx context.Context, over *linkitem.Reservation) error

// finish sends a create that was prepared.
func (s *creator) finish(ctx context.Context, l link.Link, send sending) (link.Link, error) {
	err := send(ctx, nil)
	for {
		failed, refused := ddb.Conditions(err)
		if !refused || len(failed) != 1 || failed[0].At != 0 {
			break
		}
		met, reserved := linkitem.ReservationOf(failed[0].Item)
		switch {
		case reserved:
			err = send(ctx, &met)
		case failed[0].Item == nil: // the reservation that it met is gone
			err = send(ctx, nil)
		default:
			return owned(&l, failed[0].Item)
		}
		if ctx.Err() != nil {
			return link.Link{}, errors.Join(context.Cause(ctx), err)
		}
	}
	if err != nil {
		return link.Link{}, err
	}
	if s.stored != nil {
		s.stored(l.ID)
	}
	return l, nil
}

// prepare makes of a link what is stored, and returns what stores it: a generated code in one request without a transaction, and else
// a transaction of which the link is the first write.
func (s *creator) prepare(l *link.Link, from claimed) (send sending, err error) {
	l.Version, l.Spent = 1, 0
	return s.prepareAs(l, from)
}

// prepareAs is prepare for a link that has a version and a counter.
func (s *creator) prepareAs(l *link.Link, from claimed) (send sending, err error) {
	*l = l.Normal()
	item, err := linkitem.Marshal(l)
	if err != nil {
		return nil, err
	}
	put := &types.Put{
		TableName: &s.db.Links, Item: item, ConditionExpression: aws.String(notThere),
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
	if l.CodeKind != link.Chosen && from.twin == "" {
		return func(ctx context.Context, over *linkitem.Reservation) error {
			if over != nil {
				return link.ErrExists
			}
			s.late(item, l, time.Now())
			return s.db.Put(ctx, &dynamodb.PutItemInput{
				TableName: put.TableName, Item: item, ConditionExpression: put.ConditionExpression,
				ReturnValuesOnConditionCheckFailure: put.ReturnValuesOnConditionCheckFailure,
			})
		}, nil
	}
	writes := []types.TransactWriteItem{{Put: put}}
	if from.twin != "" {
		writes = append(writes, s.standFor(l, from))
	}
	if l.CodeKind != link.Chosen {
		return func(ctx context.Context, over *linkitem.Reservation) error {
			if over != nil {
				return link.ErrExists
			}
			s.late(item, l, time.Now())
			return s.db.Transact(ctx, writes)
		}, nil
	}
	kind := link.WasCreated
	if l.Status == link.Deleted { // of an import
		kind = link.WasDeleted
	}
	pending, err := s.log.Pending(&link.Event{
		Change: link.Change{Key: l.Key, Version: l.Version}, Kind: kind, ID: l.ID, Workspace: l.Workspace, Principal: l.CreatedBy,
	}, "")
	if err != nil {
		return nil, err
	}
	writes = append(append(writes, pending...), types.TransactWriteItem{Put: &types.Put{TableName: &s.db.State, Item: linkitem.Chosen(l.Key)}})
	return func(ctx context.Context, over *linkitem.Reservation) error {
		all := writes
		if over != nil {
			if all, err = redeem(l, over, writes, s.db.State); err != nil {
				return err
			}
		}
		defer s.log.Pended()
		return s.db.Transact(ctx, all)
	}, nil
}

// owned answers a create whose code is taken: by the link itself, or by another.
func owned(l *link.Link, item ddb.Item) (link.Link, error) {
	there, err := linkitem.Unmarshal(item)
	switch {
	case err != nil && !link.Absent(err):
		return link.Link{}, err
	case err == nil && there.ID == l.ID:
		return there, nil
	}
	return link.Link{}, link.ErrExists
}

// parallel is how many links of a batch are created at once.
const parallel = 32

// CreateMany implements link.Batcher. Entries that cannot meet each other are created at once.
func (s *creator) CreateMany(ctx context.Context, now time.Time, entries []link.Creation) ([]link.Result, error) {
	results := make([]link.Result, len(entries))
	err := s.db.Ready(ctx)
	if err == nil {
		err = s.gate.WriteMany(ctx, func(ctx context.Context) error { return s.createMany(ctx, now, entries, results) })
	}
	if err != nil {
		return nil, fmt.Errorf("create %d links: %w", len(entries), err)
	}
	return results, nil
}

func (s *creator) createMany(ctx context.Context, now time.Time, entries []link.Creation, results []link.Result) error {
	var made []link.Link // of this batch, which an index may not show yet
	for first := 0; first < len(entries); {
		end := apart(entries, first)
		if err := s.createApart(ctx, now, entries[first:end], results[first:end], made); err != nil {
			return err
		}
		for i := first; i < end; i++ {
			if r := &results[i]; r.Err == nil {
				made = append(made, r.Link)
			}
		}
		first = end
	}
	return nil
}

// apart returns the end of the entries from first on that cannot meet each other: no two of one key,
// and one with dedupe by itself.
func apart(entries []link.Creation, first int) (end int) {
	keys := map[link.Key]bool{}
	for end = first; end < len(entries); end++ {
		e := &entries[end]
		if end > first && (e.Dedupe || keys[e.Link.Key]) {
			break
		}
		keys[e.Link.Key] = true
		if e.Dedupe {
			return end + 1
		}
	}
	return end
}

// createApart creates entries at once. An error is one after which any of them may have happened.
func (s *creator) createApart(ctx context.Context, now time.Time, entries []link.Creation, results []link.Result, made []link.Link) error {
	var wg sync.WaitGroup
	turns := make(chan struct{}, parallel)
	for i := range entries {
		r, l := &results[i], entries[i].Link
		if r.Err = l.Validate(); r.Err != nil {
			continue
		}
		if entries[i].Dedupe {
			r.Link, r.Found, r.Err = s.findOrCreate(ctx, l, now, made)
			continue
		}
		var send sending
		if send, r.Err = s.prepare(&l, claimed{}); r.Err != nil { // in order: entries of the change log are
			continue
		}
		turns <- struct{}{}
		wg.Go(func() {
			defer func() { <-turns }()
			r.Err = ddb.Retry(ctx, func() (err error) {
				r.Link, err = s.finish(ctx, l, send)
				return err
			})
		})
	}
	wg.Wait()
	for i := range results {
		if err := results[i].Err; err != nil && !ddb.IsAnswer(err) {
			return err
		}
	}
	return nil
}
