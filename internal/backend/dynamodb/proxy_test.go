package dynamodb_test

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"curt/internal/testkit"
)

// request is one that a proxy sees.
type request struct {
	operation string
	body      map[string]any
}

// answer is what a proxy says in place of DynamoDB.
type answer struct {
	kind   string // the name of an exception
	status int    // 0 = the connection ends without an answer
	after  bool   // DynamoDB is asked, and its answer is lost
}

// proxy stands before DynamoDB Local.
type proxy struct {
	*httptest.Server

	to     string
	decide atomic.Pointer[func(request) *answer] // nil = all is passed on
	past   *past                                 // nil = indexes are those of now
	asked  atomic.Int64
}

func startProxy(t *testing.T, d *testkit.DynamoDB) *proxy {
	t.Helper()
	p := &proxy{to: d.Endpoint()}
	p.Server = httptest.NewServer(p)
	t.Cleanup(p.Close)
	return p
}

// breaks answers requests by f until the returned function is called.
func (p *proxy) breaks(f func(request) *answer) (end func()) {
	p.decide.Store(&f)
	return func() { p.decide.Store(nil) }
}

func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	text, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	asked := request{operation, map[string]any{}}
	_ = json.Unmarshal(text, &asked.body) // what is no JSON has no fields
	p.asked.Add(1)
	var said *answer
	if decide := p.decide.Load(); decide != nil {
		said = (*decide)(asked)
	}
	if said != nil && !said.after {
		say(w, said)
		return
	}
	if p.past != nil && operation == "Query" && asked.body["IndexName"] != nil {
		asked.body["TableName"] = p.past.table
		text, _ = json.Marshal(asked.body)
	}
	status, header, body := p.pass(r, text)
	if p.past != nil && status == http.StatusOK {
		p.past.note(asked)
	}
	if said != nil {
		say(w, said)
		return
	}
	maps.Copy(w.Header(), header)
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

func say(w http.ResponseWriter, a *answer) {
	if a.status == 0 {
		panic(http.ErrAbortHandler)
	}
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	w.WriteHeader(a.status)
	_ = json.NewEncoder(w).Encode(map[string]string{"__type": "com.amazonaws.dynamodb.v20120810#" + a.kind, "message": "injected"})
}

func (p *proxy) pass(r *http.Request, text []byte) (status int, header http.Header, body []byte) {
	out, err := http.NewRequestWithContext(r.Context(), r.Method, p.to+r.URL.Path, bytes.NewReader(text))
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	out.Header = r.Header.Clone()
	got, err := http.DefaultTransport.RoundTrip(out)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	defer func() { _ = got.Body.Close() }()
	if body, err = io.ReadAll(got.Body); err != nil {
		panic(http.ErrAbortHandler)
	}
	return got.StatusCode, got.Header, body
}

// past is what indexes show: the links of one table as they were at the last catchUp.
type past struct {
	table string // a copy whose indexes are asked
	of    string

	mu    sync.Mutex
	news  []any // keys of links that were written since; guarded by mu
	read  func(key map[string]any) map[string]any
	write func(item map[string]any)
}

// note keeps the key of each link that a write changed.
func (p *past) note(r request) {
	keys := p.keys(r)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.news = append(p.news, keys...)
}

func (p *past) keys(r request) (keys []any) {
	add := func(write any, under string) {
		body, _ := write.(map[string]any)
		if body == nil || body["TableName"] != p.of {
			return
		}
		if item, _ := body[under].(map[string]any); item != nil {
			keys = append(keys, item["k"])
		}
	}
	switch r.operation {
	case "PutItem":
		add(r.body, "Item")
	case "UpdateItem":
		add(r.body, "Key")
	case "TransactWriteItems":
		all, _ := r.body["TransactItems"].([]any)
		for _, one := range all {
			writes, _ := one.(map[string]any)
			add(writes["Put"], "Item")
			add(writes["Update"], "Key")
		}
	}
	return keys
}

// catchUp shows what was written before it was called.
func (p *past) catchUp() {
	p.mu.Lock()
	defer p.mu.Unlock()
	seen := map[string]bool{}
	for _, key := range p.news {
		name, _ := json.Marshal(key)
		if seen[string(name)] {
			continue
		}
		seen[string(name)] = true
		if item := p.read(map[string]any{"k": key}); item != nil {
			p.write(item)
		}
	}
	p.news = nil
}
