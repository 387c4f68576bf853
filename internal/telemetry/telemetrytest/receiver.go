// Package telemetrytest receives the spans that a process sends.
package telemetrytest

import (
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	trace "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// Receiver is an OTLP receiver over HTTP at URL that keeps what it gets. What is no
// OTLP fails the test.
type Receiver struct {
	*httptest.Server

	mu    sync.Mutex
	spans []*trace.Span // guarded by mu
	about []string      // guarded by mu
}

// NewReceiver starts a receiver, which ends with the test.
func NewReceiver(t testing.TB) *Receiver {
	t.Helper()
	r := &Receiver{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		batch, err := read(q)
		if err != nil {
			t.Errorf("%s %s: %v", q.Method, q.URL.Path, err)
		}
		r.keep(batch)
		w.Header().Set("Content-Type", "application/x-protobuf")
	}))
	t.Cleanup(r.Close)
	return r
}

func read(q *http.Request) (*collector.ExportTraceServiceRequest, error) {
	batch, body := new(collector.ExportTraceServiceRequest), io.Reader(q.Body)
	if q.Method != http.MethodPost || q.URL.Path != "/v1/traces" || q.Header.Get("Content-Type") != "application/x-protobuf" {
		return batch, errors.New("no OTLP of traces")
	}
	if q.Header.Get("Content-Encoding") == "gzip" {
		z, err := gzip.NewReader(q.Body)
		if err != nil {
			return batch, err
		}
		body = z
	}
	text, err := io.ReadAll(body)
	if err != nil {
		return batch, err
	}
	return batch, proto.Unmarshal(text, batch)
}

func (r *Receiver) keep(batch *collector.ExportTraceServiceRequest) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, of := range batch.GetResourceSpans() {
		for _, a := range of.GetResource().GetAttributes() {
			r.about = append(r.about, a.GetKey()+"="+a.GetValue().GetStringValue())
		}
		for _, scope := range of.GetScopeSpans() {
			r.spans = append(r.spans, scope.GetSpans()...)
		}
	}
}

// Spans are all spans so far.
func (r *Receiver) Spans() []*trace.Span {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.spans)
}

// About is what the senders said of themselves, as key=value.
func (r *Receiver) About() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.about)
}

// Span returns the first span of a name; without one the test ends.
func (r *Receiver) Span(t testing.TB, name string) *trace.Span {
	t.Helper()
	spans := r.Spans()
	i := slices.IndexFunc(spans, func(s *trace.Span) bool { return s.GetName() == name })
	if i < 0 {
		t.Fatalf("no span %q among %d: %v", name, len(spans), spans)
	}
	return spans[i]
}
