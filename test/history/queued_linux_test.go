package history_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"curt/internal/testkit"
	"curt/test/internal/curttest"
)

// apis is how many servers accept links.
const apis = 2

// line is servers that accept links, a writer, and Kafka between them, over one PostgreSQL.
type line struct {
	*fleet // its clock, and the stalls of the machine

	kafka  *testkit.Kafka
	env    []string
	apis   [apis]atomic.Pointer[process]
	writer *curttest.Server

	mu   sync.Mutex
	kept queue // guarded by mu
	keys []string
}

// process is a server that was started, and which start of it that is.
type process struct {
	place
	*curttest.Server
}

const (
	// queuedRate is slow enough that links are pending for a while, and fast enough for what clients create.
	queuedRate = 150
	// createPace is the least time between two creates of one client, of which there are four: on the fastest machine they create
	// a third of what is written, which is all written at times.
	createPace = 80 * time.Millisecond
)

func lineUp(t *testing.T) *line {
	t.Helper()
	n := &line{fleet: &fleet{t: t, began: time.Now()}, kafka: testkit.StartKafka(t, 1)}
	database := testkit.StartPostgres(t, testkit.PostgresConfig{}).Database(t)
	n.env = []string{
		"CURT_LINKS=" + database, "CURT_ANALYTICS=" + database, "CURT_WRITES=queued", "CURT_WRITES_KAFKA=" + n.kafka.URL("writes"), "CURT_WRITES_ACCEPT_LOSS=true",
		fmt.Sprintf("CURT_WRITES_RATE=%d", queuedRate), "CURT_LIMITS=default=off", "CURT_UNKNOWN_LIMIT=off",
	}
	curttest.Migrate(t, n.env, "--partitions=4")
	for i := range apis {
		n.startAPI(i, t.TempDir())
	}
	go n.watch()
	return n
}

func (n *line) startAPI(i int, data string) {
	n.t.Helper()
	at := place{server: i}
	if before := n.apis[i].Load(); before != nil {
		at.start = before.start + 1
	}
	n.apis[i].Store(&process{at, curttest.Start(n.t, curttest.Options{Data: data, Env: append(n.env, "CURT_ROLE=redirect,api")})})
}

func (n *line) startWriter(data string) {
	n.t.Helper()
	n.writer = curttest.Start(n.t, curttest.Options{Data: data, Env: append(n.env, "CURT_ROLE=writer")})
}

func (n *line) accept(a acceptance) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.kept.accepted = append(n.kept.accepted, a)
	n.keys = append(n.keys, a.key)
}

func (n *line) glimpse(g glance) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.kept.glances = append(n.kept.glances, g)
}

// recent returns one of the links that were accepted last; "" = there is none.
func (n *line) recent(random *rand.Rand) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.keys) == 0 {
		return ""
	}
	return n.keys[len(n.keys)-1-random.IntN(min(len(n.keys), 60))]
}

func (n *line) count() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.kept.accepted)
}

// toldQueued is an answer about a link that may be pending.
type toldQueued struct {
	ID      string `json:"id"`
	Code    string `json:"short_code"`
	URL     string `json:"long_url"`
	State   string `json:"state"`
	Version uint64 `json:"version"`
	Type    string `json:"type"` // of a problem
}

// requester is a client of one server.
type requester struct {
	*line

	server int
	random *rand.Rand
	conns  [apis]*curttest.Conn
	name   string
	made   int
	due    []due
}

// run lets clients of all servers work until the function that it returns is called.
func (n *line) run(name string) (stop func()) {
	ctx, cancel := context.WithCancel(n.t.Context())
	var all sync.WaitGroup
	for i := range 2 * apis {
		r := &requester{line: n, server: i % apis, random: rand.New(rand.NewPCG(uint64(i), 3)), name: fmt.Sprintf("%s-%d", name, i)}
		all.Go(func() {
			pace := time.NewTicker(createPace)
			defer pace.Stop()
			for ; ctx.Err() == nil; <-pace.C {
				r.create(ctx)
				r.changes(ctx)
				for range 4 {
					r.look(ctx, r.random.IntN(apis), n.recent(r.random))
				}
			}
			for _, c := range r.conns {
				if c != nil {
					c.Close()
				}
			}
		})
	}
	end := sync.OnceFunc(func() { cancel(); all.Wait() })
	n.t.Cleanup(end)
	return end
}

// ask asks a process, and decodes what it says of a link. ok is false without an answer that says something.
func (r *requester) ask(ctx context.Context, at *process, method, path string, lines []string, body string) (a curttest.Answer, l toldQueued, ok bool) {
	lines = append([]string{"Authorization: Bearer " + curttest.Key, "Content-Type: application/json"}, lines...)
	a, err := exchange(context.WithoutCancel(ctx), &r.conns[at.server], at.Addr, method, path, lines, body)
	if err != nil || a.Status == http.StatusServiceUnavailable {
		time.Sleep(retryPause)
		return a, l, false
	}
	if len(a.Body) > 0 {
		if err := json.Unmarshal(a.Body, &l); err != nil {
			r.t.Errorf("%s %s: %d %q", method, path, a.Status, a.Body)
			return a, l, false
		}
	}
	return a, l, true
}

