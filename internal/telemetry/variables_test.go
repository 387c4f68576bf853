package telemetry_test

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"curt/internal/telemetry"
)

func TestWrongVariablesAreNamed(t *testing.T) {
	noPEM := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(noPEM, []byte("none"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, wrong := range []string{
		"OTEL_TRACES_EXPORTER=zipkin", "OTEL_EXPORTER_OTLP_PROTOCOL=grpc", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=http/json",
		"OTEL_TRACES_SAMPLER=sometimes", "OTEL_PROPAGATORS=tracecontext,b3", "OTEL_EXPORTER_OTLP_ENDPOINT=localhost:4318",
		"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://user:pass@%zz",
		"OTEL_EXPORTER_OTLP_HEADERS=Authorization Bearer-pass", "OTEL_EXPORTER_OTLP_HEADERS=a=pass,", "OTEL_EXPORTER_OTLP_HEADERS=a b=pass",
		"OTEL_EXPORTER_OTLP_TRACES_HEADERS=a=pass%zz", "OTEL_EXPORTER_OTLP_TRACES_HEADERS=a=pass%0a",
		"OTEL_EXPORTER_OTLP_COMPRESSION=zstd", "OTEL_EXPORTER_OTLP_TRACES_COMPRESSION=on", "OTEL_EXPORTER_OTLP_INSECURE=yes",
		"OTEL_EXPORTER_OTLP_TIMEOUT=10s", "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT=-1",
		"OTEL_EXPORTER_OTLP_CERTIFICATE=/none/ca.pem", "OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE=" + noPEM,
		"OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE=" + noPEM, "OTEL_EXPORTER_OTLP_CLIENT_KEY=" + noPEM,
		"OTEL_SDK_DISABLED=1", "OTEL_RESOURCE_ATTRIBUTES=test", "OTEL_RESOURCE_ATTRIBUTES=a=%zz", "OTEL_RESOURCE_ATTRIBUTES==b",
		"OTEL_BSP_SCHEDULE_DELAY=5s", "OTEL_BSP_EXPORT_TIMEOUT=x", "OTEL_BSP_MAX_QUEUE_SIZE=-1", "OTEL_BSP_MAX_QUEUE_SIZE=999999999999",
		"OTEL_BSP_MAX_EXPORT_BATCH_SIZE=0", "OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT=many", "OTEL_SPAN_LINK_COUNT_LIMIT=1.5",
		"OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT=-2", "OTEL_EVENT_ATTRIBUTE_COUNT_LIMIT=x",
	} {
		name, _, _ := strings.Cut(wrong, "=")
		_, err := telemetry.CheckTraces(environment(wrong))
		var setting *telemetry.SettingError
		if !errors.As(err, &setting) || setting.Name != name || strings.Contains(err.Error(), "pass") {
			t.Errorf("%s: %v", wrong, err)
		}
	}
	for _, value := range []string{"2", "-1", "NaN", "x"} {
		_, err := telemetry.CheckTraces(environment("OTEL_TRACES_SAMPLER=traceidratio", "OTEL_TRACES_SAMPLER_ARG="+value))
		if err == nil {
			t.Errorf("a ratio of %s is taken", value)
		}
	}
	on, err := telemetry.CheckTraces(environment("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=https://user:pass@traces.example/v1/traces",
		"OTEL_TRACES_SAMPLER=parentbased_traceidratio", "OTEL_TRACES_SAMPLER_ARG=0.1", "OTEL_PROPAGATORS=tracecontext, baggage",
		"OTEL_EXPORTER_OTLP_HEADERS=Authorization=Bearer%20pass==, x-tenant = a", "OTEL_EXPORTER_OTLP_COMPRESSION=gzip", "OTEL_EXPORTER_OTLP_TIMEOUT=10000",
		"OTEL_RESOURCE_ATTRIBUTES=a=b, c=d%20e,f=", "OTEL_SDK_DISABLED=False", "OTEL_BSP_MAX_QUEUE_SIZE=2048", "OTEL_SPAN_LINK_COUNT_LIMIT=-1"))
	if err != nil || !on {
		t.Errorf("on is %v, %v", on, err)
	}
}

// TestTheSDKSaysNoValues: what it says of what passes all checks still names none.
func TestTheSDKSaysNoValues(t *testing.T) {
	var log bytes.Buffer
	telemetry.LogSDK(slog.New(slog.NewJSONHandler(&log, nil)))
	t.Cleanup(func() { telemetry.LogSDK(slog.New(slog.DiscardHandler)) })
	set(t, "OTEL_EXPORTER_OTLP_HEADERS=Authorization Bearer-topsecret") // behind the back of the checks
	traces, err := telemetry.NewTraces(t.Context(), "x", environment("OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:1"))
	if err != nil {
		t.Fatal(err)
	}
	if err := traces.Close(); err != nil {
		t.Fatal(err)
	}
	if text := log.String(); !strings.Contains(text, `"sdk":"parse headers"`) || strings.Contains(text, "topsecret") {
		t.Error(text)
	}
}
