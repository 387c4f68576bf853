package history_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"curt/test/internal/curttest"
)

// writer is one client of the API.
type writer struct {
	*crowd

	random *rand.Rand
	server int
	client int
	made   int
	conn   *curttest.Conn // nil = none
	seen   *curttest.Conn // as a visitor; nil = none
}

func (w *writer) close() {
	for _, c := range []*curttest.Conn{w.conn, w.seen} {
		if c != nil {
			c.Close()
		}
	}
}

// write asks a server of the API until ctx ends.
func (c *crowd) write(ctx context.Context, server int) {
	w := &writer{crowd: c, server: server, client: int(c.names.Add(1))}
	w.random = rand.New(rand.NewPCG(uint64(server), uint64(w.client)))
	defer w.close()
	for ctx.Err() == nil {
		e := c.board.take(w.random)
		switch {
		case e == nil:
			w.mint(ctx)
		case !e.there.Load():
			w.about(ctx, e, asked{kind: create, key: e.key, to: w.somewhere()})
		default:
			w.about(ctx, e, w.choose(e))
		}
		time.Sleep(writePause)
	}
}

// somewhere returns a destination that no other request has.
func (w *writer) somewhere() string {
	w.made++
	return fmt.Sprintf("https://example.com/%s/%d/%d", w.board.run, w.client, w.made)
}

// choose returns what to ask of a link that is there.
func (w *writer) choose(e *entry) asked {
	version := e.version.Load()
	if version > 1 && w.random.IntN(8) == 0 {
		version-- // which somebody has overtaken
	}
	switch n := w.random.IntN(100); {
	case version == 0 || n < 40:
		return asked{kind: get, key: e.key}
	case n < 80:
		return asked{kind: put, key: e.key, match: version, to: w.somewhere()}
	case n < 92:
		return asked{kind: disable, key: e.key, match: version}
	case n < 94 && e.uses.Load() > wear*2/3:
		return asked{kind: block, key: e.key}
	case n < 98:
		return asked{kind: create, key: e.key, to: w.somewhere()} // whose code is taken
	}
	return asked{kind: get, key: e.key}
}

// about sends a request about a link and keeps the answer.
func (w *writer) about(ctx context.Context, e *entry, in asked) {
	q := request{asked: in, client: w.client, call: w.now()}
	_, q.told = w.send(ctx, in, "")
	q.ret = w.now()
	w.requested(q)
	if q.result == unknown {
		w.client = int(w.names.Add(1)) // a client has one request at a time
		return
	}
	if q.result == done || q.result == refused && in.kind == create {
		e.there.Store(true)
	}
	for l := q.link; ; {
		if old := e.version.Load(); l.version <= old || e.version.CompareAndSwap(old, l.version) {
			break
		}
	}
	if q.result == done && in.kind != get {
		w.wrote[w.server].Add(1)
	}
}

// mint makes a link with a code of the server's. Where the outcome is open the client asks
// again, with the same key: that is one request, to whoever answers.
func (w *writer) mint(ctx context.Context) {
	q := request{asked: asked{kind: create, to: w.somewhere()}, client: w.client, call: w.now()}
	once := fmt.Sprintf("Idempotency-Key: %s-%d-%d", w.board.run, w.client, w.made)
	for range maxQuestions {
		if q.key, q.told = w.send(ctx, q.asked, once); q.result == done {
			q.ret = w.now()
			w.requested(q)
			w.board.add(q.key)
			w.wrote[w.server].Add(1)
			return
		}
		time.Sleep(retryPause)
	}
	// Nobody knows the code: nothing that anybody is told can be about it.
}

// shown is what the API shows of a link.
type shown struct {
	Code    string `json:"short_code"`
	LongURL string `json:"long_url"`
	Version uint64 `json:"version"`
	Status  string `json:"status"`
	Safety  string `json:"safety"`
}

// send sends a request, with a further header line, to the writer's server, and returns what
// was told, about which code.
func (w *writer) send(ctx context.Context, in asked, line string) (code string, out told) {
	method, target, body := question(in)
	lines := []string{"Authorization: Bearer " + curttest.Key}
	if body != "" {
		lines = append(lines, "Content-Type: application/json")
	}
	if line != "" {
		lines = append(lines, line)
	}
	if in.match > 0 && !w.blindly {
		lines = append(lines, fmt.Sprintf(`If-Match: "%d"`, in.match))
	}
	a, err := exchange(ctx, &w.conn, w.fleet.server(w.server).Addr, method, target, lines, body)
	if err != nil {
		time.Sleep(retryPause)
		return "", told{result: unknown}
	}
	return w.hear(in, &a)
}

// hear returns what an answer says.
func (w *writer) hear(in asked, a *curttest.Answer) (code string, out told) {
	var l shown
	switch a.Status {
	case http.StatusOK, http.StatusCreated:
		if err := json.Unmarshal(a.Body, &l); err != nil || l.Code == "" {
			w.t.Errorf("%s %s: %v in %s", in.kind, in.key, err, a.Body)
			return "", told{result: unknown}
		}
		if in.kind == block { // it shows no version
			return l.Code, told{result: done}
		}
		return l.Code, told{done, link{l.Version, l.LongURL, l.Status == "disabled", l.Safety == "blocked"}}
	case http.StatusNotFound:
		return "", told{result: missing}
	case http.StatusPreconditionFailed:
		return "", told{result: refused}
	case http.StatusServiceUnavailable:
		return "", told{result: unknown}
	case http.StatusConflict:
		if strings.Contains(string(a.Body), "slug-taken") {
			return "", told{result: refused}
		}
		if strings.Contains(string(a.Body), "idempotency-key-busy") {
			return "", told{result: unknown}
		}
	}
	w.t.Errorf("%s %s was answered %d: %s", in.kind, in.key, a.Status, a.Body)
	return "", told{result: unknown}
}

// question is a request on the wire.
func question(in asked) (method, target, body string) {
	const links = "/api/v1/links"
	text := func(members map[string]any) string {
		encoded, err := json.Marshal(members)
		if err != nil {
			panic(err) // of texts and truth values only
		}
		return string(encoded)
	}
	switch in.kind {
	case create:
		members := map[string]any{"long_url": in.to, "dedupe": false}
		if in.key != "" {
			members["custom_alias"] = in.key
		}
		return "POST", links, text(members)
	case put:
		return "PATCH", links + "/" + in.key, text(map[string]any{"long_url": in.to, "status": "active"})
	case disable:
		return "PATCH", links + "/" + in.key, text(map[string]any{"status": "disabled"})
	case block:
		return "PUT", links + "/" + in.key + "/safety", text(map[string]any{"safety": "blocked", "reason": "it phishes"})
	default:
		return "GET", links + "/" + in.key, ""
	}
}
