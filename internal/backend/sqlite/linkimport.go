package sqlite

import (
	"context"
	"fmt"

	"curt/internal/link"
)

// Import stores links as they are, with their version, their spent clicks and their
// tombstones, in one durable write, and returns a result for each, in order. A link that
// is there already under the same id and key is Found and stays as it is; a key that
// another link has is ErrExists. None is taken for counted: which codes the permutation of
// another store made, ours cannot say. The error is for the whole call: then any of them
// may have happened, and the same call may be made again.
func (s *Links) Import(ctx context.Context, links []link.Link) ([]link.Result, error) {
	results := make([]link.Result, len(links))
	err := s.writer.write(ctx, len(links), func(t *tx) error {
		for i, l := range links {
			results[i] = s.importOne(t, l)
			if err := results[i].Err; resultCode(err) != 0 {
				return err // nothing of the batch happened
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("import %d links: %w", len(links), err)
	}
	return results, nil
}

func (s *Links) importOne(t *tx, l link.Link) (r link.Result) {
	l.CodeKind = link.Chosen
	if r.Err = l.Validate(); r.Err != nil {
		return r
	}
	if l.Version == 0 {
		r.Err = fmt.Errorf("version 0: %w", link.ErrInvalid)
		return r
	}
	workspace, err := s.workspace(t, l.Workspace)
	if err != nil {
		r.Err = err
		return r
	}
	r.Link, r.Found, r.Err = s.createAlias(t, workspace, normal(l))
	return r
}
