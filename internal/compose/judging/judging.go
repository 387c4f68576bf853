// Package judging opens what decides about links: the services that create and change them, the
// signals and lists that they ask, the moderator, and the review of reports and appeals.
package judging

import (
	"context"
	"crypto/rand"
	"slices"
	"time"

	"curt/internal/abuse"
	"curt/internal/abuse/lookalike"
	"curt/internal/background"
	"curt/internal/codegen"
	"curt/internal/compose"
	"curt/internal/compose/finding"
	"curt/internal/compose/stores"
	"curt/internal/idempotency"
	"curt/internal/link"
	"curt/internal/moderation/lists"
	"curt/internal/moderation/moderator"
	"curt/internal/ratelimit"
	"curt/internal/review"
	"curt/internal/shorten"
	"curt/internal/shorten/edit"
	"curt/internal/shorten/linkservice"
	"curt/internal/telemetry"
)

// Judging is what decides about links.
type Judging struct {
	Links     *linkservice.Service
	Moderator *moderator.Moderator
	Lists     *lists.Keeper
	Review    *review.Service
}

// Parts are the capabilities that judging stands on.
type Parts struct {
	Stores  *stores.Stores
	Changes *stores.Changes
	Cache   *stores.Cache     // nil = this server has none
	Codes   codegen.Generator // nil = no links are created here
	Finder  *finding.Finder   // nil = links are not searched here
}

// Open loads the bans, lets decisions take effect that were made when the last run ended, and
// opens the services of links. Every link that it changes is announced, so that it comes behind the
// cache.
func Open(ctx context.Context, env *compose.Env, p Parts) (*Judging, *compose.Capability, error) {
	c, accounts := &compose.Capability{Name: "judging"}, &p.Stores.Accounts
	j := &Judging{}
	creates, reports, err := openLimits(ctx, env, p.Stores, c)
	if err != nil {
		return nil, c, err
	}
	if j.Lists, err = lists.Open(ctx, lists.Config{Store: accounts.Lists, Brands: brandsOf(env), Random: rand.Reader}); err != nil {
		return nil, c, err
	}
	cfg := moderator.Config{
		Journal: accounts.Journal, Progress: accounts.Journal, Links: p.Stores.Links, Peers: accounts.Peers, Lists: j.Lists,
		Announce: p.Changes.Announce, Random: rand.Reader,
		Yielder: env.Background, Metrics: env.Metrics.Registerer(), Log: env.Log,
	}
	if p.Stores.Pending != nil {
		cfg.Pending = p.Stores.Pending.Refuse
	}
	if j.Moderator, err = moderator.Open(ctx, cfg); err != nil {
		return nil, c, err
	}
	p.Stores.Judge(func(l *link.Link) link.Safety {
		ban, _ := j.Moderator.BanOf(l)
		return ban.Safety
	})
	c.Run("decisions", background.LowPriority(env.Background, j.Moderator.Run))
	j.Review, err = review.New(review.Config{
		Cases: accounts.Cases, Appeals: accounts.Appeals, Destinations: accounts.Blocked, Journal: accounts.Journal, Moderator: j.Moderator,
		Links: p.Stores.Links, DayKeys: p.Stores.Keyring, Limits: reports, ReportLimit: env.Reports, AppealLimit: env.Appeals,
		Due: time.Duration(env.Config.ReviewDue), Quarantine: env.Config.ReportQuarantine, Retention: time.Duration(env.Config.ReportRetention), WrittenWithin: writtenWithin(env),
		Random: rand.Reader, Log: env.Log, Metrics: env.Metrics.Registerer(),
	})
	if err != nil {
		return nil, c, err
	}
	c.Run("reviews", j.Review.Run)
	p.Changes.ListenUpdates(j.Review.Changed) // a new link has not moved
	j.Links = newLinks(env, p, j, creates)
	countExpiry := func(*telemetry.Metrics) {}
	if env.Roles.Worker {
		c.Run("destinations", p.Stores.Once("destinations", j.Review.RunExpiry))
		c.Run("idempotency keys", p.Stores.Once("idempotency", idempotency.NewSweeper(accounts.Once, time.Now, env.Log).Run))
		if env.Config.Recheck > 0 {
			again := newRechecker(env, j)
			c.Run("recheck", p.Stores.Once("recheck", background.LowPriority(env.Background, again.Run)))
		}
		if countExpiry, err = openExpiry(env, p, c); err != nil {
			return nil, c, err
		}
	}
	openLists(env, c)
	c.Metrics = func(m *telemetry.Metrics) {
		countLists(env, m)
		countExpiry(m)
	}
	return j, c, nil
}

