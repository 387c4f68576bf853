package telemetry

import (
	"errors"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

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
// getenv reads them, and at the files that they name. on says whether spans are sent.
// The SDK itself takes a wrong value for none, and some for a panic, so what is wrong
// is said here, as a [*SettingError].
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
		truth(getenv, disabled), attributes(getenv), numbers(getenv), sending(getenv),
	)
}

// sending checks the variables of the exporter, each of which may be set for traces alone.
func sending(getenv func(string) string) error {
	var errs []error
	for _, prefix := range []string{"OTEL_EXPORTER_OTLP_", "OTEL_EXPORTER_OTLP_TRACES_"} {
		errs = append(errs,
			headers(getenv, prefix+"HEADERS"),
			oneOf(getenv, prefix+"COMPRESSION", "gzip", "none"),
			truth(getenv, prefix+"INSECURE"),
			number(getenv, prefix+"TIMEOUT", 0, math.MaxInt32),
			authorities(getenv, prefix+"CERTIFICATE"),
			client(getenv, prefix+"CLIENT_CERTIFICATE", prefix+"CLIENT_KEY"),
		)
	}
	return errors.Join(errs...)
}

func oneOf(getenv func(string) string, name string, allowed ...string) error {
	if value := getenv(name); value != "" && !slices.Contains(allowed, value) {
		return &SettingError{name, value, "expected one of " + strings.Join(allowed, ", ")}
	}
	return nil
}

func eachOf(getenv func(string) string, name string, allowed ...string) error {
	for part := range strings.SplitSeq(getenv(name), ",") {
		if part = strings.TrimSpace(part); part != "" && !slices.Contains(allowed, part) {
			return &SettingError{name, getenv(name), "expected some of " + strings.Join(allowed, ", ")}
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
	return &SettingError{name, "***", "expected a URL such as http://localhost:4318"}
}

func ratio(getenv func(string) string) error {
	const name = "OTEL_TRACES_SAMPLER_ARG"
	value := getenv(name)
	if value == "" || !strings.HasSuffix(getenv("OTEL_TRACES_SAMPLER"), "traceidratio") {
		return nil
	}
	if f, err := strconv.ParseFloat(value, 64); err != nil || math.IsNaN(f) || f < 0 || f > 1 {
		return &SettingError{name, value, "expected a number from 0 to 1"}
	}
	return nil
}
