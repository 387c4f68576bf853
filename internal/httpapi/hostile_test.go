package httpapi_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"curt/internal/testkit"
)

// hostile is one request that must be refused.
type hostile struct {
	name    string
	method  string // default POST
	path    string // default the collection of links
	headers []string
	body    string
	want    int
	field   string // that the problem must blame, if set
	create  bool   // the field is one that only a create has
}

const collection = "/api/v1/links"

// everyHostile is the whole table.
func everyHostile() []hostile {
	creates := slices.Concat(badBodies(), badCreates(), badTexts(), badTypes())
	return slices.Concat(creates, badFrames(), badChanges(), badLists(), badStatistics(), badFilters(), badClicks(), badModeration(), badSpellings(creates), badReports(), badJobs())
}

func TestHostileRequestsAreRefused(t *testing.T) {
	testkit.Unraced(t)
	s := newService(t)
	s.create(t, "admin", `{"long_url":"http://example.com/victim","custom_alias":"victim"}`)
	before := s.do(t, "admin", http.MethodGet, collection+"/victim", "").body
	server := httptest.NewServer(s)
	defer server.Close()

	all := everyHostile()
	t.Logf("%d requests", len(all))
	if len(all) < 1000 {
		t.Fatalf("only %d requests", len(all))
	}
	for _, h := range all {
		checkHostile(t, server.Listener.Addr().String(), h)
	}
	if n := s.stored(t); n != 1 {
		t.Errorf("%d links stored, want the victim alone", n)
	}
	if after := s.do(t, "admin", http.MethodGet, collection+"/victim", "").body; !bytes.Equal(before, after) {
		t.Errorf("the victim changed:\n%s\n%s", before, after)
	}
	if s.log.Len() != 0 {
		t.Errorf("refusing was logged as a failure:\n%s", s.log)
	}
}

// checkHostile sends h byte by byte as it stands and looks at every byte of the
// answer's head.
func checkHostile(t *testing.T, address string, h hostile) {
	t.Helper()
	res, head := exchange(t, address, h)
	if res == nil {
		return
	}
	defer func() { _ = res.Body.Close() }() // it is read to its end
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Errorf("%s: %v", h.name, err)
		return
	}
	if res.StatusCode != h.want {
		t.Errorf("%s: got %d, want %d: %s", h.name, res.StatusCode, h.want, text)
		return
	}
	for line := range strings.SplitSeq(strings.TrimSpace(head), "\r\n") {
		name, _, found := strings.Cut(line, ":")
		if found && !slices.Contains([]string{"Content-Type", "Content-Length", "Cache-Control", "X-Content-Type-Options", "Date", "Allow", "Www-Authenticate", "Connection"}, name) {
			t.Errorf("%s: the answer has a header line that is not ours: %q", h.name, line)
		}
	}
	if strings.HasSuffix(h.path, "/%zz") { // net/http itself answers what is no request line
		return
	}
	p := answer{res, text}.problem(t)
	if h.field != "" && p["field"] != h.field {
		t.Errorf("%s: blames %v, want %s: %s", h.name, p["field"], h.field, text)
	}
	if res.StatusCode == http.StatusMethodNotAllowed && res.Header.Get("Allow") == "" {
		t.Errorf("%s: no Allow", h.name)
	}
	if res.StatusCode == http.StatusUnauthorized && res.Header.Get("WWW-Authenticate") == "" {
		t.Errorf("%s: no WWW-Authenticate", h.name)
	}
}

// exchange returns the answer and its head as it came.
func exchange(t *testing.T, address string, h hostile) (*http.Response, string) {
	t.Helper()
	method, path := h.method, h.path
	if method == "" {
		method = http.MethodPost
	}
	if path == "" {
		path = collection
	}
	has := func(name string) bool {
		return slices.ContainsFunc(h.headers, func(line string) bool { return strings.HasPrefix(line, name) })
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: curt.test\r\nConnection: close\r\n", method, path)
	if !has("Authorization") {
		b.WriteString("Authorization: Bearer admin\r\n")
	}
	if h.body != "" && !has("Transfer-Encoding") {
		fmt.Fprintf(&b, "Content-Length: %d\r\n", len(h.body))
	}
	if h.body != "" && !has("Content-Type") && !slices.Contains(h.headers, "") {
		b.WriteString("Content-Type: application/json\r\n")
	}
	for _, line := range h.headers {
		if line != "" {
			b.WriteString(line + "\r\n")
		}
	}
	b.WriteString("\r\n" + h.body)

	raw, err := sendRaw(t, address, b.String())
	for end := time.Now().Add(3 * time.Minute); err != nil && len(raw) == 0 && time.Now().Before(end); {
		raw, err = sendRaw(t, address, b.String()) // the reset came before the answer was read
	}
	if err != nil && len(raw) == 0 {
		t.Errorf("%s: no answer: %v", h.name, err)
		return nil, ""
	}
	head, _, _ := strings.Cut(string(raw), "\r\n\r\n")
	res, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(raw)), nil)
	if err != nil {
		t.Errorf("%s: %v: %q", h.name, err, raw)
		return nil, ""
	}
	return res, head
}

// sendRaw returns all that is answered. A server that refuses a large body may close before all of it is sent, and
// what it said is lost when the reset overtakes it.
func sendRaw(t *testing.T, address, request string) ([]byte, error) {
	t.Helper()
	var dialer net.Dialer
	conn, err := dialer.DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }() // the answer was read
	if err := conn.SetDeadline(time.Now().Add(3 * time.Minute)); err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = io.WriteString(conn, request) }()
	return io.ReadAll(conn)
}
