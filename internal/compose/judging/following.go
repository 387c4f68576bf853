package judging

import (
	"context"
	"log/slog"
	"time"

	"curt/internal/compose"
	"curt/internal/compose/stores"
	"curt/internal/moderation/bans"
)

// followEvery is how often a server that only follows links asks for new bans: as often as those that make them.
const followEvery = 500 * time.Millisecond

// FollowBans has bans hold for pending links on a server that makes no decisions. Those of written links are in the links.
func FollowBans(env *compose.Env, s *stores.Stores) *compose.Capability {
	c := &compose.Capability{Name: "bans"}
	if s.Pending == nil || s.Pending.Shared == nil || s.Accounts.Journal == nil {
		return c
	}
	f := bans.NewFollower(s.Accounts.Journal)
	s.Judge(f.Set.Safety)
	c.Run("bans", func(ctx context.Context) error {
		return compose.Retry(ctx, env.Log, slog.LevelWarn, "following bans failed, retrying", "following bans recovered",
			func(ctx context.Context) (time.Duration, error) { return followEvery, f.Step(ctx) })
	})
	return c
}
