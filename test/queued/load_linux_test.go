package queued_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"curt/internal/testkit"
	"curt/test/internal/curttest"
)

// slow makes a database take 200 links a second, one after the other.
func slow(t *testing.T, url string) {
	t.Helper()
	c, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close(context.WithoutCancel(t.Context())) }()
	_, err = c.Exec(t.Context(), `CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		PERFORM pg_advisory_xact_lock(4711); PERFORM pg_sleep(0.005); RETURN NEW; END $$;
		CREATE TRIGGER slow BEFORE INSERT ON links FOR EACH ROW EXECUTE FUNCTION slow()`)
	if err != nil {
		t.Fatal(err)
	}
}

// crowd sends n creates over some connections at once, and returns how many were answered with each status.
func crowd(t *testing.T, s *curttest.Server, n int, name string) (answers map[int]int, took time.Duration) {
	t.Helper()
	answers = map[int]int{}
	var mu sync.Mutex
	next := make(chan int, n)
	for i := range n {
		next <- i
	}
	close(next)
	began := time.Now()
	var all sync.WaitGroup
	for range 50 {
		c := s.MustDial(t)
		all.Go(func() {
			defer c.Close()
			for i := range next {
				status, err := insist(c, fmt.Sprintf(`{"long_url":"https://example.com/%s/%d"}`, name, i))
				if err != nil {
					t.Errorf("create: %v", err)
					return
				}
				mu.Lock()
				answers[status]++
				mu.Unlock()
			}
		})
	}
	all.Wait()
	return answers, time.Since(began)
}

// insist creates a link, and again while it is open whether it is there, as on a busy machine: there may be two then.
func insist(c *curttest.Conn, body string) (status int, err error) {
	for end := time.Now().Add(3 * time.Minute); ; time.Sleep(100 * time.Millisecond) {
		a, err := c.Do("POST", "/api/v1/links", []string{"Authorization: Bearer " + curttest.Key, "Content-Type: application/json"}, body)
		if err != nil || a.Status != 503 || time.Now().After(end) {
			return a.Status, err
		}
	}
}

// TestASpikeIsAcceptedAndDrained: a store that takes 200 links a second gets 2,000 at once. All are accepted; they are written at
// CURT_WRITES_RATE and never faster, in the order in which they were accepted within a partition, which the offsets that are committed say.
func TestASpikeIsAcceptedAndDrained(t *testing.T) {
	testkit.Faults(t)
	t.Parallel()
	const spike, rate = 2000, 200
	url := database(t)
	p := build(t, 1, url, fmt.Sprintf("CURT_WRITES_RATE=%d", rate))
	api := p.start(t, "redirect,api", t.TempDir())
	slow(t, url)
	writer := p.start(t, "writer", t.TempDir())
	soon(t, "the writer has the partitions", func() bool { return metric(t, writer, "curt_writer_partitions") == 4 })

	began := time.Now()
	answers, took := crowd(t, api, spike, "spike")
	if answers[202] != spike {
		t.Fatalf("answers by status: %v", answers)
	}
	t.Logf("%d creates were accepted in %s, %v are pending", spike, took, metric(t, api, "curt_pending_links"))
	for last := 0.0; last < spike; time.Sleep(100 * time.Millisecond) {
		written := metric(t, writer, "curt_writer_links_total")
		// The bucket holds 200 ms of the rate, and a batch is counted when it is written.
		if most := rate*time.Since(began).Seconds() + rate/5 + 1; written > most {
			t.Fatalf("%v links were written after %s, want at most %.0f", written, time.Since(began), most)
		}
		if written < last {
			t.Fatalf("the count of written links went from %v to %v", last, written)
		}
		last = written
		if time.Since(began) > 5*time.Minute {
			t.Fatalf("%v links were written after %s", written, time.Since(began))
		}
	}
	drainedAfter := time.Since(began)
	drained(t, api)
	t.Logf("drained after %s: %.0f links a second", drainedAfter, spike/drainedAfter.Seconds())
	soon(t, "the lag is 0", func() bool { return metric(t, writer, "curt_writer_lag_links") == 0 })
	destinations := map[string]bool{}
	for _, l := range api.AllLinks(t) {
		destinations[l.LongURL] = true
	}
	if len(destinations) != spike {
		t.Errorf("%d links of %d", len(destinations), spike)
	}

	sync := curttest.Start(t, curttest.Options{Env: []string{"CURT_LINKS=" + url, "CURT_ANALYTICS=" + url, "CURT_ROLE=redirect,api", "CURT_LIMITS=default=off"}})
	answers, tookSync := crowd(t, sync, spike/4, "sync")
	if answers[201] != spike/4 {
		t.Errorf("sync: answers by status: %v", answers)
	}
	queued, synchronous := spike/took.Seconds(), spike/4/tookSync.Seconds()
	t.Logf("on a store of 200 writes a second: sync %.0f creates/s, queued %.0f creates/s: %.1f times", synchronous, queued, queued/synchronous)
}

