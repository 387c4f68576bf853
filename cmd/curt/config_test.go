package main

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"curt/internal/cli"
	"curt/internal/telemetry/telemetrytest"
	"curt/internal/testkit"
)

func TestPrintedConfigurationStartsTheSame(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("CURT_DOMAINS", "a.example,b.example")
	args := []string{"--data=" + dir, "--anonymous", "--cache-size=2MiB"}
	code, first, errs := curt(t.Context(), append([]string{"config", "print"}, args...)...)
	if code != 0 {
		t.Fatalf("exit %d, %s", code, errs)
	}
	file := filepath.Join(dir, "curt.toml")
	if err := os.WriteFile(file, []byte(first), 0o600); err != nil {
		t.Fatal(err)
	}
	_ = os.Unsetenv("CURT_DOMAINS") // t.Setenv puts back what was there
	code, second, errs := curt(t.Context(), "config", "print", "--config="+file)
	if code != 0 || values(first) != values(second) {
		t.Errorf("exit %d, %s\n%s\nbecame\n%s", code, errs, first, second)
	}
	if !strings.Contains(first, "# set by CURT_DOMAINS\n") || !strings.Contains(second, "domains = [\"a.example\", \"b.example\"] # set in "+file+", line 6\n") {
		t.Errorf("the origins are not told:\n%s\n%s", first, second)
	}
}

// values drops the comments of what config print wrote.
func values(toml string) string {
	var lines []string
	for line := range strings.Lines(toml) {
		value, _, _ := strings.Cut(line, " # ")
		if !strings.HasPrefix(line, "#") {
			lines = append(lines, value)
		}
	}
	return strings.Join(lines, "\n")
}

