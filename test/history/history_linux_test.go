package history_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"curt/internal/testkit"
	"curt/test/internal/curttest"
)

// TestHistory: clients of three servers over one PostgreSQL are told what one link after
// another could tell them, whatever dies, sleeps or has its clock set; visitors are late by
// two seconds at most, and no link that somebody was told of is absent.
func TestHistory(t *testing.T) {
	testkit.Faults(t)
	f := gather(t, false)
	t.Run("control: clients that ignore If-Match", f.ignoringClients)
	t.Run("control: a proxy that keeps redirects", f.staleProxy)
	f.history(t)
}

// TestHistoryWithRedis is TestHistory with Redis between the servers, which dies, too.
func TestHistoryWithRedis(t *testing.T) {
	testkit.Faults(t)
	gather(t, true).history(t)
}

// rounds is how often all of it happens.
func rounds() int {
	if curttest.Long() {
		return 15
	}
	return 1
}

func (f *fleet) crowd(t *testing.T, run string) *crowd {
	return &crowd{t: t, fleet: f, board: &board{run: run}}
}

// history lets everything happen, and judges what everybody was told.
func (f *fleet) history(t *testing.T) {
	c := f.crowd(t, "run")
	c.begin()
	c.progress(20)
	for range rounds() {
		f.round(c)
	}
	if f.tables == nil {
		f.died()
		c.progress(20)
	}
	for end := time.Now().Add(3 * time.Minute); len(c.sofar().lacks()) > 0 && time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		// Clients on a busy machine have asked little so far.
	}
	h := c.end()
	time.Sleep(heard) // then nothing may be late
	c.look(h)
	t.Logf("%6s: everybody was asked once more", f.now().Round(100*time.Millisecond))
	h.faults = f.faults
	h.count(t)
	h.mustLinearize(t)
	h.mustBeInTime(t, f)
}

// progress waits until each server has taken so many writes more.
func (c *crowd) progress(writes int64) {
	c.t.Helper()
	var wanted [servers]int64
	for i := range servers {
		wanted[i] = c.wrote[i].Load() + writes
	}
	from := c.now()
	for end := time.Now().Add(3 * time.Minute); ; time.Sleep(10 * time.Millisecond) {
		behind := 0
		for i := range servers {
			if c.wrote[i].Load() < wanted[i] {
				behind++
			}
		}
		if behind == 0 {
			c.t.Logf("%6s to %6s: every server takes %d writes", from.Round(100*time.Millisecond), c.now().Round(100*time.Millisecond), writes)
			return
		}
		if time.Now().After(end) {
			c.t.Fatalf("in three minutes %d servers took no %d writes", behind, writes)
		}
	}
}

// look asks once more for every link, at each server, when nobody changes anything.
func (c *crowd) look(h *history) {
	c.t.Helper()
	keys := map[string]bool{}
	for i := range h.requests {
		keys[h.requests[i].key] = true
	}
	for server := range servers {
		w := &writer{crowd: c, server: server, client: int(c.names.Add(1))}
		for key := range keys {
			w.about(c.t.Context(), &entry{}, asked{kind: get, key: key})
			c.follow(c.t.Context(), &w.seen, server, key)
		}
		w.close()
	}
}

// count fails the test unless there was something to judge.
func (h *history) count(t *testing.T) {
	t.Helper()
	t.Log(h.counts())
	for _, needed := range h.lacks() {
		t.Errorf("no %s: there is too little to judge", needed)
	}
}

// counts counts what was told of each kind.
func (h *history) counts() map[string]int {
	counts := map[string]int{}
	for i := range h.requests {
		counts[h.requests[i].kind.String()+" "+h.requests[i].result.String()]++
	}
	for i := range h.visits {
		counts["visit "+h.visits[i].saw.String()]++
	}
	return counts
}

// lacks are the kinds of which nothing was told, and something must be.
func (h *history) lacks() []string {
	counts := h.counts()
	return slices.DeleteFunc([]string{
		"create done", "create refused", "get done", "put done", "put refused", "put unknown", "disable done", "block done",
		"visit led on", "visit off", "visit blocked",
	}, func(kind string) bool { return counts[kind] > 0 })
}

