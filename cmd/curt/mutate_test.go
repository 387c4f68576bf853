package main

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"curt/internal/config"
	"curt/internal/testkit"
)

// A mutation is one value that makes a right configuration wrong.
type mutation struct {
	key   string // as in the file
	value any    // as in the file; its text is what flags and the environment have
	only  string // the one source that it is tried from; "" = all three
}

// mutations are wrong values of every setting. Files and folders are below dir.
func mutations(dir string) []mutation {
	missing, broken := filepath.Join(dir, "missing"), filepath.Join(dir, "broken")
	of := func(key string, values ...any) (ms []mutation) {
		for _, v := range values {
			ms = append(ms, mutation{key: key, value: v})
		}
		return ms
	}
	var all []mutation
	for _, ms := range [][]mutation{
		of("listen", "8080", "localhost", "host:abc", "127.0.0.1:99999", "127.0.0.1:-1", "[::1:80", "1.2.3.256:80", "a b:80", ""),
		of("api_listen", "8081", "x:http", "127.0.0.1:65536"),
		of("admin_listen", "nowhere", "127.0.0.1:1e3", "::1:9090:x"),
		of("data", filepath.Join(broken, "below"), "/dev/null/x", strings.Repeat("d", 300), dir+strings.Repeat("/long", 90), ""),
		of("base_url", "go.example.com", "ftp://x", "https://x/path", "https://x?q", "https://", "http://x:99999", "http://x:", "http://a b", "https://exa_mple!"),
		of("domains", "http://x", "a..example", "a b", "x:99999", "x:y", "go.example.com"),
		of("admin_key", "short", "curt_"+strings.Repeat("é", 30)),
		of("admin_key_file", missing, dir, broken),
		of("limits", "free", "gold=10/m", "free=0/m", "free=10/y", "free=1/m,free=2/m", "free=10/m+20/m"),
		of("unknown_limit", "300", "300/y", "-1/m", "on", ""),
		of("report_limit", "10", "0/h", "10/w", ""), of("appeal_limit", "5", "on"),
		of("review_due", "0s", "169h", "5"), of("report_quarantine", -1, 1, 1001), of("report_retention", "0d", "1m", "90"),
		of("code_length", 3, 11, -1, 1<<40),
		of("trusted_proxies", "everybody", "10.0.0.1", "10.0.0.0/33"),
		of("lane", "yes", "ON", ""),
		of("max_connections", 0, -5, 1_000_001),
		of("tls_cert", missing, dir),
		of("tls_key", missing),
		of("drain_delay", "-1s", "11m", "5", "soon", ""),
		of("drain_limit", "-1s", "1h", "5 s"),
		of("fold", "off", "Pause"),
		of("fold_interval", "1ms", "11m", "0s"),
		of("click_log_max", "1MiB", "64 apples", "-1GiB", "99999TiB"),
		of("raw_retention", "0d", "-1d", "30", "99999d"),
		of("geoip", missing, dir), of("geoip_url", "places.mmdb", "ftp://places.example/x", "https://places.example/without-a-file"),
		of("countries", "yes", "ON", ""), of("country_header", "CF-IPCountry", "CF IPCountry", "CF-IPCountry:"),
		of("blocklists", missing, dir), of("allowlists", missing, dir), of("reserved_words", missing, dir), of("refused_words", missing, dir),
		of("cache_size", "12", "2TiB", "1e9"),
		of("log_level", "loud", "INFO"),
		of("links", "mysql://table", ""),
		of("accounts", "dynamodb://table", "sqlite"),
		of("cache", "redis://x"), of("events", "kafka://x"), of("analytics", "clickhouse://x"), of("archive", "s3://b"), of("ids", "zookeeper://x"),
		of("writes", "queued"), of("codes", "sequence", "sequence"),
		of("sqlite_synchronous", "OFF"),
	} {
		all = append(all, ms...)
	}
	for _, source := range []string{"flag", "env"} { // what has another type, as text
		for key, text := range map[string]string{"code_length": "seven", "strict_host": "maybe", "anonymous": "2", "proxy_protocol": "oui", "max_connections": "20k"} {
			all = append(all, mutation{key: key, value: text, only: source})
		}
	}
	for key, value := range map[string]any{ // right as text, and of the wrong type in the file
		"code_length": "7", "strict_host": "true", "anonymous": 1, "domains": "a.example", "drain_delay": 5, "listen": 8080, "lane": true, "max_connections": 20.5, "data": []string{"x"},
		"listn": "x", "LISTEN": "127.0.0.1:0", "server": map[string]string{"listen": "x"}, "code-length": 7,
	} {
		all = append(all, mutation{key: key, value: value, only: "file"})
	}
	return append(all, mutation{key: "listn", value: "x", only: "env"}, mutation{key: "config", value: missing, only: "env"},
		mutation{key: "config", value: dir, only: "flag"}, mutation{key: "config", value: broken, only: "flag"})
}

