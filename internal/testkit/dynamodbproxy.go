package testkit

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// DynamoDBRequest is one that a DynamoDBProxy sees.
type DynamoDBRequest struct {
	Operation string
	Body      map[string]any
}

// DynamoDBAnswer is what a DynamoDBProxy says in place of DynamoDB, as the SDK reads it.
type DynamoDBAnswer struct {
	Kind   string // the name of an exception
	Status int    // 0 = the connection ends without an answer
	After  bool   // DynamoDB is asked, and its answer is lost
}

// DynamoDBThrottles are the errors that AWS throttles with.
func DynamoDBThrottles() []*DynamoDBAnswer {
	return []*DynamoDBAnswer{
		{Kind: "ProvisionedThroughputExceededException", Status: http.StatusBadRequest},
		{Kind: "ThrottlingException", Status: http.StatusBadRequest},
		{Kind: "RequestLimitExceeded", Status: http.StatusBadRequest},
	}
}

// DynamoDBTroubles are all that can become of a request: refusals of DynamoDB's own kinds, its failures
// before and after it did what was asked, and connections that end before and after.
func DynamoDBTroubles() []*DynamoDBAnswer {
	return append(DynamoDBThrottles(),
		&DynamoDBAnswer{Kind: "InternalServerError", Status: http.StatusInternalServerError},
		&DynamoDBAnswer{Kind: "InternalServerError", Status: http.StatusInternalServerError, After: true},
		&DynamoDBAnswer{Kind: "ServiceUnavailable", Status: http.StatusServiceUnavailable, After: true},
		&DynamoDBAnswer{}, &DynamoDBAnswer{After: true})
}

// DynamoDBProxy stands before DynamoDB Local.
type DynamoDBProxy struct {
	*httptest.Server

	Rewrite func(*DynamoDBRequest) (changed bool) // before it is passed on; nil = nothing. Set before the first request
	Passed  func(DynamoDBRequest)                 // is told what DynamoDB did; nil = nobody. Set before the first request

	to     string
	decide atomic.Pointer[func(DynamoDBRequest) *DynamoDBAnswer] // nil = all is passed on
	asked  atomic.Int64
}

// StartDynamoDBProxy starts one that passes everything on.
func StartDynamoDBProxy(t testing.TB, d *DynamoDB) *DynamoDBProxy {
	t.Helper()
	p := &DynamoDBProxy{to: d.Endpoint()}
	p.Server = httptest.NewServer(p)
	t.Cleanup(p.Close)
	return p
}

// Breaks answers requests by f, nil = pass it on, until the returned function is called.
func (p *DynamoDBProxy) Breaks(f func(DynamoDBRequest) *DynamoDBAnswer) (end func()) {
	p.decide.Store(&f)
	return func() { p.decide.Store(nil) }
}

// Asked is how many requests there were.
func (p *DynamoDBProxy) Asked() int64 { return p.asked.Load() }

// ServeHTTP implements http.Handler.
func (p *DynamoDBProxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	text, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	asked := DynamoDBRequest{operation, map[string]any{}}
	_ = json.Unmarshal(text, &asked.Body) // what is no JSON has no fields
	p.asked.Add(1)
	var said *DynamoDBAnswer
	if decide := p.decide.Load(); decide != nil {
		said = (*decide)(asked)
	}
	if said != nil && !said.After {
		said.write(w)
		return
	}
	if p.Rewrite != nil && p.Rewrite(&asked) {
		if text, err = json.Marshal(asked.Body); err != nil {
			panic(http.ErrAbortHandler)
		}
	}
	status, header, body := p.pass(r, text)
	if p.Passed != nil && status == http.StatusOK {
		p.Passed(asked)
	}
	if said != nil {
		said.write(w)
		return
	}
	maps.Copy(w.Header(), header)
	w.WriteHeader(status)
	_, _ = w.Write(body) //nolint:gosec // what DynamoDB Local said
}

func (a *DynamoDBAnswer) write(w http.ResponseWriter) {
	if a.Status == 0 {
		panic(http.ErrAbortHandler)
	}
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	w.WriteHeader(a.Status)
	_ = json.NewEncoder(w).Encode(map[string]string{"__type": "com.amazonaws.dynamodb.v20120810#" + a.Kind, "message": "injected"})
}

func (p *DynamoDBProxy) pass(r *http.Request, text []byte) (status int, header http.Header, body []byte) {
	out, err := http.NewRequestWithContext(r.Context(), r.Method, p.to+r.URL.Path, bytes.NewReader(text)) //nolint:gosec // to DynamoDB Local
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
