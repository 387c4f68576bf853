package script_test

import (
	"net"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"curt/test/internal/script"
)

func TestParseTakesAScriptApart(t *testing.T) {
	got, err := script.Parse(strings.Join([]string{
		"# comment", "with CURT_A=b", "== first", "> POST /x", "> A: b", ">", "> {}", "< 201",
		"! times 2", ">> \"GET / HTTP/1.0\\r\\n\"", ">> \"\\r\\n\"", "< 400", "< closed",
	}, "\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := script.Script{
		Settings: []string{"CURT_A=b"},
		Cases: []script.Case{{Title: "first", Line: 3, Steps: []script.Step{
			{Line: 4, Times: 1, Request: []string{"POST /x", "A: b", "", "{}"}, Want: []script.Want{{Line: 8, Text: "201"}}},
			{Line: 9, Times: 2, Raw: "GET / HTTP/1.0\r\n\r\n", Want: []script.Want{{Line: 12, Text: "400"}, {Line: 13, Text: "closed"}}},
		}}},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestParseRefuses(t *testing.T) {
	for name, text := range map[string]string{
		"a request before the first case": "> GET /",
		"an expectation without request":  "== a\n< 200",
		"a request without expectation":   "== a\n> GET /",
		"a case without request":          "== a",
		"an unknown line":                 "== a\nGET /",
		"an unknown modifier":             "== a\n! twice\n> GET /\n< 200",
		"a bad Go string":                 "== a\n>> GET /\n< 200",
		"a late setting":                  "== a\n> GET /\n< 200\nwith CURT_A=b",
	} {
		if _, err := script.Parse(text); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
}

// answer is what the little server below answers to everything.
const answer = "HTTP/1.1 201 Created\r\nX-One: a\r\nX-Two: b\r\nX-Two: c\r\nContent-Type: application/json\r\n" +
	"Content-Length: 38\r\n\r\n" + `{"n":1.50,"a":[{"b":"x"}],"s":"q\"/"}` + "\n"

// TestExpectationsHoldAndFail keeps the checker honest: of each pair the first
// expectation must hold and the second must not.
func TestExpectationsHoldAndFail(t *testing.T) {
	for _, pair := range [][2]string{
		{"201", "200"},
		{"X-One: a", "X-One: A"},
		{"x-one: a", "X-Two: b"}, // there twice
		{"X-One ~ ^[a]$", "X-One ~ ^b"},
		{"X-Three -", "X-One -"},
		{"X-One: a", "X-Three: a"},
		{"X-One: a", "X-Three ~ .*"},
		{`body ~ "n":`, "body -"},
		{`body = "{\"n\":1.50,\"a\":[{\"b\":\"x\"}],\"s\":\"q\\\"/\"}\n"`, `body = "{"`},
		{"json n = 1.50", "json n = 1"},
		{"json a.0.b = \"x\"", "json a.1.b = \"x\""},
		{"json a.# = 1", "json a.# = 2"},
		{"json z -", "json n -"},
		{"json n ~ ^1", "json z ~ .*"},
		{"201", "problem"},
		{"201", "what is this"},
		{"X-One: a", "X-One: ${unknown}"},
	} {
		if err := script.Check(pair[0], answer); err != nil {
			t.Errorf("%q failed: %v", pair[0], err)
		}
		if err := script.Check(pair[1], answer); err == nil {
			t.Errorf("%q held", pair[1])
		}
	}
}

func TestProblemChecksTypeAndStatus(t *testing.T) {
	problem := func(status, kind string) string {
		body := `{"type":"` + kind + `","title":"T","status":` + status + `}`
		return "HTTP/1.1 404 Not Found\r\nContent-Type: application/problem+json\r\nConnection: close\r\n\r\n" + body
	}
	if err := script.Check("problem not-found", problem("404", "urn:x:not-found")); err != nil {
		t.Error(err)
	}
	for _, bad := range []string{problem("410", "urn:x:not-found"), problem("404", "urn:x:gone"), problem("404", "")} {
		if err := script.Check("problem not-found", bad); err == nil {
			t.Errorf("held for %s", bad)
		}
	}
}

// serve answers every connection with the text and ends it.
func serve(t *testing.T, text string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
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
			_, _ = c.Read(make([]byte, 1024))
			_, _ = c.Write([]byte(text))
			_ = c.Close()
		}
	}()
	return l.Addr().String()
}

func TestCapturesReachLaterRequests(t *testing.T) {
	s, err := script.Parse("== a\n> GET /\n< X-One ~ ^(?<one>.)$\n! connect\n> GET /${one}${x*3}\n< X-One: ${one}\n< closed")
	if err != nil {
		t.Fatal(err)
	}
	script.RunAt(t, s, serve(t, answer))
}
