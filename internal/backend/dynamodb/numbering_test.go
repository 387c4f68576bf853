package dynamodb_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"curt/internal/backend/dynamodb"
	"curt/internal/backend/dynamodb/linkitem"
	"curt/internal/link"
	"curt/internal/link/linktest"
	"curt/internal/testkit"
)

// numbering reports whether a request gives entries of the change log their sequences.
func numbering(r request) bool {
	return r.Operation == "TransactWriteItems" && strings.Contains(fmt.Sprint(r.Body["TransactItems"]), "SET head = :to")
}

// pendingOf returns the partition of pending entries that a request asks for; "" = none.
func pendingOf(r request) string {
	values, _ := r.Body["ExpressionAttributeValues"].(map[string]any)
	of, _ := values[":p"].(map[string]any)
	name, _ := of["S"].(string)
	if r.Operation != "Query" || !strings.HasPrefix(name, "pending#") {
		return ""
	}
	return name
}

// ofLog reports whether a request is one of those that the change log is read by.
func ofLog(r request) bool {
	key, _ := r.Body["Key"].(map[string]any)
	return pendingOf(r) != "" || r.Operation == "GetItem" && strings.Contains(fmt.Sprint(key["pk"]), "head")
}

// troubled returns a store behind a proxy, in whose way nothing else is, whose calls have so much time, and one beside it.
func (s *server) troubled(t *testing.T, callTime time.Duration) (p *proxy, store, beside *dynamodb.Links) {
	t.Helper()
	p = startProxy(t, s.DynamoDB)
	at := s.fresh(t)
	beside = s.open(t, at)
	before := s.callTime
	s.callTime = callTime
	at.Endpoint = p.URL
	store = s.open(t, at)
	s.callTime = before
	return p, store, beside
}

func mustChoose(t *testing.T, s *dynamodb.Links, n int, code link.Code) {
	t.Helper()
	if _, err := s.Create(t.Context(), linktest.Chosen(n, code)); err != nil {
		t.Error(err)
	}
}

func codes(changes []link.Change) (all []link.Code) {
	for _, c := range changes {
		all = append(all, c.Key.Code)
	}
	return all
}

// overtakenReaders: a reader whose transactions always lose against those of another process, while writers
// never rest, hears of what was written before it asked.
func overtakenReaders(t *testing.T, s *server) {
	p, store, beside := s.troubled(t, patience)
	mustChoose(t, beside, 0, "first")
	n := 0
	end := p.Breaks(func(r request) *answer {
		if numbering(r) {
			if _, err := beside.Head(t.Context()); err != nil {
				t.Error(err)
			}
			n++
			mustChoose(t, beside, n, link.Code(fmt.Sprintf("more%d", n)))
		}
		return nil
	})
	defer end()
	changes, _, err := store.Changes(t.Context(), "", 1000)
	if err != nil || len(changes) == 0 || changes[0].Key.Code != "first" {
		t.Errorf("read %v, %v, after %d transactions", codes(changes), err, n)
	}
}

