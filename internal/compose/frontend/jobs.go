package frontend

import (
	"time"

	"curt/internal/compose"
	"curt/internal/httpapi/kernel"
	"curt/internal/job"
	"curt/internal/transfer"
)

// newJobs runs imports and exports for callers of the API, on the first server of a fleet that
// claims them. queued wakes the runner of this server.
func (f *Frontend) newJobs(c *compose.Capability) (queued func(), err error) {
	holder, err := f.parts.Stores.Holder()
	if err != nil {
		return nil, err
	}
	jobs := transfer.Jobs{
		Creator: &transfer.Creator{Links: f.parts.Judging.Links, ShortURL: f.env.Hosts.Load().ShortURL, Explain: kernel.Explain, Now: time.Now},
		Who:     f.keys.Holder,
		Yielder: f.env.Background,
	}
	wake := make(chan struct{}, 1)
	runner := &job.Runner{Store: f.parts.Stores.Accounts.Jobs, Holder: holder, Kinds: jobs.Kinds(), Wake: wake, Log: f.env.Log}
	c.Run("jobs", runner.Run)
	c.Run("expired jobs", runner.Sweep)
	return func() {
		select {
		case wake <- struct{}{}:
		default: // a wake-up is pending
		}
	}, nil
}
