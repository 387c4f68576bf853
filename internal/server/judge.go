package server

import (
	"context"
	"net/netip"
	"slices"
	"time"

	"curt/internal/abuse"
	"curt/internal/joblease"
	"curt/internal/shorten"
)

// newJudge composes what decides about where a link is to lead: the lists, all other
// signals, and what the policy makes of them.
func (s *Server) newJudge() func(context.Context, time.Time, *abuse.Facts) abuse.Decision {
	signals := slices.Clone(s.ready.signals)
	if lists := s.ready.blocked; lists != nil {
		signals = append(signals, lists)
	}
	panel, policy := abuse.NewPanel(s.metrics.Registerer(), signals...), s.ready.policy
	return func(ctx context.Context, now time.Time, f *abuse.Facts) abuse.Decision {
		return abuse.Decide(policy, panel.Look(ctx, now, f))
	}
}

// countryOf returns what says in which country an address is; nil without CURT_GEOIP.
func (s *Server) countryOf() func(netip.Addr) string {
	if s.ready.places == nil {
		return nil
	}
	return s.ready.places.Country
}

// once has a loop run on one server of a fleet at a time.
func (s *Server) once(name string, run func(context.Context) error) func(context.Context) error {
	if !s.shared() {
		return run
	}
	return func(ctx context.Context) error {
		holder, err := instance(s.config.Data)
		if err != nil {
			return err
		}
		once := joblease.Once{Store: s.accounts.jobs, Name: name, Holder: holder, Log: s.log}
		return once.Run(ctx, func(ctx context.Context, _ uint64) error { return run(ctx) }) // what it writes is idempotent
	}
}

// recheck has links judged again, as CURT_RECHECK says.
func (s *Server) recheck(links *shorten.Services) {
	if s.config.Recheck == 0 {
		return
	}
	cfg := shorten.RecheckConfig{Every: time.Duration(s.config.Recheck), Work: s.processors.work, Log: s.log}
	cfg.Edition = func() (reloads uint64) {
		if lists := s.ready.blocked; lists != nil {
			reloads += lists.Stats().Reloads + lists.AllowStats().Reloads
		}
		if files := s.ready.sources; files != nil {
			reloads += files.Stats().Reloads
		}
		return reloads
	}
	s.again = links.NewRechecker(cfg)
	if lists := s.ready.blocked; lists != nil {
		lists.OnChange(s.again.Poke)
	}
	if files := s.ready.sources; files != nil {
		files.OnChange(s.again.Poke)
	}
}
