package lane_test

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"curt/internal/lane/lanetest"
	"curt/test/internal/curttest"
)

// poison is the beginning of a request in the body of another one. Whoever takes it for
// a request takes the next client's request line for the value of X.
const poison = "GET /poison HTTP/1.1\r\nHost: links.example\r\nX: "

// poisoned are requests whose end two programs may see at different places, with the
// poison between the two.
func poisoned() map[string]string {
	all := map[string]string{}
	const fields = " HTTP/1.1\r\nHost: links.example\r\n"
	for _, line := range []string{"POST /api/x", "POST /temp", "GET /live", "POST /live"} {
		all["a body that is not read, "+line] = fmt.Sprintf("%s%sContent-Length: %d\r\n\r\n%s", line, fields, len(poison), poison)
	}
	for why, coding := range map[string]string{
		"plain": "Transfer-Encoding: chunked", "tab": "Transfer-Encoding:\tchunked", "space before the colon": "Transfer-Encoding : chunked",
		"vertical tab": "Transfer-Encoding: \vchunked", "unknown": "Transfer-Encoding: xchunked", "list": "Transfer-Encoding: chunked, identity",
		"bare LF": "X: y\nTransfer-Encoding: chunked", "bare CR": "X: y\rTransfer-Encoding: chunked", "folded": "Transfer-Encoding:\r\n chunked",
		"quoted": "Transfer-Encoding: \"chunked\"", "twice": "Transfer-Encoding: identity\r\nTransfer-Encoding: chunked",
		"underscore": "Transfer_Encoding: chunked", "NUL": "Transfer-Encoding: chunked\x00", "capitals": "TRANSFER-ENCODING: CHUNKED",
	} {
		last := "0\r\n\r\n" + poison
		all["length against coding, "+why] = fmt.Sprintf("POST /temp%sContent-Length: %d\r\n%s\r\n\r\n%s", fields, len(last), coding, last)
		first := fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(poison), poison)
		all["coding against length, "+why] = fmt.Sprintf("POST /temp%sContent-Length: 4\r\n%s\r\n\r\n%s", fields, coding, first)
	}
	return all
}

// shapes are all attacks, by name.
func shapes() map[string]string {
	all := lanetest.Refused()
	maps.Copy(all, lanetest.Foreign())
	maps.Copy(all, poisoned())
	return all
}

// victim is a client that asks for one link after the other and must be answered with
// that link, whoever shares its way.
type victim struct {
	address string
	conn    *curttest.Conn // nil = to be dialled
	next    int
}

// ask returns what is wrong with the answer, or "".
func (v *victim) ask(t *testing.T) string {
	t.Helper()
	if v.conn == nil {
		c, err := curttest.Dial(t.Context(), v.address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		v.conn = c
	}
	v.next++
	code := fmt.Sprintf("victim-%d", v.next%victims)
	a, err := v.conn.Do("GET", "/"+code, nil, "")
	if err != nil || a.Closes() {
		v.conn.Close()
		v.conn = nil
	}
	if to, _ := a.Get("Location"); a.Status != 302 || to != target(code) {
		return fmt.Sprintf("asked for %s, got %d to %q, %v", code, a.Status, to, err)
	}
	return ""
}

const victims = 50 // links for victims; more than ask between two uses of one

func target(code string) string { return "https://example.com/" + code }

// attack sends the bytes and returns the links that the answers lead to.
func attack(t *testing.T, address, sent string) (to []string) {
	t.Helper()
	nc, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = nc.Close() }()
	_ = nc.SetDeadline(time.Now().Add(250 * time.Millisecond)) // many shapes have no end, and then nobody answers
	if _, err := io.WriteString(nc, sent); err != nil {
		return nil // refused meanwhile
	}
	if half, ok := nc.(*net.TCPConn); ok {
		_ = half.CloseWrite()
	}
	text, err := io.ReadAll(nc)
	if err != nil && !refused(err) && !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if name, value, _ := strings.Cut(strings.TrimRight(line, "\r\n"), ": "); strings.EqualFold(name, "Location") {
			to = append(to, value)
		}
	}
	return to
}

