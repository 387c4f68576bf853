package deploy_test

import (
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"curt/internal/testkit"
	"curt/test/internal/curttest"
)

// TestPartsSpeakTLS: curt reaches PostgreSQL, Redis, ClickHouse and ZooKeeper over TLS, and refuses another
// authority. Kafka has this test in internal/backend/kafka.
func TestPartsSpeakTLS(t *testing.T) {
	t.Parallel()
	certificate, key := curttest.Certificate(t)
	other, _ := curttest.Certificate(t)
	plain := postgresTLS(t, certificate, key)
	redis, clickhouse := redisTLS(t, certificate, key), clickHouseTLS(t, certificate, key)
	ids, certifies := zooKeeperTLS(t)
	for authority, right := range map[string]bool{certificate: true, other: false} {
		links := "CURT_LINKS=" + strings.Replace(plain, "sslmode=disable", "sslmode=verify-full&sslrootcert="+authority, 1)
		for began := time.Now(); ; time.Sleep(50 * time.Millisecond) {
			said := checked(t, links, "CURT_CACHE=rediss://"+redis, "CURT_EVENTS=kafka://127.0.0.1:1", "CURT_ANALYTICS=clickhouse://"+clickhouse+"/curt?secure=true", "SSL_CERT_FILE="+authority, ids+map[bool]string{true: certifies, false: other}[right])
			ok := map[string]bool{"CURT_LINKS": false, "CURT_CACHE": false, "CURT_ANALYTICS": false, "CURT_IDS": false}
			for line := range strings.Lines(said) {
				for setting := range ok {
					if strings.HasPrefix(line, "ok    "+setting) {
						ok[setting] = true
					}
				}
			}
			if ok["CURT_LINKS"] == right && ok["CURT_CACHE"] == right && ok["CURT_ANALYTICS"] == right && ok["CURT_IDS"] == right && (right || strings.Count(said, "certificate") >= len(ok)) {
				break
			}
			if time.Since(began) > patience {
				t.Fatalf("with the right authority %v: %s", right, said)
			}
		}
	}
}

// checked returns what curt config check says.
func checked(t *testing.T, settings ...string) string {
	t.Helper()
	c := exec.CommandContext(t.Context(), curttest.Binary(t), "config", "check", "--data="+t.TempDir(), "--listen=127.0.0.1:0", "--admin-listen=")
	c.Env = settings
	said, _ := c.CombinedOutput() // it fails where something is wrong
	return string(said)
}

// postgresTLS returns the URL of a database of a server with a certificate, without TLS.
func postgresTLS(t *testing.T, certificate, key string) string {
	t.Helper()
	p := testkit.StartPostgres(t, testkit.PostgresConfig{})
	owner, err := os.Stat(p.Dir)
	if err != nil {
		t.Fatal(err)
	}
	for name, from := range map[string]string{"server.crt": certificate, "server.key": key} {
		text, err := os.ReadFile(from)
		if err == nil {
			err = os.WriteFile(filepath.Join(p.Dir, name), text, 0o600)
		}
		if err == nil {
			err = os.Chown(filepath.Join(p.Dir, name), int(owner.Sys().(*syscall.Stat_t).Uid), -1) //nolint:forcetypeassert // this is Linux
		}
		if err != nil {
			t.Fatal(err)
		}
		setting := map[string]string{"server.crt": "ssl_cert_file", "server.key": "ssl_key_file"}[name]
		p.Exec(t, fmt.Sprintf("ALTER SYSTEM SET %s = '%s'", setting, filepath.Join(p.Dir, name)))
	}
	p.Exec(t, "ALTER SYSTEM SET ssl = on")
	p.Exec(t, "SELECT pg_reload_conf()")
	return p.Database(t)
}

// zooKeeperTLS returns the setting that names a server, up to the authority, and the right one.
func zooKeeperTLS(t *testing.T) (ids, certifies string) {
	t.Helper()
	a := testkit.NewAuthority(t)
	cert, key := a.Pair(t, t.TempDir(), "zookeeper")
	server := testkit.StartSecureZooKeeper(t, testkit.ZooKeeperTLS{Certificate: cert, Key: key, Authority: a.File})
	return "CURT_IDS=" + server.Secure.URL("/curt") + "?ca=", a.File
}

// redisTLS returns the address of a server that speaks TLS only.
func redisTLS(t *testing.T, certificate, key string) string {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), root+"/scripts/need", "redis-server").CombinedOutput(); err != nil {
		curttest.Need(t, strings.TrimSpace(string(out)))
	}
	port := testkit.FreePort(t)
	server := exec.CommandContext(t.Context(), "redis-server", "--bind", "127.0.0.1", "--port", "0", "--tls-port", port, "--save", "", "--dir", t.TempDir(),
		"--tls-cert-file", certificate, "--tls-key-file", key, "--tls-ca-cert-file", certificate, "--tls-auth-clients", "no")
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = server.Process.Kill()
		_ = server.Wait() // it was killed
	})
	return net.JoinHostPort("127.0.0.1", port)
}

// clickHouseTLS returns the address of HAProxy, which ends TLS before a ClickHouse: the library that
// tests run as one does not listen for it.
func clickHouseTLS(t *testing.T, certificate, key string) string {
	t.Helper()
	haproxy := tool(t, "haproxy", "scripts/need haproxy")
	server, err := url.Parse(testkit.StartClickHouse(t).URL("curt"))
	if err != nil {
		t.Fatal(err)
	}
	both, dir := "", t.TempDir()
	for _, file := range []string{certificate, key} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		both += string(text)
	}
	write(t, filepath.Join(dir, "both.pem"), both)
	address := net.JoinHostPort("127.0.0.1", testkit.FreePort(t))
	write(t, filepath.Join(dir, "haproxy.cfg"), fmt.Sprintf(`global
	maxconn 100
defaults
	mode tcp
	timeout connect 5s
	timeout client 60s
	timeout server 60s
listen clickhouse
	bind %s ssl crt %s
	server clickhouse %s
`, address, filepath.Join(dir, "both.pem"), server.Host))
	run := exec.CommandContext(t.Context(), haproxy, "-db", "-f", filepath.Join(dir, "haproxy.cfg"))
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = run.Process.Kill()
		_ = run.Wait() // it was killed
	})
	return address
}
