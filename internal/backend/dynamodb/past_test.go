package dynamodb_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"curt/internal/backend/dynamodb"
	"curt/internal/link"
	"curt/internal/link/linktest"
	"curt/internal/testkit"
)

// DynamoDB Local's indexes are immediate; those of AWS are not. Here each store is behind a proxy of
// its own that answers questions of indexes from a copy of the table, which is as old as it likes.

// aged is a store whose indexes are of the past.
type aged struct {
	*dynamodb.Links
	past *past
}

// What is read from an index may lag behind: the suite reads it once the index has caught up. All
// other methods see it as it is.

func (a aged) List(ctx context.Context, f link.Filter, p link.Page) (link.Slice, error) {
	a.past.catchUp()
	return a.Links.List(ctx, f, p)
}

func (a aged) Expired(ctx context.Context, after link.Cursor, before time.Time, n int) ([]link.Key, link.Cursor, error) {
	a.past.catchUp()
	return a.Links.Expired(ctx, after, before, n)
}

func (a aged) RemoveLapsed(ctx context.Context, n int) (int, error) {
	a.past.catchUp()
	return a.Links.RemoveLapsed(ctx, n)
}

func (a aged) FindSame(ctx context.Context, wanted link.Link, now time.Time) (link.Link, error) {
	a.past.catchUp()
	return a.Links.FindSame(ctx, wanted, now)
}

func (a aged) FindOrCreate(ctx context.Context, l link.Link, now time.Time) (link.Link, bool, error) {
	a.past.catchUp() // for links that Create made
	return a.Links.FindOrCreate(ctx, l, now)
}

func (a aged) CreateMany(ctx context.Context, now time.Time, entries []link.Creation) ([]link.Result, error) {
	a.past.catchUp()
	return a.Links.CreateMany(ctx, now, entries)
}

// agedStore opens a store behind a proxy of its own.
func (s *server) agedStore(t testing.TB, test *testing.T) aged {
	t.Helper()
	at := s.fresh(t)
	copied := at
	copied.Table += "-past"
	if _, err := dynamodb.Migrate(t.Context(), copied, false); err != nil {
		t.Fatal(err)
	}
	p := startProxy(test, s.DynamoDB)
	ask := func(operation string, body map[string]any) map[string]any {
		return askLocal(t, s.Endpoint(), operation, body)
	}
	p.past = &past{
		table: copied.Table, of: at.Table,
		read: func(key map[string]any) map[string]any {
			item, _ := ask("GetItem", map[string]any{"TableName": at.Table, "Key": key, "ConsistentRead": true})["Item"].(map[string]any)
			return item
		},
		write: func(item map[string]any) { ask("PutItem", map[string]any{"TableName": copied.Table, "Item": item}) },
	}
	at.Endpoint = p.URL
	return aged{s.open(t, at), p.past}
}

// askLocal sends a request that nobody sees.
func askLocal(t testing.TB, endpoint, operation string, body map[string]any) (got map[string]any) {
	text, err := json.Marshal(body)
	if err != nil {
		t.Error(err)
		return nil
	}
	r, err := http.NewRequestWithContext(context.WithoutCancel(t.Context()), http.MethodPost, endpoint+"/", bytes.NewReader(text))
	if err != nil {
		t.Error(err)
		return nil
	}
	r.Header.Set("X-Amz-Target", "DynamoDB_20120810."+operation)
	r.Header.Set("Content-Type", "application/x-amz-json-1.0")
	r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=local/20260101/eu-central-1/dynamodb/aws4_request, SignedHeaders=host, Signature=0")
	out, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Error(err)
		return nil
	}
	defer func() { _ = out.Body.Close() }()
	if text, err = io.ReadAll(out.Body); err != nil || out.StatusCode != http.StatusOK {
		t.Errorf("%s: %s %s %v", operation, out.Status, text, err)
	}
	_ = json.Unmarshal(text, &got)
	return got
}

// TestSuiteWithIndexesOfThePast runs the whole suite where no index shows what was just written, but
// for the walks that say so.
func TestSuiteWithIndexesOfThePast(t *testing.T) {
	testkit.Faults(t)
	s := startServer(t)
	linktest.Run(t, linktest.Harness{
		Open: func(tb testing.TB) link.Store { return s.agedStore(tb, t) },
		Again: func(tb testing.TB, l link.Store) link.Store {
			a := l.(aged)
			return aged{s.again(tb, a.Links), a.past}
		},
		Features: declared(t),
	})
}

// oneCreates lets callers over two handles want the same while no index shows
// anything. The control decides by the index, and must fail.
func oneCreates(t *testing.T, s *server) {
	a := s.agedStore(t, t)
	handles := []*dynamodb.Links{a.Links, s.again(t, a.Links)}
	made := func(workspace link.WorkspaceID, create func(h *dynamodb.Links, l link.Link) (found bool, err error)) int64 {
		var created atomic.Int64
		var wg sync.WaitGroup
		for i := range 40 {
			wg.Go(func() {
				l := linktest.Chosen(i, link.Code(fmt.Sprintf("%s-%02d", workspace, i)))
				l.Destination, l.Workspace, l.CodeKind = "https://example.com/same", workspace, linktest.Kind(i%3 == 0)
				found, err := create(handles[i%2], l)
				if err != nil {
					t.Error(err)
				}
				if !found {
					created.Add(1)
				}
			})
		}
		wg.Wait()
		return created.Load()
	}
	if n := made("exact", func(h *dynamodb.Links, l link.Link) (bool, error) {
		_, found, err := h.FindOrCreate(t.Context(), l, linktest.Epoch())
		return found, err
	}); n != 1 {
		t.Errorf("%d callers created a link, want 1", n)
	}
	if n := made("control", func(h *dynamodb.Links, l link.Link) (bool, error) {
		page, err := h.List(t.Context(), link.Filter{Workspace: l.Workspace, Oldest: true}, link.Page{Limit: 1})
		if err != nil || len(page.Links) > 0 {
			return true, err
		}
		_, err = h.Create(t.Context(), l)
		return false, err
	}); n < 2 {
		t.Errorf("the control created %d links: indexes are not of the past", n)
	}
}