// numberedMeanwhile: what another process numbers between two requests of a reader is not behind the end that
// the reader finds, and has one sequence.
func numberedMeanwhile(t *testing.T, s *server) {
	for name, moment := range map[string]func(request) bool{
		"before entries are read": func(r request) bool { return pendingOf(r) != "" },
		"before they are moved":   numbering,
	} {
		p, store, beside := s.troubled(t, patience)
		mustChoose(t, beside, 1, "only")
		var once sync.Once
		end := p.Breaks(func(r request) *answer {
			if moment(r) {
				once.Do(func() {
					if _, err := beside.Head(t.Context()); err != nil {
						t.Error(err)
					}
				})
			}
			return nil
		})
		changes, _, err := store.Changes(t.Context(), "", 1000)
		if end(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff([]link.Code{"only"}, codes(changes)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// apartFrom returns codes whose pending entries are in another partition than those of one.
func apartFrom(code link.Code, many int) (all []link.Code) {
	shard := func(c link.Code) uint32 { return linkitem.ShardOf(link.Key{Code: c}, 16) }
	for i := 0; len(all) < many; i++ {
		if c := link.Code(fmt.Sprintf("apart%d", i)); shard(c) != shard(code) {
			all = append(all, c)
		}
	}
	return all
}

// aPartitionFails: while one partition of pending entries is throttled, or answers nobody, entries of the others
// are numbered and read, with an error: it is not the end of the log. Afterwards nothing is missing.
func aPartitionFails(t *testing.T, s *server) {
	for name, said := range map[string]func(context.Context) *answer{
		"throttled": func(context.Context) *answer { return testkit.DynamoDBThrottles()[0] },
		"hung":      func(ctx context.Context) *answer { <-ctx.Done(); return &answer{} },
	} {
		wrong := besideOneThatFails(t, s, said)
		for range 4 { // the partitions that answer have the time of a call, in which a busy machine may not get to them
			if wrong == "" {
				break
			}
			wrong = besideOneThatFails(t, s, said)
		}
		if wrong != "" {
			t.Errorf("%s: %s", name, wrong)
		}
	}
}

// besideOneThatFails returns what is wrong with the entries of the partitions beside one that answers as said.
func besideOneThatFails(t *testing.T, s *server, said func(context.Context) *answer) (wrong string) {
	p, store, beside := s.troubled(t, 0)
	mustChoose(t, beside, 0, "stuck")
	others := apartFrom("stuck", 5)
	for i, code := range others {
		mustChoose(t, beside, 1+i, code)
	}
	partition := fmt.Sprintf("pending#%d", linkitem.ShardOf(link.Key{Code: "stuck"}, 16))
	broken, mend := context.WithCancel(t.Context())
	end := p.Breaks(func(r request) *answer {
		if pendingOf(r) == partition {
			return said(broken)
		}
		return nil
	})
	changes, next, err := store.Changes(t.Context(), "", 1000)
	end()
	mend()
	if !errors.Is(err, link.ErrUnavailable) {
		t.Errorf("the end was reached: %v", err)
	}
	if diff := cmp.Diff(others, codes(changes)); diff != "" {
		return "(-want +got):\n" + diff
	}
	changes, _, err = store.Changes(t.Context(), next, 1000)
	if diff := cmp.Diff([]link.Code{"stuck"}, codes(changes)); err != nil || diff != "" {
		return fmt.Sprintf("afterwards: %v (-want +got):\n%s", err, diff)
	}
	return ""
}

// budgets: look-ups that are sent again all the time do not keep the requests of the change log from being
// sent again.
func budgets(t *testing.T, s *server) {
	p, store, beside := s.troubled(t, patience)
	mustChoose(t, beside, 1, "there")
	var mu sync.Mutex
	failed := map[string]bool{}
	throttled := make(chan struct{}, 1)
	end := p.Breaks(func(r request) *answer {
		if r.Operation == "GetItem" && !ofLog(r) {
			select {
			case throttled <- struct{}{}:
			default:
			}
			return testkit.DynamoDBThrottles()[0]
		}
		mu.Lock()
		defer mu.Unlock()
		name := r.Operation + pendingOf(r)
		if failed[name] || !ofLog(r) && !numbering(r) {
			return nil
		}
		failed[name] = true // each request once
		return testkit.DynamoDBThrottles()[1]
	})
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for range 32 {
		all.Go(func() {
			for ctx.Err() == nil {
				_, _ = store.Lookup(ctx, link.Key{Code: "there"})
			}
		})
	}
	defer func() {
		stop()
		end()
		all.Wait()
	}()
	<-throttled
	changes, _, err := store.Changes(t.Context(), "", 1000)
	if diff := cmp.Diff([]link.Code{"there"}, codes(changes)); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

// leftBehind: what a writer that is gone has not numbered, a server that only reads does.
func leftBehind(t *testing.T, s *server) {
	at := s.fresh(t)
	mustChoose(t, s.open(t, at), 1, "last") // nobody runs it
	reader, err := dynamodb.OpenLinks(t.Context(), dynamodb.Config{Address: at, ReadOnly: true, CallTime: patience})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = reader.Run(ctx) })
	defer running.Wait()
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for range tick.C {
		changes, _, err := reader.Changes(t.Context(), "", 10)
		if err != nil {
			t.Fatal(err)
		}
		if len(changes) == 1 {
			return
		}
	}
}
