package zookeeper_test

import (
	"io"
	"net"
	"os"
	"strings"
	"testing"

	"curt/internal/backend/zookeeper"
	"curt/internal/codegen/codegentest"
	"curt/internal/testkit"
)

// secured is a server with TLS, and what URLs of its clients have behind the question mark.
type secured struct {
	testkit.SecureZooKeeper

	authority *testkit.Authority
	trust     string // without a certificate of the client
	both      string // with one
}

func startSecured(t *testing.T, mutual bool) secured {
	t.Helper()
	a, dir := testkit.NewAuthority(t), t.TempDir()
	cert, key := a.Pair(t, dir, "server")
	s := secured{authority: a, trust: "?ca=" + a.File}
	s.SecureZooKeeper = testkit.StartSecureZooKeeper(t, testkit.ZooKeeperTLS{Certificate: cert, Key: key, Authority: a.File, Mutual: mutual})
	cert, key = a.Pair(t, dir, "client")
	s.both = s.trust + "&cert=" + cert + "&key=" + key
	cfg, err := zookeeper.Parse(s.Secure.URL("/begin") + s.both)
	if err != nil {
		t.Fatal(err)
	}
	until(t, "the first handshake, for which the server loads a lot of code", func() bool {
		_, err := zookeeper.Probe(t.Context(), cfg)
		return err == nil
	})
	return s
}

func TestLeasesOverTLS(t *testing.T) {
	testkit.Faults(t)
	for name, mutual := range map[string]bool{"server": false, "mutual": true} {
		t.Run(name, func(t *testing.T) {
			server := startSecured(t, mutual)
			query := server.trust
			if mutual {
				query = server.both
			}
			for name, d := range driversOf(server.Secure, query) {
				t.Run(name, func(t *testing.T) { codegentest.RunLeaser(t, d.open, d.again) })
			}
			rangesAt(t, server.Secure.URL("/range")+query)
			says(t, server.Secure.URL("/probe")+query, is("ZooKeeper 3.9.5"))
			// The nodes are the same for those who come without TLS: both were the same server.
			if first, err := open(t, server.Plain.URL("/range")).Leased(t.Context(), "codes-7"); err != nil || first < 12000 {
				t.Errorf("the mark without TLS is %d, %v", first, err)
			}
		})
	}
}

// TestExpiredSessionsOverTLS is TestExpiredSessions with TLS on both sides: half-open connections end in the middle of it.
func TestExpiredSessionsOverTLS(t *testing.T) {
	testkit.Faults(t)
	server := startSecured(t, true)
	expire(t, server.Secure, server.both)
}

// TestKilledServerOverTLS kills the server, so that handshakes are cut off too.
func TestKilledServerOverTLS(t *testing.T) {
	testkit.Faults(t)
	server := startSecured(t, true)
	from := open(t, server.Secure.URL("/curt")+server.both)
	got, stop := keep(t, from, from, open(t, server.Secure.URL("/curt")+server.both))
	defer stop()
	for range 3 {
		got.more(t)
		server.Secure.Kill(t)
		server.Secure.Again(t)
	}
	got.more(t)
	stop()
	if n := got.overlaps(); n > 0 {
		t.Errorf("%d of %d ranges overlap", n, got.len())
	}
}

// says probes until that says what it should, in one line: a busy machine may not find it out in time.
func says(t *testing.T, url string, right func(said string) bool) {
	t.Helper()
	cfg, err := zookeeper.Parse(url)
	if err != nil {
		t.Fatal(err)
	}
	before := ""
	until(t, "the right words", func() bool {
		what, err := zookeeper.Probe(t.Context(), cfg)
		if err != nil {
			what = err.Error()
		}
		if strings.Contains(what, "\n") {
			t.Errorf("more than one line: %q", what)
		}
		if what != before {
			t.Log(what)
			before = what
		}
		return right(what)
	})
}

// is wants these words.
func is(want string) func(string) bool { return func(said string) bool { return said == want } }

// TestWhoIsNotConnected: what keeps a client and a server apart is an error that says it, and never a client that waits for ever.
func TestWhoIsNotConnected(t *testing.T) {
	testkit.Faults(t)
	server := startSecured(t, true)
	other := testkit.NewAuthority(t)
	cert, key := other.Pair(t, t.TempDir(), "stranger")
	for name, tt := range map[string]struct{ url, want string }{
		"no certificate":           {server.Secure.URL("/curt") + server.trust, "requires a certificate"},
		"a stranger's certificate": {server.Secure.URL("/curt") + server.trust + "&cert=" + cert + "&key=" + key, "requires a certificate"},
		"another authority":        {server.Secure.URL("/curt") + strings.Replace(server.both, server.authority.File, other.File, 1), "unknown authority"},
		"the machine's authority":  {server.Secure.URL("/curt") + "?tls=true", "unknown authority"},
		"another name":             {strings.Replace(server.Secure.URL("/curt")+server.both, "127.0.0.1", "localhost", 1), "localhost"},
		"a port without TLS":       {server.Plain.URL("/curt") + server.both, "does not respond to TLS, it may be the port for connections without"},
		"a port with TLS":          {server.Secure.URL("/curt"), "or be the port for TLS (?tls=true)"},
		"a silent port":            {stranger(t, nil) + "?tls=true", "does not respond to TLS"},
		"a port of HTTP":           {stranger(t, []byte("HTTP/1.1 400 Bad Request\r\n\r\n")) + "?tls=true", "does not respond to TLS"},
		"HTTP without TLS":         {stranger(t, []byte("HTTP/1.1 400 Bad Request\r\n\r\n")), "it answered something else"},
		"an alert of TLS":          {stranger(t, []byte("\x15\x03\x03\x00\x02\x02\x0a")), "or be the port for TLS (?tls=true)"},
		"a port that hangs up":     {stranger(t, []byte{}) + "?tls=true", "does not respond to TLS"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			says(t, tt.url, func(said string) bool {
				return strings.HasPrefix(said, "no session of ZooKeeper: ") && strings.Contains(said, tt.want)
			})
		})
	}
}

// stranger returns the URL of a server that takes connections and is no ZooKeeper: it says something and hangs up, or says nothing.
func stranger(t *testing.T, says []byte) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = c.Close() }()
				if says == nil {
					_, _ = io.Copy(io.Discard, c)
					return
				}
				_, _ = c.Read(make([]byte, 1<<10))
				_, _ = c.Write(says)
			}()
		}
	}()
	return "zookeeper://" + l.Addr().String() + "/curt"
}

// TestARenewedCertificate: files are read at each connection. A broken one is said, and keeps no session from going on.
func TestARenewedCertificate(t *testing.T) {
	testkit.Faults(t)
	server, dir := startSecured(t, true), t.TempDir()
	cert, key := server.authority.Pair(t, dir, "renewed")
	cfg, err := zookeeper.Parse(server.Secure.URL("/curt") + server.trust + "&cert=" + cert + "&key=" + key)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(key, []byte("half a key"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := zookeeper.Probe(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "cert, key") {
		t.Errorf("with half a key: %v", err)
	}
	server.authority.Pair(t, dir, "renewed")
	until(t, "a session with the renewed pair", func() bool {
		what, err := zookeeper.Probe(t.Context(), cfg)
		return err == nil && what == "ZooKeeper 3.9.5"
	})
}
