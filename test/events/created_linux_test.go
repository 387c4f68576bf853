package events_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"google.golang.org/protobuf/encoding/protowire"

	"curt.example/client"
	"curt/internal/testkit"
	"curt/test/internal/curttest"
)

const (
	createdTopic = "clicks.links.created"
	createdPage  = 500 // documented: so many records may be repeated after a failure, of each log
)

// creators is a fleet whose created links go to Kafka; ClickHouse is away.
type creators struct {
	*plant

	mu      sync.Mutex
	acked   [][]client.Link // guarded by mu: by writer, in order
	counted []bool          // guarded by mu: by writer, whether its generated codes are those of range
}

func startCreators(t *testing.T) *creators {
	t.Helper()
	p := &plant{kafka: testkit.StartKafka(t, 1), links: testkit.StartPostgres(t, testkit.PostgresConfig{})}
	p.env = []string{"CURT_LINKS=" + p.links.Database(t), "CURT_EVENTS=" + p.kafka.URL("clicks"), "CURT_ANALYTICS=clickhouse://" + curttest.FreeAddr(t) + "/none"}
	migrate := exec.CommandContext(t.Context(), curttest.Binary(t), "migrate")
	migrate.Env = append([]string{"CURT_ROLE=worker"}, p.env...)
	if out, err := migrate.CombinedOutput(); err == nil || !strings.Contains(string(out), "created topic "+createdTopic) {
		t.Fatalf("curt migrate without ClickHouse: %v: %s", err, out)
	}
	return &creators{plant: p}
}

func (c *creators) api(t *testing.T, env ...string) *curttest.Server {
	t.Helper()
	return c.startWith(t, t.TempDir(), append([]string{"CURT_ROLE=api"}, env...)...)
}

// writer creates links one after the other until ctx ends or the server does, one in three with an alias.
func (c *creators) writer(ctx context.Context, t *testing.T, s *curttest.Server, name string, counted bool) (wait func()) {
	t.Helper()
	api, err := client.New("http://"+s.Addr, client.WithKey(curttest.Key))
	if err != nil {
		t.Fatal(err)
	}
	c.mu.Lock()
	n := len(c.acked)
	c.acked, c.counted = append(c.acked, nil), append(c.counted, counted)
	c.mu.Unlock()
	done := make(chan struct{})
	go func() {
		defer close(done)
		pace := time.NewTicker(5 * time.Millisecond)
		defer pace.Stop()
		for i := 0; ctx.Err() == nil; i++ {
			<-pace.C
			wanted := client.NewLink{LongURL: fmt.Sprintf("https://example.com/%s/%d", name, i)}
			if i%3 == 0 {
				wanted.CustomAlias = fmt.Sprintf("%s-%d", name, i)
			}
			l, err := api.Create(ctx, wanted)
			if p, ok := errors.AsType[*client.Problem](err); ok && p.Status == http.StatusServiceUnavailable {
				continue // PostgreSQL of a busy machine was slow: whether the link is there is nobody's promise
			}
			if err != nil {
				select {
				case <-ctx.Done():
				case <-s.Done():
				case <-time.After(time.Minute):
					t.Errorf("%s: create %d: %v", name, i, err)
				}
				return
			}
			c.mu.Lock()
			c.acked[n] = append(c.acked[n], l)
			c.mu.Unlock()
		}
	}()
	return func() { <-done }
}

// all returns how many links were acknowledged.
func (c *creators) all() (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, links := range c.acked {
		n += len(links)
	}
	return n
}

// createdRecord is a record of the topic.
type createdRecord struct{ key, id, code, destination string }

