package review

import (
	"github.com/prometheus/client_golang/prometheus"

	"curt/internal/moderation"
)

// metrics are what the desk counts. Labels are closed sets.
type metrics struct {
	reports     *prometheus.CounterVec // by category
	ignored     prometheus.Counter
	limited     *prometheus.CounterVec // by report or appeal
	appeals     prometheus.Counter
	quarantined prometheus.Counter
	unreferred  prometheus.Counter
	open        prometheus.Gauge
	overdue     prometheus.Gauge
	waited      prometheus.Histogram
}

func newMetrics(reg prometheus.Registerer) *metrics {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Namespace: "curt", Name: name, Help: help})
	}
	of := func(name, help, label string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "curt", Name: name, Help: help}, []string{label})
	}
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Namespace: "curt", Name: name, Help: help})
	}
	m := &metrics{
		reports:     of("reports_total", "Reports stored, by category.", "category"),
		ignored:     counter("reports_ignored_total", "Reports of links that do not exist or are already blocked."),
		limited:     of("reviews_limited_total", "Reports and appeals refused by the rate limit of their network.", "kind"),
		appeals:     counter("appeals_total", "Appeals received."),
		quarantined: counter("reports_quarantined_total", "Links quarantined because many networks reported them."),
		unreferred:  counter("refused_creates_without_case_total", "Destinations of creates refused because of their score for which no case could be opened: too many wait, or the accounts store is unavailable."),
		open:        gauge("reviews_open", "Links and refused destinations waiting for a moderator."),
		overdue:     gauge("reviews_overdue", "Links and refused destinations waiting for a moderator for longer than CURT_REVIEW_DUE."),
		waited: prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: "curt", Name: "review_decision_seconds", Help: "Time from the start of a review to the decision that closed it.",
			Buckets: []float64{30, 60, 120, 300, 600, 1800, 3600, 4 * 3600, 24 * 3600, 7 * 24 * 3600},
		}),
	}
	for _, c := range moderation.Categories() {
		m.reports.WithLabelValues(c.String())
	}
	for _, kind := range []string{"report", "appeal"} {
		m.limited.WithLabelValues(kind)
	}
	if reg != nil {
		reg.MustRegister(m.reports, m.ignored, m.limited, m.appeals, m.quarantined, m.unreferred, m.open, m.overdue, m.waited)
	}
	return m
}

// decided counts how long a case waited.
func (m *metrics) decided(c *moderation.Case) { m.waited.Observe(c.Closed.Sub(c.Opened).Seconds()) }
