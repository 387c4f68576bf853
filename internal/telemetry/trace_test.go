package telemetry_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	sent "go.opentelemetry.io/proto/otlp/trace/v1"

	"curt/internal/telemetry"
	"curt/internal/telemetry/telemetrytest"
)

func environment(pairs ...string) func(string) string {
	return func(name string) string {
		for _, p := range pairs {
			if key, value, _ := strings.Cut(p, "="); key == name {
				return value
			}
		}
		return ""
	}
}

// set puts variables where the SDK reads them, too.
func set(t *testing.T, pairs ...string) func(string) string {
	t.Helper()
	for _, p := range pairs {
		key, value, _ := strings.Cut(p, "=")
		t.Setenv(key, value)
	}
	return environment(pairs...)
}

const (
	callersTrace = "0af7651916cd43dd8448eb211c80319c"
	callersSpan  = "b7ad6b7169203331"
)

// TestSpansArrive: the calls of the API, and what is done for several of them at once.
func TestSpansArrive(t *testing.T) {
	r := telemetrytest.NewReceiver(t)
	traces, err := telemetry.NewTraces(t.Context(), "1.2.3", set(t, "OTEL_EXPORTER_OTLP_ENDPOINT="+r.URL,
		"OTEL_RESOURCE_ATTRIBUTES=deployment.environment.name=test"))
	if err != nil {
		t.Fatal(err)
	}
	tracer := traces.Tracer()
	var callers []context.Context
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/things/{name}", func(w http.ResponseWriter, r *http.Request) {
		callers = append(callers, r.Context())
		_, under := tracer.Start(r.Context(), "below")
		under.End(nil)
		w.WriteHeader(http.StatusInternalServerError)
	})
	h := telemetry.New("x").Requests(tracer)(mux)
	for _, parent := range []string{"00-" + callersTrace + "-" + callersSpan + "-01", "00-zz-1-01", strings.Repeat("0", 9000)} {
		q := httptest.NewRequest(http.MethodPost, "/v1/things/secret-path?q=secret-query", strings.NewReader("secret-body"))
		q.Header.Set("Traceparent", parent)
		q.Header.Set("User-Agent", "secret-agent")
		q.RemoteAddr = "203.0.113.99:1"
		h.ServeHTTP(httptest.NewRecorder(), q)
	}
	all := tracer.StartFor(append(callers, context.Background()), "together")
	all.Int("rows", 3)
	all.End(errors.New("secret-error"))
	one := tracer.StartFor(callers[:1], "alone")
	one.End(nil)
	if err := traces.Close(); err != nil {
		t.Fatal(err)
	}

	call := r.Span(t, "POST /v1/things/{name}")
	if hex.EncodeToString(call.GetTraceId()) != callersTrace || hex.EncodeToString(call.GetParentSpanId()) != callersSpan {
		t.Errorf("the first call is not below its caller's span: %v", call)
	}
	if call.GetKind() != sent.Span_SPAN_KIND_SERVER || call.GetStatus().GetCode() != sent.Status_STATUS_CODE_ERROR {
		t.Errorf("kind or status is wrong: %v", call)
	}
	if s := r.Span(t, "below"); !bytes.Equal(s.GetParentSpanId(), call.GetSpanId()) {
		t.Errorf("not below the call: %v", s)
	}
	if s := r.Span(t, "alone"); !bytes.Equal(s.GetParentSpanId(), call.GetSpanId()) {
		t.Errorf("work for one is not below its span: %v", s)
	}
	if s := r.Span(t, "together"); len(s.GetLinks()) != 3 || len(s.GetParentSpanId()) != 0 || s.GetStatus().GetCode() != sent.Status_STATUS_CODE_ERROR {
		t.Errorf("work for three does not name them: %v", s)
	}
	for _, want := range []string{"service.name=curt", "service.version=1.2.3", "deployment.environment.name=test"} {
		if !slices.Contains(r.About(), want) {
			t.Errorf("no %s in %v", want, r.About())
		}
	}
	for _, s := range r.Spans() {
		if text := s.String(); strings.Contains(text, "secret") || strings.Contains(text, "203.0.113") {
			t.Errorf("a span says what only the log may: %s", text)
		}
	}
}

// TestAReceiverThatIsAwayDelaysNobody: spans are dropped, and closing is bounded.
func TestAReceiverThatIsAwayDelaysNobody(t *testing.T) {
	var log bytes.Buffer
	telemetry.LogSDK(slog.New(slog.NewJSONHandler(&log, nil)))
	t.Cleanup(func() { telemetry.LogSDK(slog.New(slog.DiscardHandler)) })
	traces, err := telemetry.NewTraces(t.Context(), "x", set(t, "OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:1",
		"OTEL_EXPORTER_OTLP_TIMEOUT=200"))
	if err != nil {
		t.Fatal(err)
	}
	for range 5000 { // more than the queue holds
		_, s := traces.Tracer().Start(t.Context(), "x")
		s.End(nil)
	}
	if err := traces.Close(); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(log.String(), `"msg":"traces"`) {
		t.Errorf("nothing was said: %s", log.String())
	}
}

// TestTracesAreOffUnlessAskedFor: and then cost nothing.
func TestTracesAreOffUnlessAskedFor(t *testing.T) {
	for _, env := range [][]string{
		nil,
		{"OTEL_SERVICE_NAME=x"},
		{"OTEL_TRACES_EXPORTER=none", "OTEL_EXPORTER_OTLP_ENDPOINT=http://h:1"},
		{"OTEL_SDK_DISABLED=true", "OTEL_EXPORTER_OTLP_ENDPOINT=http://h:1"},
	} {
		traces, err := telemetry.NewTraces(t.Context(), "x", environment(env...))
		if err != nil || traces != nil || traces.Tracer() != nil {
			t.Errorf("%v: %v, %v", env, traces, err)
		}
		if err := traces.Close(); err != nil {
			t.Error(err)
		}
	}
	var off *telemetry.Tracer
	ctx := t.Context()
	callers := []context.Context{ctx, ctx}
	if n := testing.AllocsPerRun(100, func() {
		_, s := off.Start(ctx, "x")
		s.Int("rows", 1)
		s.End(nil)
		off.StartFor(callers, "x").End(io.EOF)
	}); n != 0 {
		t.Errorf("%v allocations while off", n)
	}
}
