package cli

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"os"
	"strings"
	"testing"
)

// TestTheLogIsJSONElsewhere: one object a line, whatever strangers put into it.
func TestTheLogIsJSONElsewhere(t *testing.T) {
	var b bytes.Buffer
	log := Terminal{Err: &b}.Logger("warn")
	log.InfoContext(t.Context(), "not asked for")
	log.WarnContext(t.Context(), "one", slog.String("agent", "a\r\n{\"level\":\"ERROR\"}\x1b[2J\u2028"))
	log.ErrorContext(t.Context(), "two")
	lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
	if len(lines) != 2 || strings.ContainsAny(b.String(), "\r\x1b") {
		t.Fatalf("%d lines: %q", len(lines), b.String())
	}
	for _, line := range lines {
		var entry struct{ Time, Level, Msg string }
		if err := json.Unmarshal([]byte(line), &entry); err != nil || entry.Msg == "" || entry.Time == "" || entry.Level == "" {
			t.Errorf("%q: %v", line, err)
		}
	}
}

// TestTheLogIsTextForPeople: on a terminal, and not on /dev/null, which looks like one.
func TestTheLogIsTextForPeople(t *testing.T) {
	people, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("this test needs a terminal: %v", err)
		}
		t.Skip("NOT PROVEN HERE: this test needs a terminal:", err)
	}
	defer func() { _ = people.Close() }()
	if _, ok := (Terminal{Err: people}).Logger("info").Handler().(*slog.TextHandler); !ok {
		t.Error("no text on a terminal")
	}
	nobody, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = nobody.Close() }()
	if _, ok := (Terminal{Err: nobody}).Logger("info").Handler().(*slog.JSONHandler); !ok {
		t.Error("no JSON on /dev/null")
	}
}
