package pending

import (
	"context"
	"errors"
	"fmt"
	"time"

	"curt/internal/link"
)

// Shared is where processes share pending links. It may forget any of them at any time. It is safe for many goroutines.
type Shared interface {
	// Share keeps the record of a link for life.
	Share(ctx context.Context, k link.Key, record []byte, life time.Duration) error

	// Shared returns the record that is kept of k; found is false where there is none. An error means that nobody could be asked.
	Shared(ctx context.Context, k link.Key) (record []byte, found bool, err error)
}

const (
	// sharedFor is how long a link is shared that is not written sooner.
	sharedFor = 24 * time.Hour
	// sharedAfter is how long it is shared once it is written: whoever asked the store a moment before asks for it now.
	sharedAfter = 10 * time.Second
)

// View is what a process knows of pending links: of those that it accepted, and of those that others did. Its fields are set once.
type View struct {
	Own    *Links // nil = links are not accepted here
	Shared Shared // nil = nothing is shared

	// Perhaps reports whether a code may have been issued. Of one that was, a Shared that cannot be asked leaves open whether it has a
	// link, which is link.ErrUnavailable.
	Perhaps func(link.Code) bool
	// Safety returns what bans want of a link; nil = nothing. It is asked whenever a link is found: a ban cannot change it before it
	// is written.
	Safety func(*link.Link) link.Safety
}

// Find returns a link that this process accepted, with version 0. A store that has the link knows better. It is asked after Find: the
// link may be written, and not pending any more, a moment later.
func (v *View) Find(k link.Key) (l link.Link, found bool) {
	if v.Own == nil {
		return link.Link{}, false
	}
	if l, found = v.Own.Find(k); found {
		v.judge(&l)
	}
	return l, found
}

// Elsewhere returns a link that another process accepted, with version 0. It is asked after the store: a link is shared for a while once it is
// written. The error is link.ErrUnavailable.
func (v *View) Elsewhere(ctx context.Context, k link.Key) (l link.Link, found bool, err error) {
	if v.Shared == nil || !v.Perhaps(k.Code) {
		return link.Link{}, false, nil
	}
	record, found, err := v.Shared.Shared(ctx, k)
	if err != nil {
		return link.Link{}, false, link.Unavailable(fmt.Errorf("find %s among pending links: %w", k, err))
	}
	if !found {
		return link.Link{}, false, nil
	}
	if l, err = Decode(record); err != nil || l.Key != k {
		return link.Link{}, false, nil //nolint:nilerr // what is shared may be anything
	}
	l.Version = 0
	v.judge(&l)
	return l, true, nil
}

func (v *View) judge(l *link.Link) {
	if v.Safety != nil {
		l.Safety = max(l.Safety, v.Safety(l))
	}
}

// Put is that of Own.
func (v *View) Put(ctx context.Context, links []link.Link) ([]link.Result, error) {
	return v.Own.Put(ctx, links)
}

// Await is that of Own.
func (v *View) Await(ctx context.Context, k link.Key) error { return v.Own.Await(ctx, k) }

// Refuse returns a link.PendingError where k has a pending link and the store has none, which err, the store's, says; else err, or that nobody
// knows.
func (v *View) Refuse(ctx context.Context, k link.Key, err error) error {
	if !errors.Is(err, link.ErrNotFound) {
		return err
	}
	l, found := v.Find(k)
	if !found {
		var failed error
		if l, found, failed = v.Elsewhere(ctx, k); failed != nil {
			return failed
		}
	}
	if found {
		return v.Refused(&l)
	}
	return err
}

// mostRetry bounds when a change of a pending link is to be tried again.
const mostRetry = time.Minute

// Refused returns a link.PendingError for a pending link. It is to be tried again after as long as those waited that were written last, or as
// long as it has waited itself.
func (v *View) Refused(l *link.Link) error {
	after := time.Since(l.Created)
	if v.Own != nil {
		after = max(after, v.Own.waited())
	}
	return &link.PendingError{After: min(max(after, time.Second), mostRetry)}
}

// Source is what caches read links from.
type Source interface {
	Lookup(ctx context.Context, k link.Key) (link.Target, error)
	Get(ctx context.Context, k link.Key) (link.Link, error)
}

// Over returns a Source that has pending links, too. A store that has the link decides; one that has not, or fails, is
// answered for.
func (v *View) Over(store Source) Source { return source{store, v} }

type source struct {
	store Source
	view  *View
}

// Lookup implements Source.
func (s source) Lookup(ctx context.Context, k link.Key) (link.Target, error) {
	own, is := s.view.Find(k)
	t, err := s.store.Lookup(ctx, k)
	if err == nil {
		return t, nil
	}
	l, err := s.pending(ctx, k, own, is, err)
	if err != nil {
		return link.Target{}, err
	}
	return l.Leads() //nolint:wrapcheck // names the link
}

// Get implements Source.
func (s source) Get(ctx context.Context, k link.Key) (link.Link, error) {
	own, is := s.view.Find(k)
	l, err := s.store.Get(ctx, k)
	if err == nil {
		return l, nil
	}
	return s.pending(ctx, k, own, is, err)
}

// pending returns the link that is pending where the store failed with err, or an error.
func (s source) pending(ctx context.Context, k link.Key, own link.Link, is bool, err error) (link.Link, error) {
	switch {
	case !unwritten(err):
		return link.Link{}, err
	case is:
		return own, nil
	}
	l, found, failed := s.view.Elsewhere(ctx, k)
	switch {
	case found:
		return l, nil
	case failed != nil && errors.Is(err, link.ErrNotFound):
		return link.Link{}, failed
	}
	return link.Link{}, err
}

// unwritten reports whether an error of a store leaves open that a link is still pending. One that is damaged, or of a newer
// release, was written.
func unwritten(err error) bool {
	_, damaged := errors.AsType[*link.DamagedError](err)
	_, newer := errors.AsType[*link.NewerError](err)
	return err != nil && !damaged && !newer
}
