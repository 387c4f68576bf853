package deploy_test

import (
	"bytes"
	"encoding/hex"
	"net/http"
	"slices"
	"strings"
	"testing"

	trace "go.opentelemetry.io/proto/otlp/trace/v1"

	"curt/internal/telemetry/telemetrytest"
	"curt/test/internal/curttest"
)

// TestTraces: calls of the API, transactions and batches of clicks are sent to where the
// OTEL_ variables say, below the span that the caller names; redirects are not.
func TestTraces(t *testing.T) {
	t.Parallel()
	r := telemetrytest.NewReceiver(t)
	s := curttest.Start(t, curttest.Options{Env: []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + r.URL, "OTEL_SERVICE_NAME=links"}})
	c, err := curttest.Dial(t.Context(), s.Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	l, _, err := c.Create("https://example.com/secret")
	if err != nil {
		t.Fatal(err)
	}
	const theirs, parent = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
	const below = "Traceparent: 00-" + theirs + "-" + parent + "-01"
	ask(t, s.Addr, http.MethodPatch, "/api/v1/links/"+l.Code, below, "Content-Type: application/json") // without a body: 400
	for range 50 {
		if a, err := c.Do(http.MethodGet, "/"+l.Code, []string{below}, ""); err != nil || a.Status != http.StatusFound {
			t.Fatalf("%d, %v", a.Status, err)
		}
	}
	if code, _ := s.Terminate(t); code != 0 {
		t.Errorf("ended with %d", code)
	}
	patch := r.Span(t, "PATCH /api/v1/links/{code}")
	if hex.EncodeToString(patch.GetTraceId()) != theirs || hex.EncodeToString(patch.GetParentSpanId()) != parent {
		t.Errorf("not below its caller's span: %v", patch)
	}
	create := r.Span(t, "POST /api/v1/links")
	calls, committed := 0, false
	for _, span := range r.Spans() {
		committed = committed || span.GetName() == "curt.db transaction" && isFor(span, create)
		if span.GetKind().String() == "SPAN_KIND_SERVER" {
			calls++
		}
		if text := span.String(); strings.Contains(text, "secret") || strings.Contains(text, l.Code) {
			t.Errorf("a span names a link: %s", text)
		}
	}
	r.Span(t, "fold batch")
	if !committed {
		t.Error("no transaction for the create")
	}
	if calls != 2 {
		t.Errorf("2 calls of the API and 50 redirects made %d spans of requests", calls)
	}
	if about := strings.Join(r.About(), " "); !strings.Contains(about, "service.name=links") {
		t.Errorf("the sender says of itself %s", about)
	}
}

// isFor reports whether work was for a call: below its span, or for several of which it
// names this one.
func isFor(work, call *trace.Span) bool {
	return bytes.Equal(work.GetParentSpanId(), call.GetSpanId()) ||
		slices.ContainsFunc(work.GetLinks(), func(l *trace.Span_Link) bool { return bytes.Equal(l.GetSpanId(), call.GetSpanId()) })
}

// TestWithoutVariablesNothingIsTraced: nothing of the SDK runs.
func TestWithoutVariablesNothingIsTraced(t *testing.T) {
	t.Parallel()
	s := curttest.Start(t, curttest.Options{})
	ask(t, s.Addr, http.MethodGet, "/api/v1/links")
	stacks := ask(t, s.Admin, http.MethodGet, "/debug/pprof/goroutine?debug=2")
	if !strings.Contains(stacks, "curt/internal/clicks") {
		t.Fatalf("these are no stacks:\n%.500s", stacks)
	}
	for _, part := range []string{"opentelemetry", "google.golang.org/grpc"} {
		if strings.Contains(stacks, part) {
			t.Errorf("a goroutine of %s runs:\n%s", part, stacks)
		}
	}
}

// TestAWrongVariableStopsTheStart with the exit code of wrong settings.
func TestAWrongVariableStopsTheStart(t *testing.T) {
	t.Parallel()
	for variable, want := range map[string]string{
		"OTEL_EXPORTER_OTLP_ENDPOINT=localhost:4318":                "OTEL_EXPORTER_OTLP_ENDPOINT=***",
		"OTEL_EXPORTER_OTLP_HEADERS=Authorization Bearer-topsecret": "OTEL_EXPORTER_OTLP_HEADERS=***",
		"OTEL_RESOURCE_ATTRIBUTES=test":                             "OTEL_RESOURCE_ATTRIBUTES=test",
	} {
		s, err := curttest.Launch(t, curttest.Options{Env: []string{variable}})
		if err == nil || s.ExitCode() != 78 || !strings.Contains(s.Log(), want) || strings.Contains(s.Log(), "topsecret") {
			t.Errorf("%s: ended with %v: %s", variable, err, s.Log())
		}
	}
}