func TestCheckOfARunningServer(t *testing.T) {
	address, folder := serving(t)
	host := strings.TrimPrefix(address, "http://")
	code, out, errs := curt(t.Context(), "config", "check", "--listen="+host, "--admin-listen=", "--data="+folder)
	if code != 0 || strings.Count(out, "ok    ") != strings.Count(out, "\n") || !strings.Contains(out, "locked by a running server") ||
		!strings.Contains(out, "CURT_LISTEN="+host+": in use") || !strings.Contains(out, filepath.Join(folder, "admin.key")) {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
	// The address is a stranger's when nobody holds the folder.
	code, out, _ = curt(t.Context(), "config", "check", "--listen="+host, "--admin-listen=", "--data="+t.TempDir())
	if code != 78 || !strings.Contains(out, "wrong CURT_LISTEN="+host+": ") {
		t.Errorf("exit %d\n%s", code, out)
	}
}

func TestCheckTellsEverythingThatIsWrong(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("nothing\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, errs := curt(t.Context(), "config", "check", "--listen=127.0.0.1:0", "--admin-listen=nowhere", "--data="+file,
		"--tls-cert="+file, "--tls-key="+file, "--admin-key-file="+file, "--geoip="+file, "--code-length=3", "--limits=gold=1/m")
	for _, setting := range []string{"CURT_ADMIN_LISTEN", "CURT_DATA", "CURT_TLS_CERT", "CURT_ADMIN_KEY_FILE", "CURT_GEOIP", "CURT_CODE_LENGTH", "CURT_LIMITS"} {
		if strings.Count(out, "wrong "+setting+"=") != 1 {
			t.Errorf("%s is not told once", setting)
		}
	}
	if code != 78 || errs != "curt: invalid settings: 7\n" || !strings.Contains(out, "ok    CURT_LISTEN=127.0.0.1:0: free\n") {
		t.Errorf("exit %d, %q\n%s", code, errs, out)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("%v is left, %v", left, err)
	}
}

func TestCheckTellsAWrongSettingOnce(t *testing.T) {
	for _, arg := range []string{"--cache=memcached://127.0.0.1:1", "--cache=redis://u:hunt/er2@127.0.0.1:1", "--events=kafka://u:hunt/er2@127.0.0.1:1", "--events=amqp://127.0.0.1:1"} {
		setting, _, _ := strings.Cut(strings.ToUpper(strings.TrimPrefix(arg, "--")), "=")
		_, out, _ := curt(t.Context(), "config", "check", "--listen=127.0.0.1:0", "--admin-listen=", "--data="+t.TempDir(), arg)
		if strings.Count(out, "CURT_"+setting+"=") != 1 || strings.Contains(out, "er2") {
			t.Errorf("%s:\n%s", arg, out)
		}
	}
}

func TestCheckTriesTheBaseURLAndTheReceiverOfTraces(t *testing.T) {
	address, folder := serving(t)
	host := strings.TrimPrefix(address, "http://")
	closed := "http://127.0.0.1:" + testkit.FreePort(t)
	stranger := httptest.NewServer(http.NotFoundHandler())
	defer stranger.Close()
	receiver := telemetrytest.NewReceiver(t)
	for name, c := range map[string]struct {
		base, traces string
		code         int
		says         string
	}{
		"both answer":                     {address, receiver.URL, 0, "ok    OTEL_EXPORTER_OTLP_ENDPOINT: the trace receiver accepts traces\nok    " + address + " is served by curt\n"},
		"a name that is nobody's":         {"https://curt.invalid", "", 78, "wrong CURT_BASE_URL=https://curt.invalid: "},
		"another server":                  {stranger.URL, "", 0, "warn  " + stranger.URL + "/healthz returns 404, and not from curt: "},
		"no server":                       {closed, "", 0, "warn  Get "},
		"a receiver that takes none":      {address, stranger.URL, 78, "wrong OTEL_EXPORTER_OTLP_ENDPOINT=***: refused: 404 Not Found (body: 404 page not found)\n"},
		"a receiver that does not answer": {address, closed, 0, "warn  OTEL_EXPORTER_OTLP_ENDPOINT: the trace receiver is unavailable: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", c.traces)
			code, out, errs := curt(t.Context(), "config", "check", "--listen="+host, "--admin-listen=", "--data="+folder, "--base-url="+c.base)
			if code != c.code || !strings.Contains(out, c.says) || strings.Contains(out, c.traces+"/") && c.traces != "" {
				t.Errorf("exit %d, %q\n%s", code, errs, out)
			}
		})
	}
}

func TestCheckLeavesNothingBehind(t *testing.T) {
	dir := t.TempDir()
	for _, data := range []string{dir, filepath.Join(dir, "not", "yet")} {
		if code, out, errs := curt(t.Context(), "config", "check", "--listen=127.0.0.1:0", "--admin-listen=127.0.0.1:0", "--data="+data); code != 0 {
			t.Errorf("%s: exit %d\n%s%s", data, code, out, errs)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("%v is left, %v", left, err)
	}
}

func TestTheLogNamesEveryAddress(t *testing.T) {
	log := newLines()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	done := make(chan int, 1)
	go func() {
		done <- run(ctx, []string{"serve", "--listen=127.0.0.1:0", "--api-listen=127.0.0.2:0", "--admin-listen=127.0.0.3:0", "--data=" + t.TempDir()}, cli.Terminal{In: strings.NewReader(""), Out: log, Err: log})
	}()
	select {
	case <-log.listening:
	case code := <-done:
		t.Fatalf("exit %d\n%s", code, log)
	}
	stop()
	<-done
	for line := range strings.Lines(log.String()) {
		var entry map[string]any
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			t.Fatal(err)
		}
		if entry["msg"] != "listening" {
			continue
		}
		for name, prefix := range map[string]string{"addr": "127.0.0.1:", "api_addr": "127.0.0.2:", "admin_addr": "127.0.0.3:"} {
			if text, _ := entry[name].(string); !strings.HasPrefix(text, prefix) {
				t.Errorf("%s is %v", name, entry[name])
			}
		}
		return
	}
	t.Error("no such line")
}
