package ddb_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"curt/internal/backend/dynamodb/ddb"
	"curt/internal/link"
	"curt/internal/testkit"
)

// TestCalls makes calls of a DynamoDB in trouble.
func TestCalls(t *testing.T) {
	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"} {
		t.Setenv(name, "local")
	}
	for name, test := range map[string]func(*testing.T){
		"throttled calls use their time": throttledCallsUseTheirTime,
		"an outage is bounded":           anOutageIsBounded,
		"lost connections":               lostConnections,
		"refused connections":            refusedConnections,
		"unfinished connections":         unfinishedConnections,
		"silent walks":                   silentWalks, "silence": silence,
		"throttled batches": throttledBatches,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t)
		})
	}
}

// clientOf returns a client of an endpoint, whose calls have so much time; 0 = what they have by default.
func clientOf(t *testing.T, endpoint string, callTime time.Duration) *ddb.Client {
	t.Helper()
	c, err := ddb.Open(t.Context(), ddb.Address{Table: "links", Region: "eu-central-1", Endpoint: endpoint}, ddb.Config{CallTime: callTime})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// put writes one item.
func put(ctx context.Context, c *ddb.Client) error { return putAs(ctx, c, "x") }

func putAs(ctx context.Context, c *ddb.Client, key string) error {
	return c.Write(ctx, func(ctx context.Context) error {
		return c.Put(ctx, &dynamodb.PutItemInput{TableName: &c.Links, Item: ddb.Item{"k": ddb.Text(key)}})
	})
}

func throttle(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	w.WriteHeader(http.StatusBadRequest)
	_, _ = io.WriteString(w, `{"__type":"com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException","message":"slow down"}`)
}

// patience is the time of a call that is meant to succeed, on a busy machine, too.
const patience = 3 * time.Minute

// serve answers requests of one client by f.
func serve(t *testing.T, callTime time.Duration, f http.HandlerFunc) *ddb.Client {
	t.Helper()
	return clientOf(t, listen(t, f), callTime)
}

// listen answers requests by f, and returns where.
func listen(t *testing.T, f http.HandlerFunc) (endpoint string) {
	t.Helper()
	s := httptest.NewServer(f)
	t.Cleanup(s.Close)
	return s.URL
}

// throttledCallsUseTheirTime throttles each of many calls four times: none takes from another the
// right to go on.
func throttledCallsUseTheirTime(t *testing.T) {
	var mu sync.Mutex
	asked := map[string]int{} // by body; guarded by mu
	c := serve(t, patience, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		asked[string(body)]++
		n := asked[string(body)]
		mu.Unlock()
		if n <= 4 {
			throttle(w)
			return
		}
		_, _ = io.WriteString(w, "{}")
	})
	var calls sync.WaitGroup
	var failed atomic.Int64
	for i := range 20 {
		calls.Go(func() {
			for n := range 5 {
				if err := putAs(t.Context(), c, fmt.Sprint(i, n)); err != nil && failed.Add(1) == 1 {
					t.Errorf("a call that had time left ended with %v", err)
				}
			}
		})
	}
	calls.Wait()
	if n := failed.Load(); n > 0 {
		t.Errorf("%d of 100 calls failed", n)
	}
}

// anOutageIsBounded throttles everything: each call uses its time and is refused, with a bounded number
// of requests. Where a machine is too busy to answer the last of them in time nobody knows what became of it, and the call is made
// again.
func anOutageIsBounded(t *testing.T) {
	const callers = 100
	var requests, made atomic.Int64
	c := serve(t, 0, func(w http.ResponseWriter, _ *http.Request) {
		requests.Add(1)
		throttle(w)
	})
	var calls sync.WaitGroup
	for range callers {
		calls.Go(func() {
			for end := time.Now().Add(3 * time.Minute); ; {
				began := time.Now()
				made.Add(1)
				err := put(t.Context(), c)
				if took := time.Since(began); took < time.Second {
					t.Errorf("a throttled write was given up after %s", took)
				}
				if errors.Is(err, link.ErrUncertain) && time.Now().Before(end) {
					continue
				}
				if !errors.Is(err, link.ErrUnavailable) || errors.Is(err, link.ErrUncertain) {
					t.Errorf("a throttled write ended with %v", err)
				}
				return
			}
		})
	}
	calls.Wait()
	if n := requests.Load(); n > 16*made.Load() {
		t.Errorf("%d calls sent %d requests", made.Load(), n)
	}
}