// poison queues records by their keys as they are.
func (p *plant) poison(t *testing.T, records map[string]string) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(p.kafka.Brokers[0].Address), kgo.DefaultProduceTopic("writes"))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for key, value := range records {
		if err := client.ProduceSync(t.Context(), &kgo.Record{Key: []byte(key), Value: []byte(value)}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestPoisonIsBuried: what can never be written is a dead letter with its reason, its code is 410, and what stands behind it in the partition is
// written.
func TestPoisonIsBuried(t *testing.T) {
	testkit.Faults(t)
	t.Parallel()
	p := build(t, 1, database(t))
	api := p.start(t, "redirect,api", t.TempDir())
	taken := call(t, api, "POST", "/api/v1/links", `{"long_url":"https://example.com/first","custom_alias":"has-it"}`)
	if taken.Status != 201 {
		t.Fatalf("create: %d %q", taken.Status, taken.Body)
	}
	owner := newAuthor(t, api, "owner")
	owned := func(n int, code, destination string, redirect int) string {
		return fmt.Sprintf(`{"v":1,"link":{"id":[1,158,131,14,26,0,112,1,144,192,107,146,13,115,91,%d],"code":%q,"destination":%q,"workspace":%q,"status":1,"safety":1,"redirect":%d,"minted":1,"created":"2026-06-01T12:00:00Z","updated":"2026-06-01T12:00:00Z"}}`,
			n, code, destination, owner.Workspace, redirect)
	}
	p.poison(t, map[string]string{
		"/owned01":    owned(1, "owned01", "https://example.com/owned", 999),
		"/owned02":    owned(2, "owned02", "javascript:alert(1)", 302),
		"/garbage1":   "no JSON",
		"/garbage2":   `{"v":1,"link":{"id":7}}`,
		"/invalid1":   `{"v":1,"link":{"id":[1,158,131,14,26,0,112,1,144,192,107,146,13,115,90,3],"code":"invalid1","domain":""}}`,
		"/has-it":     `{"v":1,"link":{"id":[1,158,131,14,26,0,112,1,144,192,107,146,13,115,90,2],"code":"has-it","domain":"","destination":"https://example.com/","workspace":"default","status":1,"safety":1,"redirect":302,"created":"2026-06-01T12:00:00Z","updated":"2026-06-01T12:00:00Z"}}`,
		"not a key/?": "?",
	})
	good := map[string]string{}
	for i := range 20 { // in all partitions
		url := fmt.Sprintf("https://example.com/good/%d", i)
		good[url] = accepted(t, api, curttest.Key, "/api/v1/links", `{"long_url":"`+url+`"}`).Link.Code
	}
	writer := p.start(t, "writer", t.TempDir())
	drained(t, api)
	good["https://example.com/first"] = "has-it"
	compare(t, api, good)
	soon(t, "poison is counted", func() bool { return metric(t, writer, "curt_writer_dead_letters_total") == 7 })
	stranger := newAuthor(t, api, "stranger")
	for code, why := range map[string]string{"garbage1": "record-unreadable", "garbage2": "record-unreadable", "invalid1": "record-invalid"} {
		soon(t, code+" is 410", func() bool { status, _, _ := visit(t, api, code); return status == 410 })
		for _, path := range []string{"/" + code, "/api/v1/links/" + code} {
			if a := call(t, api, "GET", path, ""); a.Status != 410 || a.Link.Type != "/problems/"+why {
				t.Errorf("%s: %d %q, want 410 %s", path, a.Status, a.Body, why)
			}
		}
		for method, body := range map[string]string{"PATCH": `{"title":"x"}`, "DELETE": ""} {
			path := "/api/v1/links/" + code
			if a := call(t, api, method, path, body); a.Status != 410 || a.Link.Type != "/problems/"+why {
				t.Errorf("%s %s: %d %q, want 410 %s", method, path, a.Status, a.Body, why)
			}
			if a := callWith(t, api, stranger.Secret, method, path, body); a.Status != 404 {
				t.Errorf("%s %s by another workspace: %d %q, want 404", method, path, a.Status, a.Body)
			}
		}
	}
	for _, code := range []string{"owned01", "owned02"} {
		soon(t, code+" is 410", func() bool { status, _, _ := visit(t, api, code); return status == 410 })
		for method, body := range map[string]string{"GET": "", "PATCH": `{"title":"x"}`, "DELETE": ""} {
			if a := callWith(t, api, owner.Secret, method, "/api/v1/links/"+code, body); a.Status != 410 || a.Link.Type != "/problems/record-invalid" {
				t.Errorf("%s %s by its owner: %d %q, want 410", method, code, a.Status, a.Body)
			}
			if a := callWith(t, api, stranger.Secret, method, "/api/v1/links/"+code, body); a.Status != 404 {
				t.Errorf("%s %s by another workspace: %d %q, want 404", method, code, a.Status, a.Body)
			}
		}
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(p.kafka.Brokers[0].Address))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ends, err := kadm.NewClient(client).ListEndOffsets(t.Context(), "writes.dead")
	if err != nil {
		t.Fatal(err)
	}
	letters := int64(0)
	ends.Each(func(o kadm.ListedOffset) { letters += o.Offset })
	if letters != 7 || !strings.Contains(writer.Log(), "moved to the dead letters") {
		t.Errorf("%d dead letters; the log: %s", letters, writer.Log())
	}
}

// TestTheStartIsRefusedWithoutTwoReplicas: one line says why, and what to do. curt migrate names the topics that it creates, and warns; curt config
// check and curt doctor say the same.
func TestTheStartIsRefusedWithoutTwoReplicas(t *testing.T) {
	testkit.Faults(t)
	t.Parallel()
	kafka := testkit.StartKafka(t, 1)
	env := []string{"CURT_WRITES=queued", "CURT_WRITES_KAFKA=" + kafka.URL("writes")}
	const (
		one  = "kafka: topic writes has 1 replica and min.insync.replicas=1: fewer than two in-sync replicas are required"
		safe = "use three brokers and min.insync.replicas=2"
		or   = safe + ", or accept losses with CURT_WRITES_ACCEPT_LOSS=true"
		lost = ", and a failed disk may lose links that were answered 202"
	)
	commandSays(t, env, 78, "wrong CURT_WRITES=queued: Kafka has no topic writes; run curt migrate, which creates it\n", "config", "check")
	for i, want := range []string{"curt migrate creates it", one + "; " + or} {
		s, err := curttest.Launch(t, curttest.Options{Env: env})
		if err == nil || s.ExitCode() == 0 || !strings.Contains(err.Error(), "CURT_WRITES=queued") || !strings.Contains(err.Error(), want) {
			t.Errorf("the start says %v, want %q", err, want)
		}
		topics := []string{"created topic writes\ncreated topic writes.dead\n", "topic writes exists\ntopic writes.dead exists\n"}
		commandSays(t, env, 0, topics[i]+"warning: "+one+", so that no server with the role api starts; "+or+"\n", "migrate")
	}
	commandSays(t, env, 78, "wrong CURT_WRITES=queued: "+one+"; "+or+"\n", "config", "check")
	commandSays(t, env, 2, "failure  settings: CURT_WRITES=queued: "+one+"\n         what to do: "+or+"\n", "doctor")
	env = append(env, "CURT_WRITES_ACCEPT_LOSS=true")
	commandSays(t, env, 0, "warning: "+one+lost+"; "+safe+"\n", "migrate")
	commandSays(t, env, 0, "warn  CURT_WRITES=queued: "+one+lost+": "+safe+"\n", "config", "check")
	commandSays(t, env, 2, "warning  settings: CURT_WRITES=queued: "+one+lost+"\n         what to do: "+safe+"\n", "doctor")
	curttest.Start(t, curttest.Options{Env: env})
}
