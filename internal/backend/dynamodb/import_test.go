package dynamodb_test

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"curt/internal/link"
	"curt/internal/link/linktest"
)

// troubledImports imports while every answer is lost for longer than a call for many links has time, and while each
// write is refused for good.
func troubledImports(t *testing.T, s *server) {
	s.callTime = 400 * time.Millisecond
	defer func() { s.callTime = patience }()
	p := startProxy(t, s.DynamoDB)
	at := s.fresh(t)
	at.Endpoint = p.URL
	store := s.open(t, at)
	var links []link.Link
	for i := range 30 {
		l := linktest.Chosen(i, link.Code(fmt.Sprint("import-", i)))
		l.Version = 3
		links = append(links, l)
	}
	imported := func(what string) {
		t.Helper()
		began := time.Now()
		results, err := store.Import(t.Context(), links)
		for end := began.Add(3 * time.Minute); err != nil && time.Since(began) > 5*time.Second && time.Now().Before(end); { // it gives up when a busy machine stores none for 6 s
			results, err = store.Import(t.Context(), links)
		}
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		for i := range results {
			if results[i].Err != nil || results[i].Link.ID != links[i].ID || results[i].Link.Version != 3 {
				t.Errorf("%s: link %d: %+v", what, i, results[i])
			}
		}
	}
	until := time.Now().Add(2200 * time.Millisecond) // a call for many has two seconds
	end := p.Breaks(func(r request) *answer {
		if r.Operation == "TransactWriteItems" && time.Now().Before(until) {
			return &answer{After: true}
		}
		return nil
	})
	imported("lost answers")
	end()
	imported("once more")
	if changes, _, err := store.Changes(t.Context(), "", 1000); err != nil || len(changes) != len(links) {
		t.Errorf("the change log has %d entries, %v", len(changes), err)
	}
	var asked atomic.Int64
	end = p.Breaks(func(r request) *answer {
		if r.Operation == "TransactWriteItems" {
			asked.Add(1)
			return &answer{Kind: "AccessDeniedException", Status: 400}
		}
		return nil
	})
	defer end()
	if _, err := store.Import(t.Context(), links); !errors.Is(err, link.ErrUnavailable) || errors.Is(err, link.ErrUncertain) || asked.Load() > int64(len(links)) {
		t.Errorf("denied: %v after %d requests", err, asked.Load())
	}
}