// openLimits returns the limits of creates and of reports, which are apart: a flood of reports makes none
// of creates forget. Servers share them, and the rate at which creators make links.
func openLimits(ctx context.Context, env *compose.Env, s *stores.Stores, c *compose.Capability) (creates, reports ratelimit.Store, err error) {
	if reports, err = s.NewLimits(ctx, c, "reports"); err != nil {
		return nil, nil, err
	}
	if creates, err = s.NewLimits(ctx, c, "creates"); err != nil {
		return nil, nil, err
	}
	if env.Velocity != nil {
		err = s.ShareRate(c, env.Velocity)
	}
	return creates, reports, err
}

// newLinks returns the services of links. Every change is announced to the cache before its writer
// is answered.
func newLinks(env *compose.Env, p Parts, j *Judging, limits ratelimit.Store) *linkservice.Service {
	cfg := linkservice.Config{
		Store: p.Stores.Links, Codes: p.Codes, Strategy: env.Config.Codes, Limits: limits,
		Aliases: shorten.AliasPolicy{Min: env.Config.AliasMin, Max: env.Config.AliasMax, Alphabet: env.Config.AliasCharacters()},
		Plans:   env.Plans, Hosts: env.Hosts, Blocklists: env.Lists, Words: env.Words, Lists: j.Lists, Once: p.Stores.Accounts.Once,
		Judge: newJudge(env, j.Lists), Moderator: j.Moderator, Journal: p.Stores.Accounts.Journal, Cases: j.Review,
		Dedupe:   env.Config.Codes == "hash", // the same URL, the same code
		Announce: p.Changes.Announce, Random: rand.Reader, Metrics: env.Metrics.Registerer(),
	}
	if p.Stores.Pending != nil && p.Stores.Pending.Own != nil { // a nil pointer must not become an interface
		cfg.Queue, cfg.Aliases.Generated = p.Stores.Pending, p.Stores.Promised.Perhaps
	}
	if cfg.Held = env.Config.AliasReserved; cfg.Held == 0 {
		cfg.Held = -1
	}
	if env.Places != nil {
		cfg.Country = env.Places.Country
	}
	if p.Finder != nil {
		cfg.Index, cfg.Ranking = p.Finder.Index(), p.Finder.Ranking()
	}
	if p.Cache != nil {
		cfg.Created = p.Cache.Created
		if env.Config.CacheWarm {
			cfg.Stored = p.Cache.Warm
		}
	}
	return linkservice.New(cfg)
}

// brandsOf returns the signal of look-alikes, whose names aliases are compared with too.
func brandsOf(env *compose.Env) *lookalike.Signal {
	for _, s := range env.Signals {
		if brands, ok := s.(*lookalike.Signal); ok {
			return brands
		}
	}
	return nil
}

// newJudge composes what decides about where a link is to lead: the lists, all other
// signals, and what the policy makes of them.
func newJudge(env *compose.Env, moderated *lists.Keeper) func(context.Context, time.Time, *abuse.Facts) abuse.Decision {
	signals := append(slices.Clone(env.Signals), moderated)
	if lists := env.Lists; lists != nil {
		signals = append(signals, lists)
	}
	panel, policy := abuse.NewPanel(env.Metrics.Registerer(), signals...), env.Policy
	return func(ctx context.Context, now time.Time, f *abuse.Facts) abuse.Decision {
		return abuse.Decide(policy, panel.Inspect(ctx, now, f))
	}
}

// writtenWithin returns how long a link may wait after it was judged; 0 = as long as a request lasts. Queued ones wait at the most as
// long as curt migrate has Kafka keep them, seven days.
func writtenWithin(env *compose.Env) time.Duration {
	if env.Config.Queues() {
		return 8 * 24 * time.Hour
	}
	return 0
}

// newRechecker returns what judges links again when lists change, and every CURT_RECHECK.
func newRechecker(env *compose.Env, j *Judging) *edit.Rechecker {
	cfg := edit.RecheckConfig{Every: time.Duration(env.Config.Recheck), Yielder: env.Background, Log: env.Log}
	cfg.Version = func() (reloads uint64) {
		if env.Lists != nil {
			reloads += env.Lists.Stats().Reloads + env.Lists.AllowStats().Reloads
		}
		if env.Sources != nil {
			reloads += env.Sources.Stats().Reloads
		}
		return reloads + j.Lists.Version()
	}
	again := j.Links.NewRechecker(cfg)
	j.Lists.OnChange(again.Poke)
	j.Moderator.OnRevoked(again.Revoked)
	if env.Lists != nil {
		env.Lists.OnChange(again.Poke)
	}
	if env.Sources != nil {
		env.Sources.OnChange(again.Poke)
	}
	return again
}