// apply returns the arguments that start a server with the mutation, from the source.
func (m mutation) apply(t *testing.T, source string, base map[string]string) []string {
	t.Helper()
	values := map[string]any{}
	for k, v := range base {
		values[k] = v
	}
	if m.key == "tls_cert" || m.key == "tls_key" { // one goes with the other
		values["tls_cert"], values["tls_key"] = base["data"]+".pem", base["data"]+".pem"
	}
	delete(values, m.key)
	args := []string{"serve"}
	text := fmt.Sprint(m.value)
	switch source {
	case "flag":
		args = append(args, "--"+strings.ReplaceAll(m.key, "_", "-")+"="+text)
	case "env":
		t.Setenv("CURT_"+strings.ToUpper(m.key), text)
	default:
		values[m.key] = m.value
		if (m.key == "domains" || m.key == "trusted_proxies" || m.key == "blocklists" || m.key == "allowlists" || strings.HasSuffix(m.key, "_words")) && m.only == "" {
			values[m.key] = []string{text}
		}
	}
	var file strings.Builder
	for k, v := range values {
		quoted, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if _, table := v.(map[string]string); table {
			quoted = []byte(`{listen = "x"}`)
		}
		fmt.Fprintf(&file, "%s = %s\n", k, quoted)
	}
	if m.key != "config" {
		name := filepath.Join(t.TempDir(), "curt.toml")
		if err := os.WriteFile(name, []byte(file.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, "--config="+name)
	}
	return args
}

// TestNoMutatedConfigurationHalfStarts tries each from one source, in turn.
func TestNoMutatedConfigurationHalfStarts(t *testing.T) {
	noneStarts(t, func(n int, source int) bool { return n%len(sources()) == source })
}

func TestNoMutatedConfigurationHalfStartsFromAnySource(t *testing.T) {
	testkit.Faults(t)
	t.Setenv(faultsEnv, "")
	_ = os.Unsetenv(faultsEnv) // t.Setenv puts back what was there
	noneStarts(t, func(int, int) bool { return true })
}

func sources() []string { return []string{"flag", "env", "file"} }

// noneStarts starts a server with each mutation, from each source that is wanted. Every
// address of the base is taken: a start that gets as far as listening ends with another exit
// code than 78, and is found out.
func noneStarts(t *testing.T, wanted func(n, source int) bool) {
	t.Helper()
	taken, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "broken"), []byte("= no key\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(dir, "data")
	if err := os.WriteFile(data+".pem", []byte("no certificate\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir) // where a relative folder would be made
	base := map[string]string{"listen": taken.Addr().String(), "admin_listen": "", "data": data, "base_url": "https://go.example.com"}

	control := mutation{key: "log_level", value: "debug"}
	for _, source := range sources() {
		t.Run("control/"+source, func(t *testing.T) {
			code, _, errs := curt(t.Context(), control.apply(t, source, base)...)
			if code != 1 || !strings.Contains(errs, "address already in use") {
				t.Errorf("exit %d, %q; want only the address to be wrong", code, errs)
			}
		})
	}
	if err := os.RemoveAll(data); err != nil {
		t.Fatal(err)
	}

	tried, all := 0, mutations(dir)
	for n, m := range all {
		for i, source := range sources() {
			if m.only != "" && m.only != source || m.only == "" && !wanted(n, i) {
				continue
			}
			tried++
			t.Run(fmt.Sprintf("%d %s from %s", tried, m.key, source), func(t *testing.T) {
				m.mustStop(t, m.apply(t, source, base))
				if _, err := os.Stat(data); err == nil {
					t.Error("the data folder was made")
				}
			})
		}
	}
	if tried < len(all) || tried < 120 {
		t.Errorf("%d configurations of %d mutations were tried", tried, len(all))
	}
}

// mustStop starts the server, which must end with one line that names key and value.
func (m mutation) mustStop(t *testing.T, args []string) {
	t.Helper()
	code, out, errs := curt(t.Context(), args...)
	shown := fmt.Sprint(m.value)
	switch {
	case m.key == "admin_key":
		shown = config.Hidden
	case strings.Contains(shown, "hunter2"):
		shown = config.Hidden + "@h/d"
	case strings.Contains(shown, "?"), len(shown) > 200:
		shown = shown[:8]
	}
	key := strings.ReplaceAll(strings.ToLower(m.key), "-", "_")
	told := strings.ReplaceAll(strings.ToLower(errs), "-", "_")
	if code != 78 || out != "" || strings.Count(errs, "\n") != 1 || !strings.Contains(told, key) || !strings.Contains(errs, shown) || strings.Contains(errs, "hunter2") {
		t.Errorf("%s = %v: exit %d, %q; want exit 78 and one line with key and value", m.key, m.value, code, errs)
	}
}
