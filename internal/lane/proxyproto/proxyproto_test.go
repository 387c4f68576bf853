package proxyproto_test

import (
	"encoding/binary"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"curt/internal/clientaddr"
	"curt/internal/lane/proxyproto"
)

// v2 makes a binary header.
func v2(command, family byte, payload string) string {
	return "\r\n\r\n\x00\r\nQUIT\n" + string([]byte{command, family}) + string(binary.BigEndian.AppendUint16(nil, uint16(len(payload)))) + payload
}

const (
	ports = "\x1f\x90\x00\x50"
	four  = "\xcb\x00\x71\x07\x7f\x00\x00\x01" + ports // 203.0.113.7:8080 to 127.0.0.1:80
)

var six = string(netip.MustParseAddr("2001:db8::7").AsSlice()) + string(netip.MustParseAddr("::1").AsSlice()) + ports //nolint:gochecknoglobals // a constant, but for its type

func TestProxyHeaders(t *testing.T) {
	for text, want := range map[string]string{
		"PROXY TCP4 203.0.113.7 127.0.0.1 8080 80\r\n":      "203.0.113.7:8080",
		"PROXY TCP6 2001:db8::7 ::1 8080 80\r\n":            "[2001:db8::7]:8080",
		"PROXY UNKNOWN\r\n":                                 "",
		"PROXY UNKNOWN ffff:f... what ever 1 2\r\n":         "",
		v2(0x21, 0x11, four):                                "203.0.113.7:8080",
		v2(0x21, 0x11, four+"\x03\x00\x04\x01\x02\x03\x04"): "203.0.113.7:8080",
		v2(0x21, 0x21, six):                                 "[2001:db8::7]:8080",
		v2(0x20, 0x00, ""):                                  "",
		v2(0x20, 0x11, four):                                "",
		v2(0x21, 0x31, strings.Repeat("/", 216)):            "",
		v2(0x21, 0x00, "xxxx"):                              "",
	} {
		size, client, ok := proxyproto.Parse([]byte(text + "GET /"))
		if size != len(text) || client != want || !ok {
			t.Errorf("%q: %d %s %v", text, size, client, ok)
		}
		for n := range len(text) {
			if size, _, ok := proxyproto.Parse([]byte(text[:n])); size != 0 || !ok {
				t.Errorf("%q: %d %v, want more", text[:n], size, ok)
			}
		}
	}
	for _, text := range []string{
		"GET / HTTP/1.1\r\n", "PROXY TCP4 1.1.1.1 2.2.2.2 1\r\n", "PROXY TCP4 1.1.1.1 2.2.2.2 1 2 3\r\n", "PROXY TCP4 ::1 2.2.2.2 1 2\r\n",
		"PROXY TCP4 1.1.1.1 2.2.2.2 1 65536\r\n", "PROXY TCP4 1.1.1.1 2.2.2.2 -1 2\r\n", "PROXY TCP6 fe80::1%eth0 ::1 1 2\r\n", "PROXY TCP5 1.1.1.1 2.2.2.2 1 2\r\n",
		"PROXY  1.1.1.1 2.2.2.2 1 2\r\n", "proxy TCP4 1.1.1.1 2.2.2.2 1 2\r\n", "PROXY " + strings.Repeat("x", 110),
		v2(0x11, 0x11, four), v2(0x22, 0x11, four), v2(0x21, 0x11, four[:11]), v2(0x21, 0x21, six[:35]), v2(0x21, 0x11, strings.Repeat("x", 4000)),
		"\r\n\r\n\x00\r\nQUIT\r",
	} {
		if size, client, ok := proxyproto.Parse([]byte(text)); ok {
			t.Errorf("%q: %d %s", text, size, client)
		}
	}
}

// throughProxy sends what a proxy sends and returns who the client is, and what is read
// behind the header.
func throughProxy(t *testing.T, sent string) (client, read string, err error) {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	proxied := proxyproto.Listener(l, clientaddr.New(netip.MustParsePrefix("127.0.0.0/8")))
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
	if err := c.SetReadDeadline(time.Now().Add(3 * time.Minute)); err != nil {
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
		if size, _, ok := proxyproto.Parse([]byte(text)); size != len(text) || !ok {
			t.Errorf("%q: %d %t", text, size, ok)
		}
	}
	longest := "PROXY UNKNOWN " + strings.Repeat("x", 107-16) + "\r\n"
	if size, _, ok := proxyproto.Parse([]byte(longest)); size != 107 || !ok {
		t.Errorf("the longest of the first version: %d %t", size, ok)
	}
	if _, _, ok := proxyproto.Parse([]byte("x" + longest)); ok {
		t.Error("a byte before a header is taken")
	}
}