// records reads the whole topic.
func (c *creators) records(t *testing.T) (all []createdRecord) {
	t.Helper()
	consumer, err := kgo.NewClient(kgo.SeedBrokers(c.kafka.Brokers[0].Address), kgo.ConsumeTopics(createdTopic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		t.Fatal(err)
	}
	defer consumer.Close()
	ends, err := kadm.NewClient(consumer).ListEndOffsets(t.Context(), createdTopic)
	if err != nil {
		t.Fatal(err)
	}
	end, _ := ends.Lookup(createdTopic, 0)
	for int64(len(all)) < end.Offset {
		fetches := consumer.PollFetches(t.Context())
		if err := fetches.Err(); err != nil {
			t.Fatal(err)
		}
		for _, r := range fetches.Records() {
			all = append(all, createdRecord{key: string(r.Key), id: field(t, r.Value, 1), code: field(t, r.Value, 3), destination: field(t, r.Value, 4)})
		}
	}
	return all
}

// field returns a text of a record.
func field(t *testing.T, b []byte, number protowire.Number) string {
	t.Helper()
	for len(b) > 0 {
		n, kind, size := protowire.ConsumeTag(b)
		if size < 0 {
			t.Fatal(protowire.ParseError(size))
		}
		b = b[size:]
		if n == number {
			text, size := protowire.ConsumeString(b)
			if size < 0 {
				t.Fatal(protowire.ParseError(size))
			}
			return text
		}
		if size = protowire.ConsumeFieldValue(n, kind, b); size < 0 {
			t.Fatal(protowire.ParseError(size))
		}
		b = b[size:]
	}
	return ""
}

// compare returns how many acknowledged links have no record, and how many records are repeats. It
// fails where a record says something else than the link, and where the links of one writer in one
// log do not come in the order in which they were created.
func (c *creators) compare(t *testing.T) (missing, repeats int) {
	t.Helper()
	first := map[string]int{}
	records := c.records(t)
	for i, r := range records {
		if r.key != r.id || r.id == "" {
			t.Fatalf("record %d has the key %q and the id %q", i, r.key, r.id)
		}
		if _, seen := first[r.key]; seen {
			repeats++
			continue
		}
		first[r.key] = i
	}
	for n, links := range c.acked {
		last := map[bool]int{true: -1, false: -1}
		for _, l := range links {
			at, found := first[l.ID]
			if !found {
				missing++
				continue
			}
			if r := records[at]; r.code != l.ShortCode || r.destination != l.LongURL {
				t.Errorf("link %+v has the record %+v", l, r)
			}
			alias := strings.Contains(l.ShortCode, "-")
			if chosen := alias || !c.counted[n]; at < last[chosen] {
				t.Errorf("writer %d: %s comes before an earlier link", n, l.ShortCode)
			} else {
				last[chosen] = at
			}
		}
	}
	return missing, repeats
}

// positions notes each position of the two followers until ctx ends, and fails where one goes back.
func (c *creators) positions(ctx context.Context, t *testing.T) (wait func() (moves int)) {
	t.Helper()
	done, moves := make(chan struct{}), 0
	go func() {
		defer close(done)
		var before [2]int64
		for ctx.Err() == nil {
			for i, ask := range []string{
				"SELECT coalesce(max(seq), 0) FROM log_followers WHERE name = 'created-links-chosen'",
				"SELECT coalesce(max(split_part(position, '/', 2)::bigint), 0) FROM log_followers WHERE name = 'created-links-counted'",
			} {
				at := c.ask(t, ask)
				if at < before[i] {
					t.Errorf("position of log %d: %d after %d", i, at, before[i])
				}
				if at > before[i] {
					moves++
				}
				before[i] = at
			}
			time.Sleep(50 * time.Millisecond)
		}
	}()
	return func() int { <-done; return moves }
}

// ask returns a number that the database answers.
func (c *creators) ask(t *testing.T, statement string) (n int64) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	db, err := pgx.Connect(ctx, strings.TrimPrefix(c.env[0], "CURT_LINKS="))
	if err != nil {
		t.Error(err)
		return 0
	}
	defer db.Close(ctx) //nolint:errcheck // it only reads
	if err := db.QueryRow(ctx, statement).Scan(&n); err != nil {
		t.Error(err)
	}
	return n
}

// linkDatabase returns the name of the database of links.
func (c *creators) linkDatabase() string {
	return c.env[0][strings.LastIndexByte(c.env[0], '/')+1 : strings.IndexByte(c.env[0], '?')]
}

