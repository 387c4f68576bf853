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
		reports:     of("reports_total", "Reports of links that were stored, by category.", "category"),
		ignored:     counter("reports_ignored_total", "Reports of links that do not exist, or are stopped already."),
		limited:     of("reviews_limited_total", "Reports and appeals that were refused because their network sent too many.", "kind"),
		appeals:     counter("appeals_total", "Appeals that were taken."),
		quarantined: counter("reports_quarantined_total", "Links that were quarantined because many networks reported them."),
		open:        gauge("reviews_open", "Links that wait for a moderator."),
		overdue:     gauge("reviews_overdue", "Links that have waited for a moderator longer than CURT_REVIEW_DUE."),
		waited: prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: "curt", Name: "review_decision_seconds", Help: "Time from the opening of a case to the decision that closed it.",
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
		reg.MustRegister(m.reports, m.ignored, m.limited, m.appeals, m.quarantined, m.open, m.overdue, m.waited)
	}
	return m
}

// decided counts how long a case waited.
func (m *metrics) decided(c *moderation.Case) { m.waited.Observe(c.Closed.Sub(c.Opened).Seconds()) }
