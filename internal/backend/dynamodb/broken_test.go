package dynamodb_test

import (
	"errors"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"curt/internal/backend/dynamodb"
	"curt/internal/backend/dynamodb/ddb"
	"curt/internal/link"
	"curt/internal/link/linktest"
	"curt/internal/testkit"
)

// throttling: what is throttled for a moment is done all the same, and what is throttled for long
// is refused within the time of a call, and was not done.
func throttling(t *testing.T, s *server) {
	p := startProxy(t, s.DynamoDB)
	at := s.fresh(t)
	at.Endpoint = p.URL
	patient := s.open(t, at)
	s.callTime = 0
	defer func() { s.callTime = patience }()
	store := s.open(t, at)
	l := linktest.Chosen(1, "there")
	l, err := patient.Create(t.Context(), l)
	if err != nil {
		t.Fatal(err)
	}
	for _, said := range testkit.DynamoDBThrottles() {
		var left atomic.Int64
		left.Store(3)
		end := p.Breaks(func(request) *answer {
			if left.Add(-1) >= 0 {
				return said
			}
			return nil
		})
		if _, err := patient.Lookup(t.Context(), l.Key); err != nil || left.Load() >= 0 {
			t.Errorf("%s for a moment: %v, %d refusals left", said.Kind, err, left.Load())
		}
		end()
	}
	end := p.Breaks(func(request) *answer { return testkit.DynamoDBThrottles()[0] })
	var calls sync.WaitGroup
	counted := linktest.Chosen(2, "Refused")
	counted.CodeKind = link.Counted
	for what, call := range map[string]func() error{
		"look up":       func() error { _, err := store.Lookup(t.Context(), l.Key); return err },
		"create":        func() error { _, err := store.Create(t.Context(), counted); return err },
		"create chosen": func() error { _, err := store.Create(t.Context(), linktest.Chosen(3, "refused")); return err },
		"replace":       func() error { _, err := store.Replace(t.Context(), l, link.Edit{}); return err },
		"lease":         func() error { _, err := store.Lease(t.Context(), "codes-7", 10); return err },
	} {
		calls.Go(func() {
			err := call()
			for end := time.Now().Add(3 * time.Minute); errors.Is(err, link.ErrUncertain) && time.Now().Before(end); {
				err = call() // a busy machine did not answer the last request in time
			}
			if !errors.Is(err, link.ErrUnavailable) || errors.Is(err, link.ErrUncertain) {
				t.Errorf("%s while throttled: %v", what, err)
			}
		})
	}
	calls.Wait()
	end()
	for _, code := range []link.Code{"Refused", "refused"} {
		if _, err := patient.Get(t.Context(), link.Key{Code: code}); !errors.Is(err, link.ErrNotFound) {
			t.Errorf("%s was refused: %v", code, err)
		}
	}
}

// lostAnswers: a write whose answer is lost is made once, and its caller is told so, or that
// nobody knows.
func lostAnswers(t *testing.T, s *server) {
	p := startProxy(t, s.DynamoDB)
	at := s.fresh(t)
	at.Endpoint = p.URL
	store, beside := s.open(t, at), s.open(t, at)
	lose := func(operation string) (end func()) {
		var lost atomic.Bool
		return p.Breaks(func(r request) *answer {
			if r.Operation == operation && lost.CompareAndSwap(false, true) {
				return &answer{After: true}
			}
			return nil
		})
	}
	counted := linktest.Chosen(1, "Counted")
	counted.CodeKind, counted.MaxClicks = link.Counted, 10
	end := lose("PutItem")
	counted, err := store.Create(t.Context(), counted)
	if end(); err != nil || counted.Version != 1 {
		t.Errorf("a create: %+v, %v", counted, err)
	}
	end = lose("TransactWriteItems")
	chosen, err := store.Create(t.Context(), linktest.Chosen(2, "chosen"))
	if end(); err != nil {
		t.Errorf("a chosen code: %v", err)
	}
	end = lose("TransactWriteItems")
	chosen.Title = "changed"
	chosen, err = store.Replace(t.Context(), chosen, link.Edit{})
	if end(); err != nil || chosen.Version != 2 {
		t.Errorf("a change: %+v, %v", chosen, err)
	}
	end = lose("UpdateItem")
	_, err = store.Spend(t.Context(), counted.Key, 3)
	if end(); !errors.Is(err, link.ErrUncertain) || errors.Is(err, link.ErrUnavailable) {
		t.Errorf("clicks: %v", err)
	}
	if l, err := beside.Get(t.Context(), counted.Key); err != nil || l.Spent != 3 {
		t.Errorf("%d clicks spent, %v, want 3", l.Spent, err)
	}
	if changes, _, err := beside.Changes(t.Context(), "", 10); err != nil || len(changes) != 2 {
		t.Errorf("changes %v, %v", changes, err)
	}
}

