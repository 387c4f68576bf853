package dynamodb_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"curt/internal/backend/dynamodb"
	"curt/internal/backend/dynamodb/ddb"
	"curt/internal/codegen"
	"curt/internal/codegen/codegentest"
	"curt/internal/expiry/expirytest"
	"curt/internal/feed/feedtest"
	"curt/internal/link"
	"curt/internal/link/linktest"
	"curt/internal/testkit"
)

// delay is how old creates are before they are told, here.
const delay = time.Second

// server makes tables for stores and remembers which, for second handles.
type server struct {
	*testkit.DynamoDB

	endpoint string // its own, or a proxy's
	made     atomic.Int64
	tables   sync.Map // addresses by store
	meter    func(ddb.Usage)
	callTime time.Duration // of stores that are opened next
	delay    time.Duration // of creates, in these
}

// patience is the time of a call where none is meant to fail: DynamoDB Local shares the machine with
// all other tests.
const patience = 3 * time.Minute

func startServer(t *testing.T) *server {
	t.Helper()
	d := testkit.StartDynamoDB(t, false)
	return &server{DynamoDB: d, endpoint: d.Endpoint(), callTime: patience, delay: delay}
}

// fresh returns the address of new tables.
func (s *server) fresh(t testing.TB) ddb.Address {
	t.Helper()
	at, err := ddb.ParseAddress(testkit.DynamoDBURL(fmt.Sprintf("links%d", s.made.Add(1)), s.Endpoint()))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := dynamodb.Migrate(t.Context(), at, false); err != nil {
		t.Fatal(err)
	}
	at.Endpoint = s.endpoint
	return at
}

func (s *server) open(t testing.TB, at ddb.Address) *dynamodb.Links {
	t.Helper()
	l, err := dynamodb.OpenLinks(t.Context(), dynamodb.Config{Address: at, CreatesDelay: s.delay, Meter: s.meter, CallTime: s.callTime})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	s.tables.Store(l, at)
	return l
}

func (s *server) again(t testing.TB, l *dynamodb.Links) *dynamodb.Links {
	at, _ := s.tables.Load(l)
	return s.open(t, at.(ddb.Address))
}

func declared(t testing.TB) linktest.Features {
	f := linktest.Declared(t, "../../../docs/backends.md", "dynamodb://…")
	f.ManyGetter = true
	return f
}

func (s *server) links(t testing.TB) linktest.Harness {
	return linktest.Harness{
		Open:     func(t testing.TB) link.Store { return s.open(t, s.fresh(t)) },
		Again:    func(t testing.TB, l link.Store) link.Store { return s.again(t, l.(*dynamodb.Links)) },
		Features: declared(t),
	}
}

// TestDynamoDB runs against one server what takes seconds; TestSuites runs everything.
func TestDynamoDB(t *testing.T) {
	s := startServer(t)
	t.Run("model", func(t *testing.T) {
		random := rand.New(rand.NewPCG(30, 1))
		script := make([]byte, 900)
		for i := range script {
			script[i] = byte(random.Uint32())
		}
		linktest.ModelRun(t, s.links(t), script)
	})
	for name, run := range map[string]func(*testing.T, *server){
		"throttling": throttling, "lost answers": lostAnswers, "unknown codes are asked twice": unknownCodes,
		"requests of creates": requestsOfCreates, "late commits": lateCommits, "no tables": noTables, "restored tables": restoredTables,
		"one creates with indexes of the past": oneCreates, "tables are those of the template": migrates, "senders": senders,
		"a hot code is read once": hotCode, "units": units, "policies": policies, "claims": claims,
		"readers that are overtaken": overtakenReaders, "numbered meanwhile": numberedMeanwhile, "a partition of the log fails": aPartitionFails,
		"budgets of retries": budgets, "entries left behind": leftBehind,
		"keys of restored tables": restoredKeys, "damaged keys": damagedKeys, "senders as they are": sendersAsTheyAre, "imports in trouble": troubledImports,
	} {
		t.Run(name, func(t *testing.T) { run(t, s) })
	}
}