// TestCreatedLinks creates links on two servers: the one that sends them to Kafka is killed, Kafka
// stands still under the one that takes over, and every acknowledged link is in the topic.
func TestCreatedLinks(t *testing.T) {
	testkit.Faults(t)
	c := startCreators(t)
	sender := c.api(t)
	within(t, 3*time.Minute, "sender", func() bool { return c.ask(t, "SELECT count(*) FROM log_followers") == 2 })
	fences := func() int64 { return c.ask(t, "SELECT sum(fence)::bigint FROM log_followers") }
	first := fences()
	other := c.api(t)
	ctx, end := context.WithCancel(t.Context())
	waits := []func(){c.writer(ctx, t, sender, "a", true), c.writer(ctx, t, other, "b", true)}
	moves := c.positions(ctx, t)
	within(t, 3*time.Minute, "created links", func() bool { return metric(t, sender, "curt_created_links_sent_total") > 100 })
	if n := metric(t, other, "curt_created_links_sent_total"); n != 0 { // a sender that a busy machine holds up loses its leases
		within(t, 3*time.Minute, "leases of the other server, which has sent", func() bool { return fences() > first })
	}
	sender.Kill()
	waits[0]()
	took := within(t, 3*time.Minute, "server that takes over", func() bool { return metric(t, other, "curt_created_links_sent_total") > 0 })

	broker := c.kafka.Brokers[0]
	broker.Signal(t, syscall.SIGSTOP)
	within(t, 3*time.Minute, "failure of Kafka", func() bool { return metric(t, other, "curt_created_links_unsent_seconds") > 0 })
	before := c.all()
	within(t, 3*time.Minute, "creates without Kafka", func() bool { return c.all() > before+20 })
	within(t, 3*time.Minute, "/readyz that says so", func() bool {
		a, err := other.MustDial(t).Do("GET", "/readyz", nil, "")
		return err == nil && a.Status == 200 && strings.Contains(string(a.Body), `"created":{"status":"unavailable"`)
	})
	broker.Signal(t, syscall.SIGCONT)
	within(t, 3*time.Minute, "end of the failure", func() bool { return metric(t, other, "curt_created_links_unsent_seconds") == 0 })
	end()
	waits[1]()
	n := c.all()
	t.Logf("%d links, taken over after %v, positions moved %d times", n, took, moves())
	missing, repeats := -1, 0
	within(t, 3*time.Minute, "last links", func() bool { missing, repeats = c.compare(t); return missing == 0 })
	failures := int(metric(t, other, "curt_created_links_failures_total"))
	t.Logf("%d records are repeats, of one kill and %d failures", repeats, failures)
	if repeats > 2*createdPage*(1+failures) {
		t.Errorf("%d repeats", repeats)
	}
}

// TestCreatedLinksOfEveryStrategy has links from before CURT_EVENTS was set, and of random and
// hashed codes. The control moves the position before the effect, as a follower without the order of
// Fleet would: links are missing, and compare finds out.
func TestCreatedLinksOfEveryStrategy(t *testing.T) {
	testkit.Faults(t)
	c := startCreators(t)
	c.create(t, "before", true, "CURT_ROLE=all", "CURT_EVENTS=", "CURT_ANALYTICS=")
	c.create(t, "random", false, "CURT_CODES=random")
	c.create(t, "hash", false, "CURT_CODES=hash")
	s := c.api(t)
	within(t, 3*time.Minute, "created links", func() bool { missing, _ := c.compare(t); return missing == 0 })
	s.Terminate(t)

	lost := c.create(t, "lost", false, "CURT_ROLE=all", "CURT_EVENTS=", "CURT_ANALYTICS=", "CURT_CODES=random")
	c.links.ExecIn(t, c.linkDatabase(), "UPDATE log_followers SET seq = (SELECT seq FROM change_head) WHERE name = 'created-links-chosen'")
	c.create(t, "after", false, "CURT_CODES=random")
	c.api(t)
	within(t, 3*time.Minute, "links behind the lost ones", func() bool {
		last := c.acked[len(c.acked)-1]
		return slices.ContainsFunc(c.records(t), func(r createdRecord) bool { return r.key == last[len(last)-1].ID })
	})
	if missing, _ := c.compare(t); missing != lost {
		t.Errorf("%d links are missing, want the %d before which the position was moved", missing, lost)
	}
}

// create has a server create some links, and ends it.
func (c *creators) create(t *testing.T, name string, counted bool, env ...string) int {
	t.Helper()
	s := c.api(t, env...)
	ctx, end := context.WithCancel(t.Context())
	before := c.all()
	wait := c.writer(ctx, t, s, name, counted)
	within(t, 3*time.Minute, "links", func() bool { return c.all() >= before+30 })
	end()
	wait()
	s.Terminate(t)
	return c.all() - before
}