// create creates a link. Where the outcome is open it asks again, the server or another one, with the same idempotency key. Some that were
// answered are asked for again as well.
func (r *requester) create(ctx context.Context) {
	r.made++
	once := fmt.Sprintf("%s-%d", r.name, r.made)
	to := "https://example.com/" + once
	lines := []string{"Idempotency-Key: " + once}
	if r.random.IntN(20) == 0 {
		lines = append(lines, "Prefer: wait=2")
	}
	server, again := r.server, r.random.IntN(8) == 0
	for range 8 {
		from, call := r.apis[server].Load(), r.now()
		a, l, ok := r.ask(ctx, from, "POST", "/api/v1/links", lines, `{"long_url":"`+to+`"}`)
		switch {
		case !ok, a.Status == http.StatusConflict && strings.HasSuffix(l.Type, "idempotency-key-busy"):
		case a.Status == http.StatusAccepted, a.Status == http.StatusCreated:
			r.accept(acceptance{from.place, l.Code, l.ID, to, once, a.Status == http.StatusCreated, call, r.now()})
			if r.random.IntN(4) == 0 {
				r.due = append(r.due, due{server, l.Code, to + "/changed"})
			}
			if !again {
				return
			}
			again = false
		default:
			r.t.Errorf("create: %d %s", a.Status, a.Body)
			return
		}
		server = r.random.IntN(apis)
	}
}

// due is a change of a link of the client's own that is to be made.
type due struct {
	server  int
	key, to string
}

// changes tries each change that is due, and keeps those that were refused because their link is pending.
func (r *requester) changes(ctx context.Context) {
	r.due = slices.DeleteFunc(r.due, func(d due) bool { return !r.change(ctx, d) })
	r.due = r.due[max(0, len(r.due)-3):]
}

// change tries to change a link, and reports whether it was refused because the link is pending.
func (r *requester) change(ctx context.Context, d due) (pending bool) {
	at := r.apis[d.server].Load()
	g := glance{at: at.place, key: d.key, to: d.to, call: r.now()}
	a, l, ok := r.ask(ctx, at, "PATCH", "/api/v1/links/"+d.key, nil, `{"long_url":"`+d.to+`"}`)
	g.ret = r.now()
	switch {
	case !ok:
		g.saw = silent
	case a.Status == http.StatusOK:
		g.saw, g.version = changedTo, l.Version
	case a.Status == http.StatusConflict && l.Type == "/problems/link-pending":
		g.saw = tooSoon
		g.after, _ = a.Get("Retry-After")
	case a.Status == http.StatusNotFound: // the process that knew of it ended
		g.saw = unfound
	default:
		r.t.Errorf("change: %d %s", a.Status, a.Body)
	}
	r.glimpse(g)
	return g.saw == tooSoon
}

// look follows a link at a server, or asks the API for it.
func (r *requester) look(ctx context.Context, server int, key string) {
	if key == "" {
		return
	}
	at := r.apis[server].Load()
	g := glance{at: at.place, key: key, call: r.now()}
	if r.random.IntN(3) == 0 {
		a, l, ok := r.ask(ctx, at, "GET", "/api/v1/links/"+key, nil, "")
		switch {
		case !ok:
			return
		case a.Status == http.StatusNotFound:
			g.saw = unfound
		case a.Status != http.StatusOK:
			r.t.Errorf("get: %d %s", a.Status, a.Body)
		case l.State == "pending":
			g.saw, g.to = pends, l.URL
		default:
			g.saw, g.to, g.version = stored, l.URL, l.Version
		}
		g.ret = r.now()
		r.glimpse(g)
		return
	}
	a, err := exchange(context.WithoutCancel(ctx), &r.conns[server], at.Addr, "GET", "/"+key, nil, "")
	switch g.ret = r.now(); {
	case err != nil, a.Status == http.StatusServiceUnavailable:
		time.Sleep(retryPause)
		return
	case a.Status == http.StatusNotFound:
		g.saw = gone
		g.kept, _ = a.Get("Cache-Control")
	case a.Status == http.StatusFound:
		g.saw = leads
		g.to, _ = a.Get("Location")
	default:
		r.t.Errorf("a visitor of %s was answered %d: %s", key, a.Status, a.Body)
	}
	r.glimpse(g)
}

// more waits until so many links more were accepted.
func (n *line) more(links int) {
	n.t.Helper()
	want := n.count() + links
	for end := time.Now().Add(3 * time.Minute); n.count() < want; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			n.t.Fatalf("in three minutes %d links were accepted, want %d", n.count()-want+links, links)
		}
	}
}

// writes waits until the writer has written a link: it joins its group when one that was killed is no member any more.
func (n *line) writes() {
	n.t.Helper()
	for end := time.Now().Add(3 * time.Minute); ; time.Sleep(10 * time.Millisecond) {
		links, found, err := n.writer.Metric(n.t.Context(), "curt_writer_links_total")
		if err == nil && links > 0 {
			return
		}
		if time.Now().After(end) {
			n.t.Fatalf("in three minutes the writer wrote %v links (%v, %v)", links, found, err)
		}
	}
}

