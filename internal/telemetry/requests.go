package telemetry

import (
	"cmp"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// otherRoute stands for requests that no route took: their paths and methods are
// strangers' text.
const otherRoute = "other"

// requests are what is counted of the API and of the pages.
type requests struct {
	tracer  *Tracer
	answers *prometheus.CounterVec   // by method, route and class of status
	seconds *prometheus.HistogramVec // by method and route
}

// Requests returns what counts, times and traces the answers of a handler. The labels are
// the method and the route of the http.ServeMux pattern that took the request, which a
// handler that is no ServeMux notes in Request.Pattern itself, or "other", and the class
// of the status: a stranger can choose among them and add none. It is called once, what it
// returns for each handler.
func (m *Metrics) Requests(tracer *Tracer) func(next http.Handler) http.Handler {
	q := &requests{
		tracer: tracer,
		answers: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "curt_api_answers_total", Help: "Responses of the API and of pages by method, route and status class.",
		}, []string{"method", "route", "class"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "curt_api_answer_seconds", Help: "Response time of the API and of pages, by method and route.",
			// A read from memory; a create, which waits for an fsync; the bound of creates
			// (50 ms); and what a person calls slow.
			Buckets: []float64{.0005, .002, .005, .01, .025, .05, .1, .25, 1, 5},
		}, []string{"method", "route"}),
	}
	m.registry.MustRegister(q.answers, q.seconds)
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { q.serve(w, r, next) })
	}
}

func (q *requests) serve(w http.ResponseWriter, r *http.Request, next http.Handler) {
	began := time.Now()
	r, span := q.tracer.startRequest(r)
	seen := &statusWriter{ResponseWriter: w}
	defer func() { // also when a panic cuts the connection
		method, route := routeOf(r.Pattern)
		status := cmp.Or(seen.status, http.StatusOK)
		q.answers.WithLabelValues(method, route, strconv.Itoa(status/100)+"xx").Inc()
		q.seconds.WithLabelValues(method, route).Observe(time.Since(began).Seconds())
		span.endRequest(method, route, status)
	}()
	next.ServeHTTP(seen, r)
}

// routeOf splits the pattern that an http.ServeMux has noted. One without a method
// takes the wrong methods of its path.
func routeOf(pattern string) (method, route string) {
	method, route, ok := strings.Cut(pattern, " ")
	if !ok {
		method, route = otherRoute, pattern
	}
	if route == "" || route == "/" {
		route = otherRoute
	}
	return method, route
}

// statusWriter remembers the status of an answer.
type statusWriter struct {
	http.ResponseWriter
	status int // 0 = none yet
}

// WriteHeader implements http.ResponseWriter. An informational answer is not the last.
func (w *statusWriter) WriteHeader(status int) {
	if w.status == 0 && status >= http.StatusOK {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap is for http.ResponseController.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Bare returns net/http's own writer below those that count, from which alone
// http.MaxBytesReader learns how to end the connection of a client that sends too much.
func Bare(w http.ResponseWriter) http.ResponseWriter {
	for {
		outer, ok := w.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			return w
		}
		w = outer.Unwrap()
	}
}
