package dynamodb

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"curt/internal/backend/dynamodb/ddb"
	"curt/internal/link"
)

// importPatience is how many times the time of a call an import goes on without any link being stored.
const importPatience = 15

// Import stores links as they are, with their version, their spent clicks and their tombstones, and
// returns a result for each, in order. A link that is there already under the same id and key is Found
// and stays as it is; a key that another link has is ErrExists. None is taken for counted: which codes the
// permutation of another store made, ours cannot say. Servers may use the table meanwhile: the change log
// has each.
//
// Each link has the time of a call for many by itself, and one that was refused, or of which nobody knows,
// is stored again: that has no second effect. The error is for the whole call, once none was stored for
// half a minute: then any of them may have happened, and the same call may be made again.
func (s *creator) Import(ctx context.Context, links []link.Link) ([]link.Result, error) {
	results := make([]link.Result, len(links))
	if err := s.importAll(ctx, links, results); err != nil {
		return nil, fmt.Errorf("import %d links: %w", len(links), err)
	}
	return results, nil
}

func (s *creator) importAll(ctx context.Context, links []link.Link, results []link.Result) error {
	var stored atomic.Int64 // when a link was, in Unix nanoseconds
	stored.Store(time.Now().UnixNano())
	patience := importPatience * s.db.CallTime
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var wg sync.WaitGroup
	turns := make(chan struct{}, parallel)
	for i := range links {
		turns <- struct{}{}
		wg.Go(func() {
			defer func() { <-turns }()
			for {
				r := s.importOne(ctx, links[i])
				switch {
				case r.Err == nil || ddb.IsAnswer(r.Err):
					stored.Store(time.Now().UnixNano())
					results[i] = r
					return
				case errors.Is(r.Err, ddb.ErrClosed), ctx.Err() != nil, ddb.Denied(r.Err), time.Since(time.Unix(0, stored.Load())) > patience:
					stop(r.Err)
					return
				}
				ddb.Pause(ctx)
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}

// importOne prepares each attempt anew, for the change log.
func (s *creator) importOne(ctx context.Context, l link.Link) (r link.Result) {
	if l, r.Err = l.Imported(); r.Err != nil {
		return r
	}
	r.Err = s.gate.WriteMany(ctx, func(ctx context.Context) error {
		send, err := s.prepareAs(&l, claimed{})
		if err != nil {
			return err
		}
		r.Link, err = s.finish(ctx, l, send)
		return err
	})
	return r
}