// unknownCodes: a known code is one request, an unknown one two, of which the second
// is consistent.
func unknownCodes(t *testing.T, s *server) {
	p := startProxy(t, s.DynamoDB)
	at := s.fresh(t)
	at.Endpoint = p.URL
	store := s.open(t, at)
	if _, err := store.Create(t.Context(), linktest.Chosen(1, "there")); err != nil {
		t.Fatal(err)
	}
	for code, want := range map[link.Code][]any{"there": {false}, "none": {false, true}} {
		var consistent []any
		end := p.Breaks(func(r request) *answer {
			consistent = append(consistent, r.Body["ConsistentRead"] == true)
			return nil
		})
		_, err := store.Lookup(t.Context(), link.Key{Code: code})
		end()
		if len(consistent) != len(want) || consistent[len(want)-1] != want[len(want)-1] || (err != nil) != (code == "none") {
			t.Errorf("%s: reads %v, %v, want %v", code, consistent, err, want)
		}
	}
}

// requestsOfCreates: how many requests each way to create takes.
func requestsOfCreates(t *testing.T, s *server) {
	p := startProxy(t, s.DynamoDB)
	at := s.fresh(t)
	at.Endpoint = p.URL
	store := s.open(t, at)
	n := 0
	next := func(kind link.CodeKind) link.Link {
		n++
		l := linktest.Chosen(n, link.Code("code"+string(rune('a'+n))))
		l.CodeKind = kind
		return l
	}
	twin := next(link.Counted)
	for _, c := range []struct {
		what string
		call func() error
		want int64
	}{
		{"generated", func() error { _, err := store.Create(t.Context(), next(link.Counted)); return err }, 1},
		{"chosen", func() error { _, err := store.Create(t.Context(), next(link.Chosen)); return err }, 1},
		{"deduped and created", func() error { _, _, err := store.FindOrCreate(t.Context(), twin, linktest.Epoch()); return err }, 2},
		{"deduped and found", func() error {
			l := next(link.Counted)
			l.Destination = twin.Destination
			_, found, err := store.FindOrCreate(t.Context(), l, linktest.Epoch())
			if !found {
				err = errors.Join(err, errors.New("not found"))
			}
			return err
		}, 2},
	} {
		before := p.Asked()
		if err := c.call(); err != nil {
			t.Errorf("%s: %v", c.what, err)
		}
		if got := p.Asked() - before; got != c.want {
			t.Errorf("%s: %d requests, want %d", c.what, got, c.want)
		}
	}
}

