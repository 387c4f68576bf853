package dynamodb_test

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"curt/internal/backend/dynamodb"
	"curt/internal/backend/dynamodb/tables"
	"curt/internal/clicks/ship"
	"curt/internal/link"
	"curt/internal/link/linktest"
)

// actions are what requests need rights for, by the suffix of the table's name.
type actions struct {
	mu   sync.Mutex
	seen map[string]map[string]bool // guarded by mu
}

func (a *actions) note(r request) *answer {
	a.mu.Lock()
	defer a.mu.Unlock()
	add := func(action string, body any) {
		of, _ := body.(map[string]any)
		name, _ := of["TableName"].(string)
		if name == "" {
			return
		}
		table := "links"
		if strings.HasSuffix(name, "-state") {
			table = "state"
		} else if of["IndexName"] != nil {
			table = "index"
		}
		if a.seen[table] == nil {
			a.seen[table] = map[string]bool{}
		}
		a.seen[table][action] = true
	}
	switch r.Operation {
	case "TransactWriteItems":
		all, _ := r.Body["TransactItems"].([]any)
		for _, one := range all {
			writes, _ := one.(map[string]any)
			for kind, body := range writes {
				add(kind+"Item", body)
			}
		}
	case "BatchGetItem":
		all, _ := r.Body["RequestItems"].(map[string]any)
		for name := range all {
			add(r.Operation, map[string]any{"TableName": name})
		}
	default:
		add(r.Operation, r.Body)
	}
	return nil
}

func (a *actions) of(table string) []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Sorted(maps.Keys(a.seen[table]))
}

// policies compares the rights in the template with the requests that servers of each role send: none
// is missing, and none is more than a role needs.
func policies(t *testing.T, s *server) {
	at := s.fresh(t)
	admin := s.open(t, at)
	bounded := linktest.Chosen(90, "bounded")
	bounded.MaxClicks = 2
	if _, err := admin.Create(t.Context(), bounded); err != nil {
		t.Fatal(err)
	}
	p := startProxy(t, s.DynamoDB)
	at.Endpoint = p.URL
	for _, role := range tables.Roles() {
		work := map[string]func(*testing.T, *dynamodb.Links) error{"RedirectPolicy": redirects, "ServerPolicy": serves}[role.Name]
		if work == nil {
			continue // migrate talks to tables, of which DynamoDB Local knows too little
		}
		seen := actions{seen: map[string]map[string]bool{}}
		end := p.Breaks(seen.note)
		l, err := dynamodb.OpenLinks(t.Context(), dynamodb.Config{Address: at, ReadOnly: role.Name == "RedirectPolicy", CallTime: patience})
		if err == nil {
			err = errors.Join(work(t, l), l.Close())
		}
		if end(); err != nil {
			t.Errorf("%s: %v", role.Name, err)
		}
		for table, allowed := range map[string][]string{"links": role.Links, "state": role.State} {
			if diff := cmp.Diff(slices.Sorted(slices.Values(allowed)), seen.of(table)); diff != "" {
				t.Errorf("%s on the table of %s (-allowed +requested):\n%s", role.Name, table, diff)
			}
		}
		if asks := len(seen.of("index")) > 0; asks != role.Indexes {
			t.Errorf("%s queries indexes: %v, allowed %v", role.Name, asks, role.Indexes)
		}
	}
}

// redirects does what a server with the role redirect does.
func redirects(t *testing.T, l *dynamodb.Links) error {
	ctx := t.Context()
	k := link.Key{Code: "bounded"}
	_, first := l.Lookup(ctx, k)
	_, some := l.Spend(ctx, k, 1)
	_, last := l.Spend(ctx, k, 1)
	_, key := l.DayKey(ctx, time.Now().Add(-48*time.Hour))
	_, today := l.DayKey(ctx, time.Now())
	_, head := l.Head(ctx)
	_, _, changes := l.Changes(ctx, "", 10)
	_, _, chosen := l.Chosen(ctx, "", 10)
	_, leased := l.Leased(ctx, "codes-7")
	one := ship.Sender{Folder: "a", Instance: 1, Began: time.Now()}
	enlist := l.Senders().Enlist(ctx, one)
	_, forget := l.Senders().Forget(ctx, "a")
	dismiss := l.Senders().Dismiss(ctx, one)
	return errors.Join(first, some, last, key, today, head, changes, chosen, leased, enlist, forget, dismiss)
}

// serves does what servers with the roles api and worker do.
func serves(t *testing.T, l *dynamodb.Links) error {
	ctx := t.Context()
	made := linktest.Chosen(1, "made")
	made, create := l.Create(ctx, made)
	counted := linktest.Chosen(2, "Counted")
	counted.CodeKind = link.Counted
	_, generated := l.Create(ctx, counted)
	twin := linktest.Chosen(3, "twin")
	twin.Destination = "https://example.com/twin"
	_, _, dedupe := l.FindOrCreate(ctx, twin, time.Now())
	_, update := link.Update(ctx, l, made.Key, "me", func(l *link.Link) error { l.Title = "x"; return nil })
	_, _, events := l.Events(ctx, "", 100)
	_, remove := link.Update(ctx, l, made.Key, "me", func(l *link.Link) error { *l = l.Tombstone(time.UnixMilli(1).UTC()); return nil })
	_, many := l.GetMany(ctx, []link.Key{counted.Key})
	_, list := l.List(ctx, link.Filter{}, link.Page{Limit: 10})
	_, lease := l.Lease(ctx, "codes-7", 10)
	_, head := l.Head(ctx)
	limited := linktest.Chosen(4, "limited")
	limited.MaxClicks = 3
	_, bound := l.Create(ctx, limited)
	_, _, reserve := l.Reserve(ctx, link.Claim{Key: link.Key{Code: "reserved"}, Workspace: "me", For: time.Minute, Most: 1})
	release := l.Release(ctx, link.Key{Code: "reserved"}, "me")
	_, spend := l.Spend(ctx, limited.Key, 1)
	return errors.Join(create, generated, dedupe, reserve, release, update, events, remove, many, list, lease, head, bound, spend)
}
