package events_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"curt/internal/testkit"
)

// TestReplicas has two servers of ClickHouse fed by consumer groups of their own. One is killed while
// visitors click, emptied after Kafka gave up half of its records, and brought back; its worker is
// killed while it is filled. Statistics are served all the time, and each click is in both once.
func TestReplicas(t *testing.T) {
	testkit.Faults(t)
	a, b := testkit.StartClickHouse(t), testkit.StartClickHouse(t)
	p := buildWith(t, a, 1, 2, 1, func(p *plant) {
		b.Exec(t, "CREATE DATABASE "+p.database+" ENGINE = Atomic")
		p.env[2] = "CURT_ANALYTICS=" + a.URL(p.database) + "," + b.URL(p.database)
	})
	api := p.startWith(t, t.TempDir(), "CURT_ROLE=api")
	answered := int64(0)
	click := func() {
		for _, s := range p.sites {
			answered += p.clickOn(t, s)
		}
	}
	both := func(what string, of ...*testkit.ClickHouse) {
		t.Helper()
		for _, house := range of {
			within(t, 3*time.Minute, what, func() bool {
				for _, one := range of { // the engine that the tests have ends when a client is killed in a query
					if _, err := one.Ask(t.Context(), "SELECT 1"); errors.Is(err, syscall.ECONNREFUSED) {
						one.Kill(t)
						one.Again(t)
					}
				}
				text, err := house.Ask(t.Context(), "SELECT count(), uniqExact(instance, sequence), (SELECT sum(clicks) FROM "+p.database+".days WHERE domain != '*') FROM "+p.database+".clicks")
				if err == nil && text > "" {
					var n, unique, sum int64
					_, err = fmt.Sscan(text, &n, &unique, &sum)
					if err == nil && (n > answered || n != unique) {
						t.Fatalf("%s: %d rows, %d clicks, %d answered", what, n, unique, answered)
					}
					return err == nil && n == answered && sum == answered
				}
				return false
			})
		}
	}
	click()
	both("clicks in both", a, b)
	within(t, time.Minute, "end of the first fill", func() bool { return metric(t, api, "curt_replica_filling") == 0 })

	// One is away: the other is fed and queried.
	b.Kill(t)
	click()
	both("clicks in the one that lives", a)
	at := time.Now()
	within(t, time.Minute, "complete_until with one replica", func() bool { return complete(t, api).After(at) })
	b.Again(t)
	both("clicks in both again", a, b)

	// The first one is emptied, and Kafka no longer has the first half of the clicks.
	p.deleteRecords(t)
	a.Kill(t)
	empty(t, a.Dir)
	// The engine that the tests have ends at a handshake for a database that is not there.
	if err := os.WriteFile(filepath.Join(a.Dir, "begin.sql"), []byte("CREATE DATABASE IF NOT EXISTS "+p.database+" ENGINE = Atomic;"), 0o600); err != nil {
		t.Fatal(err)
	}
	a.Again(t)
	click()
	for range 2 {
		data, w := p.any(p.works)
		w.Kill()
		delete(p.works, data)
		p.worker(t, data)
	}
	both("clicks in both after the refill", b, a)
	at = time.Now()
	within(t, 3*time.Minute, "end of the refill", func() bool { return metric(t, api, "curt_replica_filling") == 0 })
	within(t, time.Minute, "complete_until after the refill", func() bool { return complete(t, api).After(at) })

	// Both are away, and redirects go on.
	a.Kill(t)
	b.Kill(t)
	click()
	a.Again(t)
	b.Again(t)
	both("clicks in both at last", a, b)
}

// empty removes what a server of ClickHouse has kept.
func empty(t *testing.T, dir string) {
	t.Helper()
	if err := os.RemoveAll(filepath.Join(dir, "data")); err != nil {
		t.Fatal(err)
	}
}

// deleteRecords has Kafka give up half of what each partition has.
func (p *plant) deleteRecords(t *testing.T) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(p.kafka.Brokers[0].Address))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	ends, err := admin.ListEndOffsets(t.Context(), "clicks")
	if err != nil {
		t.Fatal(err)
	}
	var before kadm.Offsets
	ends.Each(func(o kadm.ListedOffset) { before.AddOffset(o.Topic, o.Partition, o.Offset/2, -1) })
	answer, err := admin.DeleteRecords(t.Context(), before)
	if err == nil {
		err = answer.Error()
	}
	if err != nil {
		t.Fatal(err)
	}
}
