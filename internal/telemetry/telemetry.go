// Package telemetry keeps the metrics that operators scrape, and makes the spans of
// traces when the environment asks for them. A registry is passed to whoever counts;
// nothing is registered globally, and no label takes a value that a stranger can choose.
package telemetry

import (
	"net/http"
	"net/http/pprof"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Metrics is the registry of one process.
type Metrics struct{ registry *prometheus.Registry }

// New returns a registry that describes the process and the Go runtime.
func New(version string) *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry()}
	m.registry.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	build := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "curt_build_info", Help: "Always 1; the version is a label.",
	}, []string{"version"})
	build.WithLabelValues(version).Set(1)
	m.registry.MustRegister(build)
	return m
}

// Counter reports a number that only grows, read when somebody scrapes. Names are
// registered once; a second time is a mistake in the program and panics.
func (m *Metrics) Counter(name, help string, read func() uint64) {
	m.registry.MustRegister(prometheus.NewCounterFunc(
		prometheus.CounterOpts{Name: name, Help: help}, func() float64 { return float64(read()) }))
}

// CounterOf is Counter for one value of a label. The values of a name must be a closed
// set: never what a stranger sent.
func (m *Metrics) CounterOf(name, help, label, value string, read func() uint64) {
	m.registry.MustRegister(prometheus.NewCounterFunc(
		prometheus.CounterOpts{Name: name, Help: help, ConstLabels: prometheus.Labels{label: value}},
		func() float64 { return float64(read()) }))
}

// Gauge reports a number that goes up and down, read when somebody scrapes.
func (m *Metrics) Gauge(name, help string, read func() float64) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, read))
}

// GaugeOf is Gauge for one value of a label, as CounterOf is Counter.
func (m *Metrics) GaugeOf(name, help, label, value string, read func() float64) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(
		prometheus.GaugeOpts{Name: name, Help: help, ConstLabels: prometheus.Labels{label: value}}, read))
}

// Handler answers /metrics and /debug/pprof/ for the admin listener. There is no
// /debug/pprof/cmdline: a command line may hold the admin key.
func (m *Metrics) Handler() *http.ServeMux {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{Registry: m.registry}))
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	return mux
}

// Registerer is for packages that make their own metrics.
func (m *Metrics) Registerer() prometheus.Registerer { return m.registry }
