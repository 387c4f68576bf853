package link

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// maxUpdates bounds the rounds of Update. Every round that conflicts had another
// winner, so a caller that loses 100 times in a row meets something pathological.
const maxUpdates = 100

// Update reads the link, lets f change it and replaces it, again and again while
// others win. It is the one compare-and-swap loop above all drivers. An error of
// f ends it unchanged. The change log says that principal did it, and what changed.
//
// When a Replace fails with ErrUncertain, or without a sentinel, it may have happened, now or a moment
// later. Update then re-reads: one version up and exactly what f wanted is
// success; the version of before is tried again, because of two writes over one
// version only one can win; a version further up hides whether ours was below it,
// and Update returns the error rather than apply f twice. Whatever ends Update before that is known
// is ErrUncertain, too: a read that fails afterwards does not undo the write.
//
// Of callers whose f accepts one version only (If-Match) exactly one succeeds. There is one
// exception: after such a Replace a rival that stored the very same bytes counts as ourselves,
// because nothing tells the two apart, and both are told that it was them. The link stands as
// each of them wanted it, and RFC 9110, section 13.1.1, has it so: a change that appears to
// have been applied already may be answered 2xx, also where somebody else made it.
func Update(ctx context.Context, s Store, k Key, principal string, f func(*Link) error) (Link, error) {
	var doubts []attempt // at the version last read
	for range maxUpdates {
		current, err := s.Get(ctx, k)
		if err != nil {
			return Link{}, unsettled(doubts, fmt.Errorf("update %s: %w", k, err))
		}
		if len(doubts) > 0 && current.Version >= doubts[0].want.Version {
			done, err := settle(current, doubts)
			if done || err != nil {
				return current, err
			}
			doubts = nil // a rival took the version, so no attempt at it can happen any more
		}
		if current.Status == Deleted {
			return Link{}, fmt.Errorf("update %s: deleted: %w", k, ErrNotFound)
		}
		wanted := current
		wanted.Tags = slices.Clone(current.Tags)
		if err := f(&wanted); err != nil {
			return Link{}, unsettled(doubts, err)
		}
		stored, err := s.Replace(ctx, wanted, Edit{Principal: principal, Fields: Changed(&current, &wanted)})
		switch {
		case err == nil:
			return stored, nil
		case errors.Is(err, ErrConflict): // somebody won, perhaps our own earlier attempt
		case refused(err) || ctx.Err() != nil:
			return Link{}, unsettled(doubts, fmt.Errorf("update %s: %w", k, err))
		default:
			doubts = append(doubts, attempt{want: after(current, wanted), err: err})
		}
	}
	return Link{}, unsettled(doubts, fmt.Errorf("update %s: lost %d rounds: %w", k, maxUpdates, ErrConflict))
}

// unsettled is the error of an Update that ends while attempts may still have happened: it says that,
// and wraps no sentinel by which callers would take the write for one that did not.
func unsettled(doubts []attempt, err error) error {
	if len(doubts) == 0 || errors.Is(err, ErrUncertain) {
		return err
	}
	return fmt.Errorf("%w: %w; then: %v", ErrUncertain, doubts[0].err, err) //nolint:errorlint // see above
}

// attempt is a Replace that may have happened.
type attempt struct {
	want Link  // as stored, if it did
	err  error // what it answered
}

// settle decides about attempts at one version from the link, which has that
// version or a later one by now.
func settle(now Link, doubts []attempt) (done bool, err error) {
	if now.Version > doubts[0].want.Version {
		return false, fmt.Errorf("update %s: %w: it may have been overtaken: %w", now.Key, ErrUncertain, doubts[0].err)
	}
	return slices.ContainsFunc(doubts, func(a attempt) bool { return same(now, a.want) }), nil
}

// refused reports an error that says that a write did not happen.
func refused(err error) bool {
	for _, sentinel := range []error{ErrNotFound, ErrExists, ErrConflict, ErrInvalid, ErrUnavailable} {
		if errors.Is(err, sentinel) {
			return true
		}
	}
	return false
}

// after returns what a Replace of wanted over current leaves behind.
func after(current, wanted Link) Link {
	wanted = wanted.Normal()
	for i := range fields {
		if f := &fields[i]; f.Fixed {
			f.copy(&wanted, &current)
		}
	}
	wanted.Version = current.Version + 1
	return wanted
}

// same compares all but what clicks change.
func same(a, b Link) bool {
	for i := range fields {
		if f := &fields[i]; !f.Counter && !f.equal(&a, &b) {
			return false
		}
	}
	return a.Later == b.Later
}
