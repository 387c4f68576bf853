package lane_test

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	apiclient "curt.example/client"
	"curt/test/internal/curttest"
)

// sighting is what somebody who asks again and again has seen of a link.
type sighting struct {
	way     string
	alive   int       // answers that led on
	dead    time.Time // when the first that does not was read
	asked   time.Time // when the last that led on was asked for
	wrong   string
	redials int
}

// before is how many answers of each way make a decision worth looking at.
const before = 10

// look asks for a link in one way, with pauses, until the server refuses it and enough is
// closed. It calls begun once, after so many answers as before, or at its end.
func look(s *curttest.Server, way, target string, dial func(*curttest.Server) *curttest.Conn, pause time.Duration, begun func(), enough <-chan struct{}) sighting {
	begun = sync.OnceFunc(begun)
	defer begun()
	seen := sighting{way: way}
	c := dial(s)
	for {
		asked := time.Now()
		a, err := c.Do("GET", target, []string{"Accept: text/html"}, "")
		switch {
		case err != nil:
			seen.wrong = err.Error()
			return seen
		case a.Status == http.StatusFound || a.Status == http.StatusOK:
			seen.alive, seen.asked = seen.alive+1, asked
			if seen.alive == before {
				begun()
			}
		case a.Status == http.StatusForbidden:
			if seen.dead.IsZero() {
				seen.dead = time.Now()
			}
			select {
			case <-enough:
				return seen
			default:
			}
		default:
			seen.wrong = fmt.Sprintf("%d %s", a.Status, a.Body)
			return seen
		}
		time.Sleep(pause)
		if a.Closes() { // after so many redirects net/http sends a connection away
			c = dial(s)
			seen.redials++
		}
	}
}

// foreign returns a connection that net/http has.
func foreign(t *testing.T) func(s *curttest.Server) *curttest.Conn {
	return func(s *curttest.Server) *curttest.Conn {
		c := s.MustDial(t)
		if err := c.GetJSON("/api/v1/bans", &struct{}{}); err != nil {
			t.Error(err)
		}
		return c
	}
}

// TestAKilledLinkIsDeadAtOnce lets clients ask for a link, in the lane without a pause, at
// net/http, for its preview and its QR code, while it is blocked: when the decision is
// answered nobody is led on any more, and statistics go on. The time from the journal to
// the effect is the server's own figure, which is logged.
func TestAKilledLinkIsDeadAtOnce(t *testing.T) {
	const rounds = 15
	s := curttest.Start(t, curttest.Options{})
	api, err := apiclient.New("http://"+s.Addr, apiclient.WithKey(curttest.Key))
	if err != nil {
		t.Fatal(err)
	}
	lane := func(s *curttest.Server) *curttest.Conn { return s.MustDial(t) }
	var slowest time.Duration
	for range rounds {
		l := s.MustCreate(t, 1)[0]
		enough, seen := make(chan struct{}), make([]sighting, 4)
		var clients, begun sync.WaitGroup
		begun.Add(len(seen))
		for i, way := range []struct {
			name, suffix string
			dial         func(*curttest.Server) *curttest.Conn
			pause        time.Duration
		}{{"lane", "", lane, 0}, {"net/http", "", foreign(t), time.Millisecond}, {"preview", "+", lane, time.Millisecond}, {"QR code", "/qr", lane, time.Millisecond}} {
			clients.Go(func() { seen[i] = look(s, way.name, "/"+l.Code+way.suffix, way.dial, way.pause, begun.Done, enough) })
		}
		begun.Wait()
		sent := time.Now()
		if _, err := api.Moderation.Decide(t.Context(), l.Code, "blocked", "test"); err != nil {
			t.Fatal(err)
		}
		answered := time.Now()
		time.Sleep(5 * time.Millisecond) // whoever is still led on would show
		close(enough)
		clients.Wait()
		for _, way := range seen {
			if way.wrong != "" || way.asked.After(answered) || way.dead.IsZero() {
				t.Errorf("%s: led on %s after the answer, %d times in all; %s", way.way, way.asked.Sub(answered), way.alive, way.wrong)
			}
			if way.way == "lane" {
				slowest = max(slowest, way.dead.Sub(sent))
			}
		}
		if _, err := api.Stats(t.Context(), l.Code, apiclient.StatsQuery{}); err != nil {
			t.Errorf("statistics of a blocked link: %v", err)
		}
	}
	const name = "curt_decision_effect_seconds"
	mean := metric(t, s, name+"_sum") / metric(t, s, name+"_count")
	t.Logf("%d decisions: from the journal to the effect %.2f ms on average; from the request to the lane's first refusal at most %s",
		rounds, mean*1000, slowest.Round(100*time.Microsecond))
}