// claims: the deletion of a link leaves the item of dedupe to the link that has it now, also when the
// entry of the deletion is numbered later.
func claims(t *testing.T, s *server) {
	a := s.agedStore(t, t) // whose indexes show nothing
	twin := func(n int, code link.Code) link.Link {
		l := linktest.Chosen(n, code)
		l.Destination = "https://example.com/twin"
		return l
	}
	ask := func(n int, code link.Code, want link.Code) {
		t.Helper()
		if l, _, err := a.Links.FindOrCreate(t.Context(), twin(n, code), linktest.Epoch()); err != nil || l.Key.Code != want {
			t.Errorf("%s: got %s, %v, want %s", code, l.Key, err, want)
		}
	}
	remove := func(code link.Code) {
		t.Helper()
		l, err := a.Get(t.Context(), link.Key{Code: code})
		if err == nil {
			_, err = a.Replace(t.Context(), l.Tombstone(linktest.Epoch()), link.Edit{})
		}
		if err != nil {
			t.Error(err)
		}
	}
	if _, err := a.Create(t.Context(), twin(1, "plain")); err != nil {
		t.Fatal(err)
	}
	ask(2, "first", "first")
	remove("plain") // which has no claim
	ask(3, "again", "first")
	remove("first")
	ask(4, "second", "second")
	if _, err := a.Head(t.Context()); err != nil { // numbers what is pending
		t.Error(err)
	}
	ask(5, "third", "second")
}

// lateCommits stops writers when all of a write is ready, lets others write and readers read, and
// sends it then: it comes behind what was read, and nothing is passed over.
func lateCommits(t *testing.T, s *server) {
	store := s.open(t, s.fresh(t))
	other := s.again(t, store)
	var late []func()
	for i := range 5 {
		late = append(late, stopped(t, store, linktest.Chosen(i, link.Code("late-"+string(rune('a'+i))))))
	}
	at, seen := link.Position(""), map[link.Key]bool{}
	read := func() {
		t.Helper()
		for {
			page, next, err := other.Changes(t.Context(), at, 2)
			if err != nil {
				t.Fatal(err)
			}
			if len(page) == 0 {
				return
			}
			for _, c := range page {
				if seen[c.Key] || c.Sequence != link.Sequence(len(seen)+1) {
					t.Errorf("%s came with sequence %d as entry %d", c.Key, c.Sequence, len(seen)+1)
				}
				seen[c.Key] = true
			}
			at = next
		}
	}
	for i, commit := range late {
		if _, err := other.Create(t.Context(), linktest.Chosen(100+i, link.Code("soon-"+string(rune('a'+i))))); err != nil {
			t.Fatal(err)
		}
		read()
		commit()
		if i%2 == 0 {
			read()
		}
	}
	if read(); len(seen) != 10 {
		t.Errorf("%d entries, want 10", len(seen))
	}
}

// noTables: what cannot work ends with one line, and says whether it may work later.
func noTables(t *testing.T, s *server) {
	at := s.fresh(t)
	there := at
	at.Table += "-none"
	if _, err := dynamodb.OpenLinks(t.Context(), dynamodb.Config{Address: at, CallTime: patience}); err == nil {
		t.Error("opened without tables")
	} else if want := "open links: tables unusable: table " + at.Table + " is missing; run curt migrate"; err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	away := there
	away.Endpoint = "http://127.0.0.1:1"
	_, err := dynamodb.OpenLinks(t.Context(), dynamodb.Config{Address: away})
	_, migrate := dynamodb.Migrate(t.Context(), away, false)
	for _, err := range []error{err, migrate} {
		if !errors.Is(err, ddb.ErrAway) || !errors.Is(err, link.ErrUnavailable) || errors.Is(err, ddb.ErrUnfit) {
			t.Errorf("nobody listens: %v", err)
		}
	}
	t.Run("no credentials", func(t *testing.T) {
		for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"} {
			t.Setenv(name, "")
		}
		for _, name := range []string{"AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"} {
			t.Setenv(name, filepath.Join(t.TempDir(), "none"))
		}
		if _, err := dynamodb.OpenLinks(t.Context(), dynamodb.Config{Address: there}); !errors.Is(err, ddb.ErrUnfit) {
			t.Error(err)
		}
	})
	p := startProxy(t, s.DynamoDB)
	there.Endpoint = p.URL
	defer p.Breaks(func(request) *answer { return &answer{Kind: "AccessDeniedException", Status: 400} })()
	if _, err := dynamodb.OpenLinks(t.Context(), dynamodb.Config{Address: there, CallTime: patience}); !errors.Is(err, ddb.ErrUnfit) {
		t.Errorf("no rights: %v", err)
	}
}
