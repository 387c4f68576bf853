package shorten

import (
	"github.com/prometheus/client_golang/prometheus"
)

// metrics are what the write path counts. Labels would be bounded by
// construction; there are none.
type metrics struct {
	created    prometheus.Counter
	collisions prometheus.Counter
	retries    prometheus.Counter
	found      prometheus.Counter
	replays    prometheus.Counter
	listed     prometheus.Counter
	harmful    prometheus.Counter
	banned     prometheus.Counter
	warned     prometheus.Counter
	rechecked  prometheus.Counter
	worse      prometheus.Counter
}

func newMetrics(reg prometheus.Registerer) *metrics {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Namespace: "curt", Name: name, Help: help})
	}
	m := &metrics{
		created: counter("links_created_total", "Links that were stored."),
		collisions: counter("code_collisions_total",
			"Codes promised to be unique that were taken. Any growth without aliases of that shape means that leases are older than links: raise an alarm."),
		retries:   counter("create_retries_total", "Creates repeated with the same id because the store's answer was lost."),
		found:     counter("creates_deduplicated_total", "Creates that were given an existing link."),
		replays:   counter("creates_replayed_total", "Creates answered from what their idempotency key stands for."),
		listed:    counter("links_listed_total", "Links that were refused because a blocklist forbids their destination."),
		harmful:   counter("links_harmful_total", "Links that were refused because of their score."),
		banned:    counter("links_banned_total", "Links that were refused because of a ban."),
		rechecked: counter("links_rechecked_total", "Links that were judged again after they were made."),
		worse:     counter("links_rechecked_worse_total", "Links that got a graver safety when they were judged again."),
		warned:    counter("links_warned_total", "Links that were made with a warning, or got one when they were changed."),
	}
	if reg != nil {
		reg.MustRegister(m.created, m.collisions, m.retries, m.found, m.replays, m.listed, m.harmful, m.banned, m.warned, m.rechecked, m.worse)
	}
	return m
}
