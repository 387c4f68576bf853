package lane_test

import (
	"io"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"
)

const (
	page = "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
	post = "POST /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbody"
)

// at fails unless so many connections were handed over and taken back so far. They are
// counted by the goroutine that gave one away, perhaps behind the next answer.
func at(t *testing.T, r *rig, handed, returned uint64) {
	t.Helper()
	for limit := time.Now().Add(3 * time.Minute); r.lane.Stats().HandedOff < handed && time.Now().Before(limit); {
		runtime.Gosched()
	}
	if s := r.lane.Stats(); s.HandedOff != handed || s.Returned != returned {
		t.Errorf("%d connections handed over, %d taken back; want %d and %d", s.HandedOff, s.Returned, handed, returned)
	}
}

// comeBack asks for a link until the lane has the connection, which is most often at
// once, and returns how often it asked.
func comeBack(t *testing.T, r *rig, nc net.Conn, returned uint64) int {
	t.Helper()
	for n := 1; ; n++ {
		if a := roundTrip(t, nc, live); a.Close || a.StatusCode != 302 || n == 1000 {
			t.Fatalf("answer %d is %+v", n, a)
		}
		if r.lane.Stats().Returned == returned {
			eventually(t, "the hand-over before it is counted", func() bool { return r.lane.Stats().HandedOff == returned })
			return n
		}
	}
}

// A connection that asked for something else is the lane's again with the next plain
// request, and stays open.
func TestHandedOverConnectionsComeBack(t *testing.T) {
	r := start(t, true)
	nc := r.dial(t)
	asked := 0
	for i := range uint64(20) {
		if a := roundTrip(t, nc, page); a.Close {
			t.Fatal("closed")
		}
		roundTrip(t, nc, page) // more of them stay there
		asked += comeBack(t, r, nc, i+1)
	}
	clicks := 0 // the last is recorded behind its answer
	eventually(t, "every answer is a click", func() bool { clicks += len(r.rec.take()); return clicks >= asked })
	if clicks != asked {
		t.Errorf("%d clicks of %d", clicks, asked)
	}
	eventually(t, "the connection is the lane's, not net/http's", func() bool {
		s := r.lane.Stats()
		return s.Open == 1 && s.AtHTTP == 0
	})
}

// A body is net/http's to count, so the request behind one is net/http's too.
func TestBehindABodyTheNextButOneComesBack(t *testing.T) {
	r := start(t, true)
	nc := r.dial(t)
	roundTrip(t, nc, post)
	roundTrip(t, nc, live)
	at(t, r, 1, 0)
	comeBack(t, r, nc, 1)
}

// What comes in pieces or before its turn may be in net/http's buffer in part: it must
// not be read as a request of its own.
func TestNoPieceComesBackAlone(t *testing.T) {
	inner := "GET /live HTTP/1.1\r\nHost: x\r\n\r\n"
	for name, pieces := range map[string][]string{
		"a head in a body":            {strings.Replace(post, "4\r\n\r\nbody", "35\r\n\r\n", 1), inner + "."},
		"behind half a head":          {page + "GET /healthz HTTP/1.1\r\n", "A: b\r\n", "Host: x\r\n\r\n"},
		"a field that looks like one": {page + "GET /healthz HTTP/1.1\r\nHost: x\r\nX-", "GET: /live HTTP/1.1\r\n\r\n"},
		"behind the end of a head":    {"GET /healthz HTTP/1.1\r\nHost: x\r\n", "\r\n" + inner},
		"behind one byte":             {page + "G", "ET /live HTTP/1.1\r\nHost: x\r\n\r\n"},
		"two at once":                 {page, inner + inner},
		"byte for byte":               strings.Split(page+inner, ""),
	} {
		t.Run(name, func(t *testing.T) {
			last := "GET /none HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
			got := apart(t, start(t, true), append(pieces, last))
			want := apart(t, start(t, false), append(pieces, last))
			if got != want {
				t.Errorf("the lane answers %s, net/http %s", got, want)
			}
		})
	}
}

// apart sends the pieces one by one and returns the statuses of all answers.
func apart(t *testing.T, r *rig, pieces []string) string {
	t.Helper()
	nc := r.dial(t)
	for _, p := range pieces {
		if _, err := io.WriteString(nc, p); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Millisecond) // so that most arrive apart; nothing tells when one was read
	}
	return statuses(answers(t, rest(t, nc)))
}

// Whoever leaves stays where it is: net/http says goodbye.
func TestNobodyComesBackWhileLeaving(t *testing.T) {
	r := start(t, true)
	nc := r.dial(t)
	roundTrip(t, nc, page)
	r.lane.BeginDrain()
	roundTrip(t, nc, live)
	at(t, r, 1, 0)
}

// The deadlines that net/http set are gone, and the end of the stream is still seen.
func TestAConnectionThatCameBackEnds(t *testing.T) {
	r := start(t, true)
	nc := r.dial(t)
	roundTrip(t, nc, page)
	comeBack(t, r, nc, 1)
	if _, err := io.WriteString(nc, live); err != nil {
		t.Fatal(err)
	}
	if err := nc.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if got := statuses(answers(t, rest(t, nc))); got != "302" {
		t.Errorf("answered %q", got)
	}
	at(t, r, 1, 1)
	eventually(t, "it is closed", func() bool { return r.lane.Stats().Open == 0 })
}
