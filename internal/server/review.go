package server

import (
	"context"
	"crypto/rand"
	"time"

	"curt/internal/review"
)

// newDesk makes the desk at which reports and appeals are taken and decided. What they
// are limited by is apart from creates: a flood of reports makes no limit of those forget.
func (s *Server) newDesk(context.Context) (err error) {
	s.desk, err = review.New(review.Config{
		Cases: s.accounts.cases, Appeals: s.accounts.appeals, Journal: s.accounts.journal, Moderator: s.decides,
		Links: s.links, DayKeys: s.keyring, Limits: s.newLimits(), ReportLimit: s.ready.reports, AppealLimit: s.ready.appeals,
		Due: time.Duration(s.config.ReviewDue), Quarantine: s.config.ReportQuarantine, Retention: time.Duration(s.config.ReportRetention),
		Random: rand.Reader, Log: s.log, Metrics: s.metrics.Registerer(),
	})
	return err
}
