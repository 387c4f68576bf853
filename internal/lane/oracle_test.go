package lane_test

import (
	"bufio"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"math/rand/v2"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"curt/internal/lane/lanetest"
	"curt/internal/testkit"
)

// The second oracle is Node's parser of HTTP, llhttp: other authors, other language. The
// same bytes, cut into random writes, go to a server of Node and to a lane. Where the
// lane takes a head for its own, Node must read the same method, target and Host; where
// the lane refuses what Node accepts, the reason stands in this file.

// stricter are heads that the lane refuses by RFC 9112 and Node answers. There is no
// list of the other kind: what the lane takes for its own, Node reads alike.
func stricter() map[string]*regexp.Regexp {
	return map[string]*regexp.Regexp{
		"two Hosts: 9112, 3.2 MUST be 400":                             regexp.MustCompile(`(?is)\nhost:.*\nhost:`),
		"empty Host, or bytes that no host has: 9112, 3.2 MUST be 400": regexp.MustCompile(`(?im)^host:[ \t]*(\r?$|[A-Za-z0-9!$%&()*+,;=:'~_.\[\]-]*([ \t]+[^ \t\r\n]|[^A-Za-z0-9!$%&()*+,;=:'~_.\[\] \t\r\n-]))`),
		"bare LF after a request line of HTTP/0.9, which is gone":      regexp.MustCompile(`^[^\r\n]*\n`),
	}
}

// read is what Node made of a request; Error is set when it refused.
type read struct {
	Method, URL, Host, Version, Error string
}

// node starts the oracle and returns its address.
func node(t *testing.T) *rig {
	t.Helper()
	path, err := exec.LookPath("node")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("this test needs node (apt-get install nodejs)")
		}
		t.Skip("NOT PROVEN HERE: this test needs node (apt-get install nodejs)")
	}
	cmd := exec.CommandContext(t.Context(), path, "testdata/oracle.js")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	address, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return &rig{addr: strings.TrimSpace(address)}
}

// asNode sends the pieces to Node and returns what it made of the first request; ok is
// false when it waits for more.
func asNode(t *testing.T, oracle *rig, pieces []string) (read, bool) {
	t.Helper()
	text := oracle.exchange(t, pieces...)
	if text == "" {
		return read{}, false
	}
	head, _, _ := strings.Cut(text, "\r\n\r\n")
	field := func(name string) string {
		_, value, _ := strings.Cut(head, "\r\n"+name+": ")
		value, _, _ = strings.Cut(value, "\r\n")
		return value
	}
	if !strings.HasPrefix(head, "HTTP/1.1 200 ") {
		return read{Error: cmp.Or(field("X-Error"), "400")}, true // some it refuses in words of its own
	}
	said, err := base64.StdEncoding.DecodeString(field("X-Read"))
	if err != nil {
		t.Fatalf("%v: %q", err, text)
	}
	var r read
	if err := json.Unmarshal(said, &r); err != nil {
		t.Fatalf("%v: %q", err, text)
	}
	return r, true
}

// excuse returns why Node may answer what the lane refuses, or "".
func excuse(sent string) string {
	for why, shape := range stricter() {
		if shape.MatchString(sent) {
			return why
		}
	}
	return ""
}

// judgeBoth compares the two on one head. It returns the lane's verdict, and why Node was
// allowed to differ.
func judgeBoth(t *testing.T, on, oracle *rig, sent string, seed uint64) (verdict, why string) {
	t.Helper()
	head, verdict := lanetest.ParseHead([]byte(sent))
	if verdict == "incomplete" || verdict == "other" {
		return verdict, ""
	}
	pieces := lanetest.Cut(sent, seed)
	theirs, answered := asNode(t, oracle, pieces)
	ours := ""
	if all := answers(t, on.exchange(t, pieces...)); len(all) > 0 {
		ours = status(all[0])
	}
	accepts := answered && theirs.Error == ""
	switch {
	case verdict == "bad":
		if ours != "400" {
			t.Fatalf("%q in pieces by %d: %s, want 400", sent, seed, ours)
		}
		if accepts {
			if why = excuse(sent); why == "" {
				t.Errorf("%q: the lane says 400, Node reads %+v", sent, theirs)
			}
		}
	case ours == "400" || ours == "":
		t.Fatalf("%q in pieces by %d: %q from the lane, which takes it for its own", sent, seed, ours)
	default:
		want := read{Method: "GET", URL: "/" + head.Code, Host: head.Host, Version: "1.1"}
		if head.IsHead {
			want.Method = "HEAD"
		}
		if target, _, _ := strings.Cut(sent, " HTTP/"); strings.Contains(target, "?") {
			want.URL += "?" + head.Query
		}
		if theirs != want {
			t.Errorf("%q: the lane reads %+v, Node %+v", sent, want, theirs)
		}
	}
	return verdict, why
}

// mutate changes a head in up to three places, mostly by bytes that parsers disagree about.
func mutate(r *rand.Rand, s string) string {
	spice := []string{
		"\r", "\n", "\r\n", " ", "\t", ":", "\x00", "\x7f", "\x0b", "\x80", "\xff", "?", "#", "%", ",", ";", "\"", "_", "-", "0", "a", "A", "/",
		"\r\n ", "\r\nHost: x", "\r\nX:\t y \t", "\r\nContent-Length: 0", "\r\nTransfer-Encoding: chunked", "\r\nConnection: close", "HTTP/1.1", "HEAD ", "GET ",
	}
	for range 1 + r.IntN(3) {
		at := r.IntN(len(s) + 1)
		switch r.IntN(3) {
		case 0:
			s = s[:at] + spice[r.IntN(len(spice))] + s[at:]
		case 1:
			end := min(len(s), at+1+r.IntN(3))
			s = s[:at] + s[end:]
		case 2:
			if at < len(s) {
				s = s[:at] + string([]byte{byte(r.IntN(256))}) + s[at+1:]
			}
		}
	}
	return s
}

// TestNodeReadsTheSame judges the seeds of the differential test, and random changes of
// them: 30,000 in make soak.
func TestNodeReadsTheSame(t *testing.T) {
	testkit.Unraced(t)
	rounds := 500
	if os.Getenv("CURT_TEST_LONG") != "" {
		rounds = 30_000
	}
	on, oracle := start(t, true), node(t)
	heads := slices.DeleteFunc(append(seeds(), lanetest.Browser), func(s string) bool {
		return strings.Count(s, "\r\n\r\n") != 1 || !strings.HasSuffix(s, "\r\n\r\n")
	})
	verdicts, differences := map[string]int{}, map[string]int{}
	count := func(verdict, why string) {
		verdicts[verdict]++
		if why != "" {
			differences[why]++
		}
	}
	for _, s := range heads {
		count(judgeBoth(t, on, oracle, s, 0))
	}
	r := rand.New(rand.NewPCG(1, 2))
	began := time.Now()
	for n := range rounds {
		s := mutate(r, heads[r.IntN(len(heads))])
		if !strings.HasSuffix(s, "\r\n\r\n") || strings.Count(s, "\r\n\r\n") != 1 {
			continue
		}
		count(judgeBoth(t, on, oracle, s, uint64(n)))
		if t.Failed() {
			break
		}
	}
	t.Logf("%v in %s, differences %v", verdicts, time.Since(began).Round(time.Millisecond), differences)
	if verdicts["plain"] < rounds/20 || verdicts["bad"] < rounds/20 {
		t.Errorf("%v: too few of one kind", verdicts)
	}
}
