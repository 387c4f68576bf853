package dynamodb_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"curt/internal/backend/dynamodb"
	"curt/internal/backend/dynamodb/ddb"
	"curt/internal/codegen"
	"curt/internal/codegen/keypool"
	"curt/internal/codegen/keypool/keypooltest"
	"curt/internal/link"
)

// keyPools proves pools of keys, and both sides of them.
func keyPools(t *testing.T, s *server) {
	var opened sync.Map // of each store, the links beside it
	beside := func(l *dynamodb.Links) keypool.Store {
		keys := l.Keys()
		opened.Store(keys, l)
		return keys
	}
	keypooltest.Run(t,
		func(t *testing.T) keypool.Store { return beside(s.open(t, s.fresh(t))) },
		func(t *testing.T, keys keypool.Store) keypool.Store {
			l, _ := opened.Load(keys)
			return beside(s.again(t, l.(*dynamodb.Links)))
		})
	stores := func(l *dynamodb.Links) keypooltest.Stores { return keypooltest.Stores{Keys: l.Keys(), Leases: l} }
	keypooltest.RunPool(t,
		func(t *testing.T) keypooltest.Stores { return stores(s.open(t, s.fresh(t))) },
		func(t *testing.T, of keypooltest.Stores) keypooltest.Stores {
			return stores(s.again(t, of.Leases.(*dynamodb.Links)))
		})
}

// restoredKeys: in tables that were restored, and whose leases were moved on, no key of before is taken.
func restoredKeys(t *testing.T, s *server) {
	l := s.open(t, s.fresh(t))
	keys := l.Keys()
	if err := keys.Put(t.Context(), "codes-7", []link.Code{"aaaaaaa", "bbbbbbb"}); err != nil {
		t.Fatal(err)
	}
	if _, err := codegen.SkipRestored(t.Context(), l, time.Now()); err != nil {
		t.Fatal(err)
	}
	if b, err := keys.Take(t.Context(), "codes-7", "a"); !errors.Is(err, keypool.ErrEmpty) {
		t.Errorf("took %+v, %v", b, err)
	}
	if level, err := keys.Level(t.Context(), "codes-7"); err != nil || level != (keypool.Level{}) {
		t.Errorf("level %+v, %v", level, err)
	}
	if err := keys.Put(t.Context(), "codes-7", []link.Code{"ccccccc"}); err != nil {
		t.Fatal(err)
	}
	if _, err := keys.Abandon(t.Context(), "a"); err != nil { // as a server that starts
		t.Fatal(err)
	}
	if n := len(unusedItems(t, l, 0)); n != 0 {
		t.Errorf("%d batches of the epoch before are left", n)
	}
	if b, err := keys.Take(t.Context(), "codes-7", "a"); err != nil || len(b.Keys) != 1 || b.Keys[0] != "ccccccc" {
		t.Errorf("took %+v, %v", b, err)
	}
}

// unusedItems are the unused batches of an epoch as they are stored.
func unusedItems(t *testing.T, l *dynamodb.Links, epoch int) []ddb.Item {
	t.Helper()
	client := l.Client()
	all, _, err := client.Query(t.Context(), &sdk.QueryInput{
		TableName: &client.State, ConsistentRead: aws.Bool(true), KeyConditionExpression: aws.String("pk = :p"),
		ExpressionAttributeValues: ddb.Item{":p": ddb.Text(fmt.Sprint("unused-keys#", epoch))},
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// damagedKeys: a batch whose text was changed is leaked, and the next one is taken.
func damagedKeys(t *testing.T, s *server) {
	l := s.open(t, s.fresh(t))
	keys := l.Keys()
	for _, k := range []link.Code{"aaaaaaa", "bbbbbbb"} {
		if err := keys.Put(t.Context(), "codes-7", []link.Code{k}); err != nil {
			t.Fatal(err)
		}
	}
	client := l.Client()
	first := unusedItems(t, l, 0)[0]
	first["value"] = ddb.Text("xaaaaaa " + ddb.TextOf(first, "value")[len("aaaaaaa "):])
	if err := client.Put(t.Context(), &sdk.PutItemInput{TableName: &client.State, Item: first}); err != nil {
		t.Fatal(err)
	}
	if b, err := keys.Take(t.Context(), "codes-7", "a"); !errors.Is(err, link.ErrUnavailable) {
		t.Errorf("took %+v, %v", b, err)
	}
	if b, err := keys.Take(t.Context(), "codes-7", "a"); err != nil || len(b.Keys) != 1 || b.Keys[0] != "bbbbbbb" {
		t.Errorf("took %+v, %v", b, err)
	}
	if level, err := keys.Level(t.Context(), "codes-7"); err != nil || level != (keypool.Level{Held: 1, Leaked: 1, Taken: 2}) {
		t.Errorf("level %+v, %v", level, err)
	}
}