// lostConnections ends connections before an answer: a request that may have been read is sent again, and its outcome
// is unknown if none is ever answered.
func lostConnections(t *testing.T) {
	var requests atomic.Int64
	const gone = 50
	endpoint := listen(t, func(w http.ResponseWriter, _ *http.Request) {
		if requests.Add(1) <= gone {
			panic(http.ErrAbortHandler)
		}
		_, _ = io.WriteString(w, "{}")
	})
	c := clientOf(t, endpoint, patience)
	var calls sync.WaitGroup
	for range 10 { // more than a bucket of 500 tokens lets
		calls.Go(func() {
			if err := put(t.Context(), c); err != nil {
				t.Errorf("after lost connections: %v", err)
			}
		})
	}
	calls.Wait()
	requests.Store(-1 << 40)
	if err := put(t.Context(), clientOf(t, endpoint, 0)); !errors.Is(err, link.ErrUncertain) {
		t.Errorf("a write that DynamoDB may have read ended with %v", err)
	}
}

// refusedConnections has nobody listen for a while: what was never sent did not happen, and is sent once somebody listens.
func refusedConnections(t *testing.T) {
	address := net.JoinHostPort("127.0.0.1", testkit.FreePort(t))
	if err := put(t.Context(), clientOf(t, "http://"+address, 0)); !errors.Is(err, link.ErrUnavailable) || errors.Is(err, link.ErrUncertain) {
		t.Errorf("a refused write ended with %v", err)
	}
	c, ended := clientOf(t, "http://"+address, patience), make(chan error, 1)
	go func() { ended <- put(t.Context(), c) }()
	time.AfterFunc(400*time.Millisecond, func() {
		l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", address)
		if err != nil {
			t.Error(err)
			return
		}
		s := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "{}") })}
		t.Cleanup(func() { _ = s.Close() })
		_ = s.Serve(l)
	})
	if err := <-ended; err != nil {
		t.Errorf("a write ended with %v though DynamoDB came back", err)
	}
}

// unfinishedConnections accepts connections whose TLS never begins: no request can have been sent.
func unfinishedConnections(t *testing.T) {
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	if err := put(t.Context(), clientOf(t, "https://"+l.Addr().String(), 0)); !errors.Is(err, link.ErrUnavailable) || errors.Is(err, link.ErrUncertain) {
		t.Errorf("a write without a connection ended with %v", err)
	}
}

// serveSilence returns a client of a DynamoDB that reads requests and never answers.
func serveSilence(t *testing.T) *ddb.Client {
	t.Helper()
	ended := make(chan struct{})
	c := serve(t, 0, func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-ended:
		case <-r.Context().Done():
		}
	})
	t.Cleanup(func() { close(ended) })
	return c
}

// silence: what was sent and not answered may have been done.
func silence(t *testing.T) {
	c := serveSilence(t)
	if err := put(t.Context(), c); !errors.Is(err, link.ErrUncertain) {
		t.Errorf("a write without an answer ended with %v", err)
	}
	if err := c.Read(t.Context(), func(ctx context.Context) error {
		_, err := c.Get(ctx, c.Links, ddb.Item{"k": ddb.Text("x")}, true)
		return err
	}); !errors.Is(err, link.ErrUnavailable) {
		t.Errorf("a read without an answer ended with %v", err)
	}
}

// silentWalks reads many items of a DynamoDB that does not answer: each request has the time of a call only.
func silentWalks(t *testing.T) {
	c := serveSilence(t)
	for what, read := range map[string]func(context.Context) error{
		"query": func(ctx context.Context) error {
			_, _, err := c.Query(ctx, &dynamodb.QueryInput{TableName: &c.Links})
			return err
		},
		"scan": func(ctx context.Context) error {
			_, _, err := c.Scan(ctx, &dynamodb.ScanInput{TableName: &c.Links})
			return err
		},
		"batch": func(ctx context.Context) error {
			return c.BatchGet(ctx, c.Links, []ddb.Item{{"k": ddb.Text("x")}}, func(ddb.Item) error { return nil })
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			err := c.ReadMany(t.Context(), func(ctx context.Context) error {
				err := read(ctx)
				if ctx.Err() != nil {
					t.Error("the whole time of the walk was used up")
				}
				return err
			})
			if !errors.Is(err, link.ErrUnavailable) {
				t.Error(err)
			}
		})
	}
}

// throttledBatches leaves parts of batches out: they come again after a pause, and until the time is over.
func throttledBatches(t *testing.T) {
	var requests atomic.Int64
	c := serve(t, 0, func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		body, _ := io.ReadAll(r.Body)
		_, _ = fmt.Fprintf(w, `{"UnprocessedItems":%s}`, body[len(`{"RequestItems":`):len(body)-len(`}`)])
	})
	err := c.Write(t.Context(), func(ctx context.Context) error {
		return c.BatchPut(ctx, c.Links, []ddb.Item{{"k": ddb.Text("x")}})
	})
	if !errors.Is(err, link.ErrUnavailable) {
		t.Errorf("a batch that was throttled for good ended with %v", err)
	}
	if n := requests.Load(); n < 2 || n > 20 {
		t.Errorf("%d requests", n)
	}
}
