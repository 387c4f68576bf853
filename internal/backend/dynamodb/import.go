package dynamodb

import (
	"context"
	"fmt"
	"sync"

	"curt/internal/backend/dynamodb/ddb"
	"curt/internal/link"
)

// Import stores links as they are, with their version, their spent clicks and their tombstones, and
// returns a result for each, in order. A link that is there already under the same id and key is Found
// and stays as it is; a key that another link has is ErrExists. None is taken for counted: which codes the
// permutation of another store made, ours cannot say. Servers may use the table meanwhile: the change log
// has each. The error is for the whole call: then any of them may have happened, and the same call may be
// made again.
func (s *creator) Import(ctx context.Context, links []link.Link) ([]link.Result, error) {
	results := make([]link.Result, len(links))
	err := s.db.Ready(ctx)
	for first := 0; first < len(links) && err == nil; first += importPage {
		end := min(len(links), first+importPage)
		err = s.gate.WriteMany(ctx, func(ctx context.Context) error { return s.importAll(ctx, links[first:end], results[first:end]) })
	}
	if err != nil {
		return nil, fmt.Errorf("import %d links: %w", len(links), err)
	}
	return results, nil
}

// importPage is how many links are stored in the time of one call for many.
const importPage = 200

func (s *creator) importAll(ctx context.Context, links []link.Link, results []link.Result) error {
	var wg sync.WaitGroup
	turns := make(chan struct{}, parallel)
	for i := range links {
		turns <- struct{}{}
		wg.Go(func() {
			defer func() { <-turns }()
			results[i] = s.importOne(ctx, links[i])
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

func (s *creator) importOne(ctx context.Context, l link.Link) (r link.Result) {
	if l, r.Err = l.Imported(); r.Err != nil {
		return r
	}
	send, err := s.prepareAs(&l, claimed{})
	if err != nil {
		r.Err = err
		return r
	}
	r.Err = ddb.Retry(ctx, func() (err error) {
		r.Link, err = s.finish(ctx, l, send)
		return err
	})
	return r
}
