package telemetry

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"math"
	"net/url"
	"os"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// maxSpans bounds the queue of spans, whose places are made at the start; at 16 bytes
// each, 16 MiB.
const maxSpans = 1 << 20

// numbers checks batches, whose times are in milliseconds, and the limits of spans,
// which are off when they are negative.
func numbers(getenv func(string) string) error {
	errs := []error{
		number(getenv, "OTEL_BSP_SCHEDULE_DELAY", 1, math.MaxInt32),
		number(getenv, "OTEL_BSP_EXPORT_TIMEOUT", 0, math.MaxInt32),
		number(getenv, "OTEL_BSP_MAX_QUEUE_SIZE", 1, maxSpans),
		number(getenv, "OTEL_BSP_MAX_EXPORT_BATCH_SIZE", 1, maxSpans),
	}
	for _, limit := range []string{
		"OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT", "OTEL_ATTRIBUTE_COUNT_LIMIT", "OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT",
		"OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT", "OTEL_SPAN_EVENT_COUNT_LIMIT", "OTEL_EVENT_ATTRIBUTE_COUNT_LIMIT",
		"OTEL_SPAN_LINK_COUNT_LIMIT", "OTEL_LINK_ATTRIBUTE_COUNT_LIMIT",
	} {
		errs = append(errs, number(getenv, limit, -1, math.MaxInt32))
	}
	return errors.Join(errs...)
}

func number(getenv func(string) string, name string, least, most int) error {
	value := strings.TrimSpace(getenv(name))
	if n, err := strconv.Atoi(value); value != "" && (err != nil || n < least || n > most) {
		return &SettingError{name, value, fmt.Sprintf("expected a whole number from %d to %d", least, most)}
	}
	return nil
}

func truth(getenv func(string) string, name string) error {
	value := strings.TrimSpace(getenv(name))
	if value != "" && !strings.EqualFold(value, "true") && !strings.EqualFold(value, "false") {
		return &SettingError{name, value, "expected true or false"}
	}
	return nil
}

// pairs calls good with each key and decoded value of a list, and reports whether the
// list has nothing else.
func pairs(list string, good func(key, value string) bool) bool {
	for pair := range strings.SplitSeq(list, ",") {
		key, value, found := strings.Cut(pair, "=")
		value, err := url.PathUnescape(strings.TrimSpace(value))
		if !found || err != nil || !good(strings.TrimSpace(key), value) {
			return false
		}
	}
	return true
}

// headers checks what is sent to the receiver. It is where its keys are, so that only
// its setting is named.
func headers(getenv func(string) string, name string) error {
	list := strings.TrimSpace(getenv(name))
	if list == "" || pairs(list, func(key, value string) bool {
		return httpguts.ValidHeaderFieldName(key) && httpguts.ValidHeaderFieldValue(value)
	}) {
		return nil
	}
	return &SettingError{name, "***", "expected name=value pairs, separated by commas, such as authorization=Bearer%20KEY"}
}

func attributes(getenv func(string) string) error {
	const name = "OTEL_RESOURCE_ATTRIBUTES"
	list := strings.TrimSpace(getenv(name))
	if list == "" || pairs(list, func(key, _ string) bool { return key != "" }) {
		return nil
	}
	return &SettingError{name, list, "expected key=value pairs, separated by commas, such as deployment.environment.name=test"}
}

// authorities checks the file of those who vouch for the receiver.
func authorities(getenv func(string) string, name string) error {
	path := strings.TrimSpace(getenv(name))
	if path == "" {
		return nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return &SettingError{name, path, "expected a readable file: " + err.Error()}
	}
	if !x509.NewCertPool().AppendCertsFromPEM(text) {
		return &SettingError{name, path, "expected PEM certificates"}
	}
	return nil
}

// client checks the certificate that we show to the receiver, and its key.
func client(getenv func(string) string, certificate, key string) error {
	path, keyPath := strings.TrimSpace(getenv(certificate)), strings.TrimSpace(getenv(key))
	switch {
	case path == "" && keyPath == "":
		return nil
	case path == "":
		return &SettingError{key, keyPath, "certificate and key are both required; set " + certificate + " too"}
	case keyPath == "":
		return &SettingError{certificate, path, "certificate and key are both required; set " + key + " too"}
	}
	if _, err := tls.LoadX509KeyPair(path, keyPath); err != nil {
		return &SettingError{certificate, path, "expected a PEM certificate and its key: " + err.Error()}
	}
	return nil
}
