package judging

import (
	"time"

	"curt/internal/compose"
	"curt/internal/expiry"
	"curt/internal/telemetry"
)

// openExpiry announces links that expired, and removes their content where CURT_EXPIRED_RETENTION says
// so, on one server of the fleet. It returns what registers the counters of both.
func openExpiry(env *compose.Env, p Parts, c *compose.Capability) (count func(*telemetry.Metrics), err error) {
	lease, err := p.Stores.Lease()
	if err != nil {
		return nil, err
	}
	sweeper := expiry.NewSweeper(expiry.Config{
		Links: p.Stores.Links, Logs: p.Stores.Feeds, Positions: p.Stores.Feeds.BothFollowers(), Once: lease,
		Retention: time.Duration(env.Config.ExpiredRetention), Changed: p.Changes.Announce,
		Now: time.Now, Yielder: env.Background, Log: env.Log,
	})
	c.Run("expired links", sweeper.Run)
	return func(m *telemetry.Metrics) {
		m.Counter("curt_expired_links_total", "Expired links announced in the change log; repeats count again.", sweeper.Announced)
		m.Gauge("curt_expired_links_lag_seconds", "Time since all expired links were announced; 0 on servers that do not announce them.",
			func() float64 { return sweeper.Lag().Seconds() })
		m.Counter("curt_expired_links_removed_total", "Expired links whose content was removed after CURT_EXPIRED_RETENTION.", sweeper.Removed)
	}, nil
}
