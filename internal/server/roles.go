package server

import (
	"context"
	"strings"

	"curt/internal/config"
)

// roles are what a server does, as CURT_ROLE says. A part that no role of it needs is not
// opened: its field is nil, and its settings are not looked at.
//
//	             redirect  api  worker
//	links           x       x     x
//	cache, clicks   x       x
//	codes, search           x
//	API, pages              x
//	decisions               x     x
//	reviews                 x     x
//	recheck, sweep                x
//	Kafka           x       x     x     where CURT_EVENTS is set: to it, to it, from it
type roles struct{ redirects, programs, works bool }

func rolesOf(cfg config.Config) roles {
	return roles{cfg.Does(config.RoleRedirect), cfg.Does(config.RoleAPI), cfg.Does(config.RoleWorker)}
}

// serves reports whether others than the operator are served.
func (r roles) serves() bool { return r.redirects || r.programs }

// judges reports whether links are made or judged.
func (r roles) judges() bool { return r.programs || r.works }

// openParts opens what the roles need, in the order in which parts stand on each other.
func (s *Server) openParts(ctx context.Context) error {
	for _, part := range []struct {
		needed bool
		open   func(context.Context) error
	}{
		{true, s.bind},
		{true, s.openLinks},
		{true, s.openSharing},
		{s.roles.serves(), s.newCache},
		{s.roles.programs, s.newCodes},
		{s.roles.judges(), s.openCounted},
		{s.roles.serves(), s.openClicks},
		{s.roles.works, s.openWorker},
		{s.roles.programs, s.openSearch},
		{s.roles.judges(), s.openModerator},
		{s.roles.judges(), s.newDesk},
		{true, s.watchParts},
		{true, s.compose},
	} {
		if !part.needed {
			continue
		}
		if err := part.open(ctx); err != nil {
			return err
		}
	}
	return nil
}

// watchParts has what was opened in the metrics and in the probes.
func (s *Server) watchParts(context.Context) error {
	s.health.role, s.health.needs = s.config.Role, s.dependencies()
	s.register()
	s.observe()
	return nil
}

// roleText is what the log and config check say of the roles.
func roleText(cfg config.Config) string { return strings.Join(cfg.Role, ",") }
