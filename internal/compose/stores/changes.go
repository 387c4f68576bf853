package stores

import (
	"context"
	"log/slog"
	"time"

	"curt/internal/compose"
	"curt/internal/feed"
	"curt/internal/link"
)

// Changes passes on which links have changed. Listeners are added before anything runs.
type Changes struct {
	listeners []func(keys ...link.Key)
	updates   []func(keys ...link.Key) // without links at their first version
	announce  func(link.Change)
	created   func(link.Code) // called with the codes of new links that are in the change log; nil = nobody asks
}

// Listen has a listener called with the links that changed, here or elsewhere; no links = it is not
// known which.
func (h *Changes) Listen(listener func(keys ...link.Key)) {
	h.listeners = append(h.listeners, listener)
}

// ListenUpdates is Listen without new links.
func (h *Changes) ListenUpdates(listener func(keys ...link.Key)) {
	h.updates = append(h.updates, listener)
}

func (h *Changes) heard(changes []link.Change) {
	keys, updated := make([]link.Key, len(changes)), []link.Key(nil)
	for i := range changes {
		keys[i] = changes[i].Key
		if changes[i].Version != 1 {
			updated = append(updated, keys[i])
		}
	}
	for _, listener := range h.listeners {
		listener(keys...)
	}
	if len(changes) > 0 && len(updated) == 0 {
		return
	}
	for _, listener := range h.updates {
		listener(updated...)
	}
}

// Announce tells the cache of a change made here, and other servers.
func (h *Changes) Announce(c link.Change) {
	if h.created != nil && c.Version == 1 {
		h.created(c.Key.Code)
	}
	h.announce(c)
}

// followEvery is how often the changes of other servers are read.
const followEvery = time.Second

// FollowChanges reads the changes of other servers, and publishes those of this one, for a server
// without a cache.
func FollowChanges(env *compose.Env, s *Stores, h *Changes) *compose.Capability {
	c := &compose.Capability{Name: "changes"}
	h.announce = func(link.Change) {} // in the change log
	if s.Redis != nil {
		p := &publisher{redis: s.Redis, changes: make(chan link.Change, 1024)}
		h.announce = p.announce
		c.Run("hints", p.Run)
	}
	if env.Shared() {
		c.Run("changes", func(ctx context.Context) error { return h.follow(ctx, s) })
	}
	return c
}

// follow reads the change log for a server without a cache.
func (h *Changes) follow(ctx context.Context, s *Stores) error {
	at, begun := link.Position(""), false
	follower := feed.Follower[link.Position, link.Change]{
		Name: "moves", Page: 1000, Log: feed.Log[link.Position, link.Change]{Read: s.Links.Changes, Head: s.Links.Head},
		Position: func(context.Context) (link.Position, bool, error) { return at, begun, nil },
		Apply: func(_ context.Context, changes []link.Change, to link.Position) error {
			at = to
			h.heard(changes)
			return nil
		},
		Rebuild: func(ctx context.Context) (err error) {
			if at, err = s.Links.Head(ctx); err == nil {
				begun = true
				h.heard(nil)
			}
			return err
		},
	}
	return compose.Retry(ctx, s.env.Log, slog.LevelWarn, "reading the change log failed, retrying", "reading the change log recovered", func(ctx context.Context) (time.Duration, error) {
		return followEvery, follower.CatchUp(ctx)
	})
}
