package telemetry

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/sdk/trace"
)

// Traces is where spans go: an OTLP receiver over HTTP that the standard OTEL_
// variables name. A nil Traces is off, with a nil Tracer.
type Traces struct {
	tracer   *Tracer
	provider *trace.TracerProvider
}

// NewTraces returns what the environment asks for; nil = nothing, which is the
// default. What cannot be sent is forgotten, and said where [LogSDK] says: nobody waits
// for it. The SDK reads its variables itself, from the environment of the process.
func NewTraces(ctx context.Context, version string, getenv func(string) string) (*Traces, error) {
	on, err := CheckTraces(getenv)
	if err != nil || !on {
		return nil, err
	}
	exporter, err := otlptracehttp.New(ctx)
	if err != nil {
		return nil, fmt.Errorf("send traces: %w", err)
	}
	about, err := resource.New(ctx,
		resource.WithAttributes(attribute.String("service.name", "curt"), attribute.String("service.version", version)),
		resource.WithTelemetrySDK(), resource.WithFromEnv()) // the last wins
	if err != nil {
		return nil, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	provider := trace.NewTracerProvider(trace.WithBatcher(exporter), trace.WithResource(about))
	t := &Traces{provider: provider, tracer: &Tracer{tracer: provider.Tracer("curt")}}
	if wanted := getenv("OTEL_PROPAGATORS"); wanted == "" || strings.Contains(wanted, "tracecontext") {
		t.tracer.remote = propagation.TraceContext{}
	}
	return t, nil
}

// ErrRefused is of a receiver of spans that answers, and takes none of ours.
var ErrRefused = errors.New("refused")

// Probe sends a batch without a span to the receiver that the environment names, as
// [NewTraces] would, and returns the variable that names it. What answers and does not
// take it is [ErrRefused]; any other error means that nobody answered before ctx ended.
// No error says where the receiver is: its URL may hold a key.
func Probe(ctx context.Context, getenv func(string) string) (setting string, err error) {
	setting = exporters
	for _, name := range []string{endpoint, tracesEndpoint} {
		if getenv(name) != "" {
			setting = name
		}
	}
	client := otlptracehttp.NewClient(otlptracehttp.WithRetry(otlptracehttp.RetryConfig{Enabled: false}))
	if err := client.Start(ctx); err != nil {
		return setting, fmt.Errorf("%w: %w", ErrRefused, err)
	}
	err = client.UploadTraces(ctx, nil)
	_ = client.Stop(ctx) // which only interrupts what is under way
	if err == nil {
		return setting, nil
	}
	if unanswered, ok := errors.AsType[*url.Error](err); ok {
		return setting, unanswered.Err
	}
	if _, answer, ok := strings.Cut(err.Error(), "failed to send to "); ok { // a URL, and what it said
		_, answer, _ = strings.Cut(answer, ": ")
		return setting, fmt.Errorf("%w: %s", ErrRefused, answer)
	}
	return setting, err
}

// Tracer makes spans; nil when t is.
func (t *Traces) Tracer() *Tracer {
	if t == nil {
		return nil
	}
	return t.tracer
}

// lastSpans is how long Close waits for the receiver.
const lastSpans = 3 * time.Second

// Close sends what is left, for 3 s at most, and ends the goroutine of the sender. A
// receiver that is away is no failure of ours.
func (t *Traces) Close() error {
	if t == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), lastSpans)
	defer cancel()
	if err := t.provider.Shutdown(ctx); err != nil {
		otel.Handle(err)
	}
	return nil
}