// mustBeInTime fails the test where a visitor was shown what had been overtaken for too
// long.
func (h *history) mustBeInTime(t *testing.T, f *fleet) {
	t.Helper()
	always, calm := f.promised()
	wrong, late := h.wrongs(always)
	show(t, wrong)
	if n := len(late); n > 0 {
		t.Logf("%d of %d visitors saw what was overtaken: p50 %s, p99 %s, the latest %s; slack of this machine %s",
			n, len(h.visits), late[n/2], late[n*99/100], late[n-1], f.slack())
	}
	if calm != nil {
		wrong, _ := h.wrongs(calm)
		show(t, wrong)
	}
}

// show fails the test with the first of what is wrong.
func show(t *testing.T, wrong []string) {
	t.Helper()
	for i, text := range wrong {
		if i == 10 {
			t.Errorf("and %d more", len(wrong)-i)
			return
		}
		t.Error(text)
	}
}

// ignoringClients is the control of what the API answers: clients that leave their versions
// out overwrite each other, and the history shows it.
func (f *fleet) ignoringClients(t *testing.T) {
	f.mustNotLinearize(t, func(run string) *crowd {
		c := f.crowd(t, "blind"+run)
		c.blindly = true
		return c
	})
}

// mustNotLinearize lets crowds work one after the other until what one of them was told has no order: each history is
// whole, because in a part of one the request that explains an answer may be missing.
func (f *fleet) mustNotLinearize(t *testing.T, gathered func(run string) *crowd) {
	t.Helper()
	end := time.Now().Add(3 * time.Minute)
	for run := 1; ; run++ {
		c := gathered(strconv.Itoa(run))
		c.begin()
		c.progress(30)
		h := c.end()
		verdict, _ := h.linearizable()
		if verdict == porcupine.Illegal {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%d requests are %s: the check proves nothing", len(h.requests), verdict)
		}
	}
}

// staleProxy is the control of what visitors are answered: what they saw at one server, in
// front of which a cache keeps redirects, is found to be too old, and nothing else is.
func (f *fleet) staleProxy(t *testing.T) {
	proxy := &keeper{target: "http://" + f.server(0).Addr, kept: map[string]string{}}
	front := httptest.NewServer(proxy)
	defer front.Close()
	c := f.crowd(t, "proxy")
	c.front = strings.TrimPrefix(front.URL, "http://")
	c.begin()
	for began := time.Now(); ; time.Sleep(time.Second) { // until what is kept is too old
		always, _ := f.promised()
		// What a visitor saw may also be wrong because its request has not been noted yet.
		if wrong, _ := c.sofar().wrongs(always); slices.ContainsFunc(wrong, func(text string) bool { return strings.Contains(text, "was known") }) {
			break
		}
		if time.Since(began) > 3*time.Minute+f.slack() {
			t.Fatal("nothing is wrong: the check proves nothing")
		}
	}
	h := c.end()
	h.mustLinearize(t)
	always, _ := f.promised()
	wrong, _ := h.wrongs(always)
	for _, text := range wrong {
		if !strings.Contains(text, fmt.Sprintf(" server %d: ", 0)) {
			t.Error(text)
		}
	}
	t.Logf("%d of %d visitors saw what was too old", len(wrong), len(h.visits))
}

// keeper is a proxy that keeps the first redirect of each link for good.
type keeper struct {
	target string

	mu   sync.Mutex
	kept map[string]string // Location by path; guarded by mu
}

func (k *keeper) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if to := k.kept[r.URL.Path]; to != "" {
		w.Header().Set("Location", to)
		w.WriteHeader(http.StatusFound)
		return
	}
	q, err := http.NewRequestWithContext(r.Context(), http.MethodGet, k.target+r.URL.Path, nil)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	a, err := http.DefaultTransport.RoundTrip(q)
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	defer func() { _ = a.Body.Close() }()
	if to := a.Header.Get("Location"); to != "" {
		k.kept[r.URL.Path] = to
		w.Header().Set("Location", to)
	}
	w.WriteHeader(a.StatusCode)
	_, _ = io.Copy(w, a.Body) // the visitor may have gone
}
