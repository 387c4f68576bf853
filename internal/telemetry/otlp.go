package telemetry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/url"
	"slices"
	"strconv"
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

// SettingError is an OTEL_ variable that would not be understood.
type SettingError struct{ Name, Value, Want string }

// Error returns one line.
func (e *SettingError) Error() string { return e.Name + "=" + e.Value + ": " + e.Want }

// Variables that turn traces on, and one each that turns them off.
const (
	endpoint       = "OTEL_EXPORTER_OTLP_ENDPOINT"
	tracesEndpoint = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
	exporters      = "OTEL_TRACES_EXPORTER"
	disabled       = "OTEL_SDK_DISABLED"
)

// CheckTraces looks at the variables that decide whether and how spans are sent, as
// getenv reads them. on says whether they are. The SDK itself takes a wrong value for
// none, so what is wrong is said here, as a [*SettingError].
func CheckTraces(getenv func(string) string) (on bool, err error) {
	on = getenv(endpoint) != "" || getenv(tracesEndpoint) != "" || getenv(exporters) == "otlp"
	if strings.EqualFold(getenv(disabled), "true") || getenv(exporters) == "none" {
		on = false
	}
	return on, errors.Join(
		oneOf(getenv, exporters, "otlp", "none"),
		oneOf(getenv, "OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf"),
		oneOf(getenv, "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/protobuf"),
		oneOf(getenv, "OTEL_TRACES_SAMPLER", "always_on", "always_off", "traceidratio",
			"parentbased_always_on", "parentbased_always_off", "parentbased_traceidratio"),
		eachOf(getenv, "OTEL_PROPAGATORS", "tracecontext", "baggage", "none"),
		address(getenv, endpoint), address(getenv, tracesEndpoint), ratio(getenv),
	)
}

func oneOf(getenv func(string) string, name string, allowed ...string) error {
	if value := getenv(name); value != "" && !slices.Contains(allowed, value) {
		return &SettingError{name, value, "want " + strings.Join(allowed, " or ")}
	}
	return nil
}

func eachOf(getenv func(string) string, name string, allowed ...string) error {
	for part := range strings.SplitSeq(getenv(name), ",") {
		if part = strings.TrimSpace(part); part != "" && !slices.Contains(allowed, part) {
			return &SettingError{name, getenv(name), "want some of " + strings.Join(allowed, ", ")}
		}
	}
	return nil
}

// address checks a URL. It may hold a password, so only its setting is named.
func address(getenv func(string) string, name string) error {
	u, err := url.Parse(getenv(name))
	if getenv(name) == "" || (err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "") {
		return nil
	}
	return &SettingError{name, "***", "want a URL such as http://localhost:4318"}
}

func ratio(getenv func(string) string) error {
	const name = "OTEL_TRACES_SAMPLER_ARG"
	value := getenv(name)
	if value == "" || !strings.HasSuffix(getenv("OTEL_TRACES_SAMPLER"), "traceidratio") {
		return nil
	}
	if f, err := strconv.ParseFloat(value, 64); err != nil || math.IsNaN(f) || f < 0 || f > 1 {
		return &SettingError{name, value, "want a number from 0 to 1"}
	}
	return nil
}

// NewTraces returns what the environment asks for; nil = nothing, which is the
// default. What cannot be sent is logged and forgotten: nobody waits for it. It is
// called once in a process, because the SDK has one place for its errors.
func NewTraces(ctx context.Context, version string, getenv func(string) string, log *slog.Logger) (*Traces, error) {
	on, err := CheckTraces(getenv)
	if err != nil || !on {
		return nil, err
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		log.WarnContext(context.WithoutCancel(ctx), "traces", slog.Any("err", err))
	}))
	// The variables of the exporter, the batches and the sampler are read by the SDK.
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
