package dynamodb_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"curt/internal/backend/dynamodb"
	"curt/internal/backend/dynamodb/ddb"
	"curt/internal/backend/dynamodb/tables"
	"curt/internal/clicks/ship"
	"curt/internal/codegen"
	"curt/internal/codegen/keypool"
	"curt/internal/link"
	"curt/internal/link/linktest"
)

// restore copies tables as they are into new ones, as a restore to a point in time does.
func restore(t *testing.T, s *server, from ddb.Address) ddb.Address {
	t.Helper()
	to := from
	to.Table += "-restored"
	for i, table := range tables.All(from) {
		into := tables.All(to)[i].Name
		schema, _ := askLocal(t, s.Endpoint(), "DescribeTable", map[string]any{"TableName": table.Name})["Table"].(map[string]any)
		create := map[string]any{
			"TableName": into, "BillingMode": "PAY_PER_REQUEST", "KeySchema": schema["KeySchema"], "AttributeDefinitions": schema["AttributeDefinitions"],
		}
		var indexes []any
		all, _ := schema["GlobalSecondaryIndexes"].([]any)
		for _, x := range all {
			index, _ := x.(map[string]any)
			indexes = append(indexes, map[string]any{"IndexName": index["IndexName"], "KeySchema": index["KeySchema"], "Projection": index["Projection"]})
		}
		if len(indexes) > 0 {
			create["GlobalSecondaryIndexes"] = indexes
		}
		askLocal(t, s.Endpoint(), "CreateTable", create)
		items, _ := askLocal(t, s.Endpoint(), "Scan", map[string]any{"TableName": table.Name})["Items"].([]any)
		for _, item := range items {
			askLocal(t, s.Endpoint(), "PutItem", map[string]any{"TableName": into, "Item": item})
		}
	}
	return to
}

// restoredTables: nobody starts on tables that were restored before ids were skipped, and then no
// id is given away that was before, followers start over, and every chosen code is known.
func restoredTables(t *testing.T, s *server) {
	at := s.fresh(t)
	before := s.open(t, at)
	counter := codegen.Counter(codegen.DefaultPrefix, 7)
	if _, err := before.Lease(t.Context(), counter, 10_000); err != nil {
		t.Fatal(err)
	}
	if _, err := before.Create(t.Context(), linktest.Chosen(1, "chosen")); err != nil {
		t.Fatal(err)
	}
	if err := before.Keys().Put(t.Context(), "codes-7", []link.Code{"abcdef0", "abcdef1"}); err != nil {
		t.Fatal(err)
	}
	claim := link.Claim{Key: link.Key{Code: "reserved"}, Workspace: "acme", For: 5 * time.Minute, Most: 1}
	if _, _, err := before.Reserve(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	backup := restore(t, s, at)
	given, err := before.Lease(t.Context(), counter, 10_000) // after the backup
	if err != nil {
		t.Fatal(err)
	}
	if _, err := before.Create(t.Context(), linktest.Chosen(2, "lost")); err != nil {
		t.Fatal(err)
	}
	follower, err := before.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := dynamodb.OpenLinks(t.Context(), dynamodb.Config{Address: backup, CallTime: patience}); !errors.Is(err, tables.ErrRestored) || !errors.Is(err, ddb.ErrUnfit) {
		t.Errorf("a start on restored tables: %v", err)
	}
	if _, err := dynamodb.Migrate(t.Context(), backup, false); !errors.Is(err, tables.ErrRestored) {
		t.Errorf("migrate without --restored: %v", err)
	}
	done, err := dynamodb.Migrate(t.Context(), backup, true)
	if err != nil || !strings.Contains(strings.Join(done, "; "), "1 chosen codes") {
		t.Fatalf("migrate --restored: %v, %v", done, err)
	}
	after := s.open(t, backup)
	mark, err := after.Leased(t.Context(), counter)
	if err != nil || mark < given+10_000+1_000_000 {
		t.Errorf("ids from %d on are leased, %v; %d was given away", mark, err, given)
	}
	if _, err := after.Create(t.Context(), linktest.Chosen(3, "new")); err != nil {
		t.Fatal(err)
	}
	// What was generated ahead may be in use by links that are lost.
	if keys, err := after.Keys().Take(t.Context(), "codes-7", "server"); !errors.Is(err, keypool.ErrEmpty) {
		t.Errorf("keys of before are taken: %+v, %v", keys, err)
	}
	if _, found, err := after.Reserve(t.Context(), claim); err != nil || !found {
		t.Errorf("a reservation of before: %v, %v", found, err)
	}
	held := linktest.Chosen(4, "reserved")
	held.Workspace = claim.Workspace
	if _, err := after.Create(t.Context(), held); err != nil {
		t.Errorf("a create by its holder: %v", err)
	}
	for _, at := range []link.Position{follower, "1"} {
		if _, _, err := after.Changes(t.Context(), at, 10); !errors.Is(err, link.ErrConflict) {
			t.Errorf("a follower at %s is told %v", at, err)
		}
	}
	if done, err := dynamodb.Migrate(t.Context(), backup, true); err != nil || !strings.Contains(done[len(done)-1], "not restored since") {
		t.Errorf("migrate --restored again: %v, %v", done, err)
	}
	if again, err := after.Leased(t.Context(), counter); err != nil || again != mark {
		t.Errorf("ids were skipped twice: %d, %v", again, err)
	}
}

// sendersAsTheyAre: who looks at the senders of tables that no server has used changes nothing there, and one that is
// missing is told from one that is forgotten.
func sendersAsTheyAre(t *testing.T, s *server) {
	at := s.fresh(t)
	items := func() int {
		t.Helper()
		all, _ := askLocal(t, s.Endpoint(), "Scan", map[string]any{"TableName": at.State()})["Items"].([]any)
		return len(all)
	}
	before := items()
	look := func(want int, known bool) {
		t.Helper()
		senders, end, err := dynamodb.OpenSenders(t.Context(), at)
		if err != nil {
			t.Fatal(err)
		}
		defer end()
		all, err := senders.All(t.Context())
		if err != nil || len(all) != want {
			t.Errorf("%d senders, want %d: %v", len(all), want, err)
		}
		if found, err := senders.Forget(t.Context(), "one"); err != nil || found != known {
			t.Errorf("forget: %v, %v", found, err)
		}
	}
	look(0, false)
	if n := items(); n != before {
		t.Errorf("%d items are stored, before %d", n, before)
	}
	if err := s.open(t, at).Senders().Enlist(t.Context(), ship.Sender{Folder: "one", Instance: 1, Began: time.Now()}); err != nil {
		t.Fatal(err)
	}
	look(1, true)
	at.Table += "-none"
	if _, _, err := dynamodb.OpenSenders(t.Context(), at); !errors.Is(err, ddb.ErrUnfit) || !strings.HasSuffix(err.Error(), "run curt migrate") {
		t.Errorf("without tables: %v", err)
	}
}