// TestSuites proves the store by every suite there is for one, against DynamoDB Local.
func TestSuites(t *testing.T) {
	testkit.Faults(t)
	s := startServer(t)
	t.Run("links", func(t *testing.T) { linktest.Run(t, s.links(t)) })
	t.Run("leaser", func(t *testing.T) {
		codegentest.RunLeaser(t,
			func(t *testing.T) codegen.Leaser { return s.open(t, s.fresh(t)) },
			func(t *testing.T, l codegen.Leaser) codegen.Leaser { return s.again(t, l.(*dynamodb.Links)) })
	})
	t.Run("snowflake", func(t *testing.T) {
		codegentest.RunSnowflake(t,
			func(t *testing.T) codegen.Leaser { return s.open(t, s.fresh(t)) },
			func(t *testing.T, l codegen.Leaser) codegen.Leaser { return s.again(t, l.(*dynamodb.Links)) })
	})
	t.Run("keys", func(t *testing.T) { keyPools(t, s) })
	t.Run("feeds", func(t *testing.T) { feeds(t, s) })
	t.Run("expiry", func(t *testing.T) { expires(t, s) })
}

// fed waits before it reads the head of creates, so that what was created before lies before it: in an earlier millisecond.
func (s *server) fed(l *dynamodb.Links) dynamodb.Fed {
	wait := s.delay + time.Millisecond
	return dynamodb.Fed{Links: l, Patient: func() { <-time.After(wait) }, Created: func() {}}
}

// stopped stops a create before it is sent.
func stopped(t testing.TB, s *dynamodb.Links, l link.Link) (commit func()) {
	t.Helper()
	send, err := s.Stopped(l)
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := send(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	}
}

func feeds(t *testing.T, s *server) {
	s.delay = 4 * delay // writers beside readers on a busy machine
	defer func() { s.delay = delay }()
	feedtest.Run(t, feedtest.Harness{
		Open: func(t testing.TB, _ int64, _ link.LogBounds) feedtest.Store { return s.fed(s.open(t, s.fresh(t))) },
		Again: func(t testing.TB, of feedtest.Store) feedtest.Store {
			return s.fed(s.again(t, of.(dynamodb.Fed).Links))
		},
		KeepsCreates: true, Foreign: "other/AAAA/AAAA",
		Late: func(t testing.TB, of feedtest.Store) (commit func()) {
			return stopped(t, of.(dynamodb.Fed).Links, linktest.Chosen(77, "late"))
		},
		LateCreate: func(t testing.TB, of feedtest.Store) (commit func()) {
			l := linktest.Chosen(78, "late001")
			l.CodeKind = link.Counted
			return stopped(t, of.(dynamodb.Fed).Links, l)
		},
	})
}

// expires waits behind each create until the log of creates tells it: the suite creates links that
// ended long ago, and their content would be removed before.
func expires(t *testing.T, s *server) {
	fed := func(l *dynamodb.Links) dynamodb.Fed {
		f := s.fed(l)
		f.Created = f.Patient
		return f
	}
	expirytest.Run(t, expirytest.Harness{
		Open: func(t testing.TB) expirytest.Store { return fed(s.open(t, s.fresh(t))) },
		Again: func(t testing.TB, of expirytest.Store) expirytest.Store {
			return fed(s.again(t, of.(dynamodb.Fed).Links))
		},
		Late: func(t testing.TB, of expirytest.Store, like, code link.Code) (commit func()) {
			l, err := of.Get(t.Context(), link.Key{Code: like})
			if err != nil {
				t.Fatal(err)
			}
			l.Key.Code, l.ID = code, link.ID{6: 0x70, 8: 0x80, 15: 1}
			return stopped(t, of.(dynamodb.Fed).Links, l)
		},
	})
}
