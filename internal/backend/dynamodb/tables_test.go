package dynamodb_test

import (
	"encoding/json"
	"math"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"curt/internal/backend/dynamodb"
	"curt/internal/backend/dynamodb/ddb"
	"curt/internal/clicks/ship"
	"curt/internal/testkit"
)

// migrates compares the tables that curt migrate makes with the template in deploy, in all that both
// say.
func migrates(t *testing.T, s *server) {
	at, err := ddb.ParseAddress(testkit.DynamoDBURL("migrated", s.Endpoint()))
	if err != nil {
		t.Fatal(err)
	}
	at.Tags = map[string]string{"team": "links"}
	for round, r := range []struct {
		protection bool
		want       []string
	}{
		{false, []string{"created table migrated", "created table migrated-state"}},
		{false, []string{"table migrated exists", "table migrated-state exists"}},
		{true, []string{"table migrated exists; turned its deletion protection on", "table migrated-state exists; turned its deletion protection on"}},
		{true, []string{"table migrated exists", "table migrated-state exists"}},
	} {
		at.Protection = r.protection
		if done, err := dynamodb.Migrate(t.Context(), at, false); err != nil || !slices.Equal(done, r.want) {
			t.Errorf("round %d: %v, %v", round, done, err)
		}
		for _, name := range []string{at.Table, at.State()} {
			is, _ := askLocal(t, s.Endpoint(), "DescribeTable", map[string]any{"TableName": name})["Table"].(map[string]any)
			if is["DeletionProtectionEnabled"] != r.protection {
				t.Errorf("round %d: %s is protected: %v", round, name, is["DeletionProtectionEnabled"])
			}
		}
	}
	text, err := os.ReadFile("../../../deploy/dynamodb/curt.json")
	if err != nil {
		t.Fatal(err)
	}
	var template struct {
		Resources map[string]struct{ Properties map[string]any }
	}
	if err := json.Unmarshal(text, &template); err != nil {
		t.Fatal(err)
	}
	for resource, name := range map[string]string{"Links": "migrated", "State": "migrated-state"} {
		want := template.Resources[resource].Properties
		got, _ := askLocal(t, s.Endpoint(), "DescribeTable", map[string]any{"TableName": name})["Table"].(map[string]any)
		for _, of := range []string{"KeySchema", "AttributeDefinitions"} {
			if diff := cmp.Diff(sorted(t, want[of]), sorted(t, got[of])); diff != "" {
				t.Errorf("%s of %s (-template +table):\n%s", of, name, diff)
			}
		}
		if diff := cmp.Diff(indexes(t, want), indexes(t, got)); diff != "" {
			t.Errorf("indexes of %s (-template +table):\n%s", name, diff)
		}
		if billing, _ := got["BillingModeSummary"].(map[string]any); billing["BillingMode"] != want["BillingMode"] {
			t.Errorf("%s is billed as %v", name, billing)
		}
		ttl, _ := askLocal(t, s.Endpoint(), "DescribeTimeToLive", map[string]any{"TableName": name})["TimeToLiveDescription"].(map[string]any)
		wantTTL, expires := want["TimeToLiveSpecification"].(map[string]any)
		if enabled := ttl["TimeToLiveStatus"] == "ENABLED"; enabled != expires || expires && ttl["AttributeName"] != wantTTL["AttributeName"] {
			t.Errorf("items of %s expire by %v, want %v", name, ttl, wantTTL)
		}
	}
}

// sorted is a list of JSON in the order of its texts.
func sorted(t *testing.T, list any) (all []string) {
	t.Helper()
	elements, _ := list.([]any)
	for _, e := range elements {
		text, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, string(text))
	}
	slices.Sort(all)
	return all
}

// indexes are those of a table, in what the template says of them.
func indexes(t *testing.T, of map[string]any) (all []string) {
	t.Helper()
	list, _ := of["GlobalSecondaryIndexes"].([]any)
	var said []any
	for _, one := range list {
		x, _ := one.(map[string]any)
		said = append(said, map[string]any{"IndexName": x["IndexName"], "KeySchema": x["KeySchema"], "Projection": x["Projection"]})
	}
	return sorted(t, said)
}

// senders enlists lives of folders, and looks who is waited for.
func senders(t *testing.T, s *server) {
	of := s.open(t, s.fresh(t)).Senders()
	now := time.Now().UTC().Truncate(time.Millisecond)
	a := ship.Sender{Folder: "A", Host: "one", Instance: math.MaxUint64, Began: now.Add(-time.Hour)}
	b := ship.Sender{Folder: "b", Host: "two", Instance: 7, Began: now.Add(-time.Minute)}
	enlist := func(one ship.Sender) {
		t.Helper()
		if err := of.Enlist(t.Context(), one); err != nil {
			t.Fatal(err)
		}
	}
	are := func(what string, want ...ship.Sender) {
		t.Helper()
		got, err := of.All(t.Context())
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", what, err, diff)
		}
	}
	are("before the first")
	enlist(b)
	enlist(a)
	enlist(a)
	are("two folders", a, b)
	earlier, later := a, a
	earlier.Began, later.Began = now.Add(-2*time.Hour), now
	enlist(earlier)
	enlist(later)
	are("what is older is still to come", earlier, b)
	next := ship.Sender{Folder: "A", Host: "three", Instance: 8, Began: now.Add(-time.Second)}
	enlist(next)
	if err := of.Dismiss(t.Context(), earlier); err != nil {
		t.Error(err)
	}
	are("another life", next, b)
	for folder, want := range map[string]bool{"b": true, "B": false} {
		if found, err := of.Forget(t.Context(), folder); err != nil || found != want {
			t.Errorf("forget %q: %v, %v", folder, found, err)
		}
	}
	if all, err := of.All(t.Context()); err != nil || len(all) != 2 || all[1].Forgotten.IsZero() {
		t.Errorf("forgotten: %+v, %v", all, err)
	}
	b.Instance = 9
	enlist(b)
	are("a folder that was forgotten lives again", next, b)
	if err := of.Dismiss(t.Context(), next); err != nil {
		t.Error(err)
	}
	are("after one has ended", b)
}
