package lane_test

import (
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"curt/internal/clientaddr"
	"curt/internal/lane"
)

// throughProxy sends what a proxy sends and returns who the client is, and what is read
// behind the header.
func throughProxy(t *testing.T, sent string) (client, read string, err error) {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	proxied := lane.ProxyListener(l, clientaddr.New(netip.MustParsePrefix("127.0.0.0/8")))
	defer func() { _ = proxied.Close() }()
	go func() {
		var d net.Dialer
		c, err := d.DialContext(t.Context(), "tcp", l.Addr().String())
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = io.WriteString(c, sent)
		_ = c.Close()
	}()
	c, err := proxied.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	if err := c.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	all, err := io.ReadAll(c)
	return c.RemoteAddr().String(), string(all), err
}

// Extensions make a header longer than what is read at first.
func TestLongProxyHeadersAreReadWhole(t *testing.T) {
	for _, more := range []int{0, 400, 500, 1000, 2000} {
		header := v2(0x21, 0x11, four+strings.Repeat("\x04\x00\x05hello", more/8))
		client, read, err := throughProxy(t, header+"GET / HTTP/1.1\r\n")
		if err != nil || client != "203.0.113.7:8080" || read != "GET / HTTP/1.1\r\n" {
			t.Errorf("a header of %d bytes: client %s, read %q, %v", len(header), client, read, err)
		}
	}
}

// A connection that ends within its header ends with an error, whoever reads it.
func TestConnectionsThatEndWithinTheirHeader(t *testing.T) {
	for _, sent := range []string{"", "PROXY TCP4 203.0", v2(0x21, 0x11, four)[:20]} {
		if _, read, err := throughProxy(t, sent); read != "" {
			t.Errorf("%q: read %q, %v", sent, read, err)
		}
	}
}

// A header that is all that there is, is whole.
func TestAHeaderAlone(t *testing.T) {
	for _, text := range []string{v2(0x20, 0, ""), v2(0x21, 0x11, four), v2(0x21, 0x21, six), "PROXY UNKNOWN\r\n"} {
		if size, _, ok := lane.ParseProxy([]byte(text)); size != len(text) || !ok {
			t.Errorf("%q: %d %t", text, size, ok)
		}
	}
	longest := "PROXY UNKNOWN " + strings.Repeat("x", 107-16) + "\r\n"
	if size, _, ok := lane.ParseProxy([]byte(longest)); size != 107 || !ok {
		t.Errorf("the longest of the first version: %d %t", size, ok)
	}
	if _, _, ok := lane.ParseProxy([]byte("x" + longest)); ok {
		t.Error("a byte before a header is taken")
	}
}

// Only visible ASCII is a query of the lane's.
func TestEveryByteOfAQuery(t *testing.T) {
	for c := range 256 {
		_, got := lane.ParseHead([]byte("GET /a?x" + string([]byte{byte(c)}) + "y HTTP/1.1\r\nHost: x\r\n\r\n"))
		if visible := c > 0x20 && c < 0x7f; (got == "express") != visible {
			t.Errorf("byte %#02x in a query: %s", c, got)
		}
	}
}