// written waits until the group of writers committed all that the topic has.
func (n *line) written() {
	n.t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(n.kafka.Brokers[0].Address))
	if err != nil {
		n.t.Fatal(err)
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	for end := time.Now().Add(4 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
		lag, err := admin.Lag(n.t.Context(), "writes")
		group := lag["writes"]
		if err == nil && group.Error() == nil && len(group.Lag["writes"]) > 0 && group.Lag.Total() == 0 {
			return
		}
		if time.Now().After(end) {
			n.t.Fatalf("after four minutes links are not written: %v, %+v", err, group.Lag)
		}
	}
}

// store reads what the store has.
func (n *line) store() (rows []row) {
	n.t.Helper()
	c := n.apis[0].Load().MustDial(n.t)
	defer c.Close()
	for next := ""; ; {
		var page struct {
			Links []toldQueued `json:"links"`
			Next  string       `json:"next_cursor"`
		}
		if err := c.GetJSON("/api/v1/links?limit=100"+next, &page); err != nil {
			n.t.Fatal(err)
		}
		for _, l := range page.Links {
			rows = append(rows, row{l.Code, l.ID, l.URL})
		}
		if page.Next == "" {
			return rows
		}
		next = "&cursor=" + url.QueryEscape(page.Next)
	}
}

// judged returns the history with what the store has in the end.
func (n *line) judged() queue {
	rows := n.store()
	n.mu.Lock()
	defer n.mu.Unlock()
	return queue{n.kept.accepted, n.kept.glances, rows}
}

// TestHistoryOfQueuedWrites: two servers accept links, are killed, and so is the writer; what everybody is told is what a link that waits
// may be, and each 202 is one link in the end. The control loses links.
func TestHistoryOfQueuedWrites(t *testing.T) {
	testkit.Faults(t)
	n := lineUp(t)
	stop := n.run("run")
	n.more(100) // no writer is there yet
	data := t.TempDir()
	for range rounds() {
		for range 3 {
			n.startWriter(data)
			n.more(150)
			n.writes()
			n.fault("the writer is killed", servers, 0, n.writer.Kill)
			n.more(30)
		}
		n.startWriter(data)
		n.more(50)
		n.writes()
		n.fault("the writer stands still", servers, 0, func() {
			n.signal(n.writer.PID, syscall.SIGSTOP)
			n.more(100)
			n.signal(n.writer.PID, syscall.SIGCONT)
		})
		for i := range apis {
			n.fault(fmt.Sprintf("server %d is killed and starts again", i), servers, 0, func() {
				folder := n.apis[i].Load().Data
				n.apis[i].Load().Kill()
				n.startAPI(i, folder)
			})
			n.more(50)
		}
		n.fault("the broker is killed and starts again", servers, 0, func() {
			n.kafka.Brokers[0].Kill(t)
			n.kafka.Brokers[0].Again(t)
		})
		n.more(50)
		n.written()
		n.writer.Kill()
	}
	n.startWriter(data)
	n.more(50)
	stop()
	n.written()
	h := n.judged()
	counts := map[look]int{}
	for i := range h.glances {
		counts[h.glances[i].saw]++
	}
	t.Logf("%s: %d creates were acknowledged, %d links are stored; %v", n.now().Round(time.Second), len(h.accepted), len(h.rows), counts)
	for _, needed := range []look{leads, gone, pends, stored, unfound, changedTo, tooSoon} {
		if counts[needed] == 0 {
			t.Errorf("nobody was shown %q: there is too little to judge", needed)
		}
	}
	show(t, h.wrongs(2*time.Second+n.slack()))
	t.Run("control: offsets are committed and nothing is written", n.losing)
}

// losing is the control: what the group of writers skips is lost, and the history shows it.
func (n *line) losing(t *testing.T) {
	n.writer.Kill()
	before := n.count()
	stop := n.run("lost")
	n.more(20)
	stop()
	client, err := kgo.NewClient(kgo.SeedBrokers(n.kafka.Brokers[0].Address))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	ends, err := admin.ListEndOffsets(t.Context(), "writes")
	if err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(3 * time.Minute); ; time.Sleep(100 * time.Millisecond) { // until the killed writer is no member any more
		done, err := admin.CommitOffsets(t.Context(), "writes", ends.Offsets())
		if err == nil {
			err = done.Error()
		}
		if err == nil {
			break
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
	h := n.judged()
	wrong := slices.DeleteFunc(h.wrongs(time.Hour), func(text string) bool { return !strings.Contains(text, "was accepted") })
	lost := map[string]bool{}
	for _, accepted := range h.accepted[before:] {
		lost[accepted.key] = true
	}
	if len(wrong) != len(lost) {
		t.Errorf("%d of %d lost links were found: the check proves nothing", len(wrong), len(lost))
	}
}
