package moderation

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"curt/internal/link"
)

// metrics are what the moderator counts. Labels are bounded by construction.
type metrics struct {
	decisions *prometheus.CounterVec
	effects   prometheus.Histogram
}

func newMetrics(reg prometheus.Registerer, bans *banSet) *metrics {
	m := &metrics{
		decisions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: "curt", Name: "decisions_total", Help: "Decisions about links that came onto the journal, by what they decide and by whether a person made them.",
		}, []string{"safety", "by"}),
		effects: prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: "curt", Name: "decision_effect_seconds",
			Help:    "From a moderator's decision on the journal to its effect in every answer of this process.",
			Buckets: []float64{.0005, .001, .002, .005, .01, .02, .05, .1, 1, 10},
		}),
	}
	if reg == nil {
		return m
	}
	reg.MustRegister(m.decisions, m.effects, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Namespace: "curt", Name: "bans", Help: "Bans that stand.",
	}, func() float64 { return float64(bans.len()) }))
	for s := link.Clean; s <= link.Legal; s++ { // a sum of none is 0, and not missing
		for _, by := range []string{"policy", "person"} {
			m.decisions.WithLabelValues(s.String(), by)
		}
	}
	return m
}

// decided counts an entry that decides about a link.
func (m *metrics) decided(e *Entry) {
	by := "person"
	if e.Actor == ActorPolicy {
		by = "policy"
	}
	m.decisions.WithLabelValues(e.Safety.String(), by).Inc()
}

func (m *metrics) effect(took time.Duration) { m.effects.Observe(took.Seconds()) }