// inOrder reports whether the answers lead to links in the order in which the bytes
// name them, each once for each time that it is named.
func inOrder(to []string, sent string) bool {
	for _, l := range to {
		code := strings.TrimPrefix(l, "https://example.com")
		_, rest, found := strings.Cut(sent, code)
		if !found {
			return false
		}
		sent = rest
	}
	return true
}

// assault runs every attack through the proxy, between two good requests of the attacker
// and then with the victims' requests behind it, and returns which answers went to the
// wrong request.
func assault(t *testing.T, address string, all map[string]string) (crossed []string) {
	t.Helper()
	clients := []*victim{{address: address}, {address: address, next: 20}}
	for _, v := range clients {
		if wrong := v.ask(t); wrong != "" {
			t.Fatal("before any attack: ", wrong)
		}
	}
	const first, last = "GET /first HTTP/1.1\r\nHost: links.example\r\n\r\n", "GET /last HTTP/1.1\r\nHost: links.example\r\nConnection: close\r\n\r\n"
	answered := 0
	// A proxy on a busy machine may answer few in time: they come again.
	for end := time.Now().Add(3 * time.Minute); answered < len(all) && time.Now().Before(end); {
		for _, why := range slices.Sorted(maps.Keys(all)) {
			for _, sent := range []string{first + all[why] + last, first + all[why], all[why]} {
				to := attack(t, address, sent)
				answered += len(to)
				if !inOrder(to, sent) {
					crossed = append(crossed, fmt.Sprintf("%s: the attacker was led to %q", why, to))
				}
				for _, v := range clients {
					if wrong := v.ask(t); wrong != "" {
						crossed = append(crossed, why+": "+wrong)
					}
				}
			}
		}
	}
	if answered < len(all) {
		t.Errorf("only %d answers to %d attacks, most with good requests around them", answered, len(all))
	}
	return crossed
}

// TestNothingIsSmuggledThroughProxies: whatever a client sends, every other client of
// the proxy is answered what it asked for.
func TestNothingIsSmuggledThroughProxies(t *testing.T) {
	s := curttest.Start(t, curttest.Options{})
	c := s.MustDial(t)
	codes := []string{"first", "last", "live", "gone", "temp", "poison"}
	for n := range victims {
		codes = append(codes, fmt.Sprintf("victim-%d", n))
	}
	for _, code := range codes {
		fields := `,"redirect_status":302`
		if code == "temp" {
			fields = `,"redirect_status":307`
		}
		a, err := c.Do("POST", "/api/v1/links", []string{"Content-Type: application/json", "Authorization: Bearer " + curttest.Key},
			`{"long_url":"`+target(code)+`","custom_alias":"`+code+`"`+fields+`}`)
		if err != nil || a.Status != 201 {
			t.Fatal(a.Status, string(a.Body), err)
		}
	}
	for _, p := range proxies() {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			for _, wrong := range assault(t, p.start(t, s.Addr), shapes()) {
				t.Error(wrong)
			}
		})
		t.Run(p.name+" in front of a server that reads no bodies", func(t *testing.T) {
			t.Parallel()
			address := p.start(t, careless(t))
			for end := time.Now().Add(3 * time.Minute); len(assault(t, address, poisoned())) == 0; {
				if time.Now().After(end) {
					t.Fatal("nothing was crossed: the test proves nothing")
				}
			}
		})
	}
}

// careless is the control: a server that answers every head with the link that it
// names, and takes what follows for the next head.
func careless(t *testing.T) (address string) {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var served sync.WaitGroup
	served.Go(func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			served.Go(func() { neglect(nc) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		served.Wait()
	})
	return l.Addr().String()
}

func neglect(nc net.Conn) {
	defer func() { _ = nc.Close() }()
	_ = nc.SetDeadline(time.Now().Add(time.Minute))
	var read []byte
	for {
		head, rest, found := strings.Cut(string(read), "\r\n\r\n")
		if !found {
			more := make([]byte, 4<<10)
			n, err := nc.Read(more)
			if err != nil {
				return
			}
			read = append(read, more[:n]...)
			continue
		}
		read = []byte(rest)
		_, path, _ := strings.Cut(head, " /")
		code, _, _ := strings.Cut(path, " ")
		if _, err := io.WriteString(nc, "HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: "+target(code)+"\r\n\r\n"); err != nil {
			return
		}
	}
}
