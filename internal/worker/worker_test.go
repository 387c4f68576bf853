package worker_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"curt/internal/backend/clickhouse/clickdb"
	"curt/internal/backend/clickhouse/watermarks"
	"curt/internal/backend/kafka"
	"curt/internal/clicks"
	"curt/internal/clicks/capture"
	"curt/internal/clicks/clicklog"
	"curt/internal/clicks/ship"
	"curt/internal/link"
	"curt/internal/testkit"
	"curt/internal/worker"
)

// patience is how long is waited for what usually takes a second: a machine with other work may take minutes.
const patience = 3 * time.Minute

// ledger is a store in memory that keeps what ClickHouse promises: a block counts once under
// its token. It fails as networks and processes do, before and after it has taken a block.
type ledger struct {
	mu      sync.Mutex
	random  *rand.Rand
	faults  bool                   // guarded by mu, as the rest
	tokens  map[string]bool        // of blocks that count
	counted map[clicks.EventID]int // how often each click counts
	spaces  map[link.Key]string    // workspace by link
	kept    map[string]uint16      // days by workspace
	marks   []watermarks.Watermark // that were told
	excused []int                  // partitions, each time
	faulted map[string]int         // by kind
	mute    bool                   // watermarks are refused
	refused int                    // times that they were
	news    chan struct{}          // one that something came
}

func newLedger(seed uint64) *ledger {
	return &ledger{
		random: rand.New(rand.NewPCG(seed, 7)), tokens: map[string]bool{}, counted: map[clicks.EventID]int{},
		spaces: map[link.Key]string{}, kept: map[string]uint16{}, faulted: map[string]int{}, news: make(chan struct{}, 1),
	}
}

var errAway = errors.New("the store does not answer")

// Insert implements worker.Store. kafka.ErrLeave stands for the death of the worker, there and
// then: nothing that it would have done next is done.
func (l *ledger) Insert(_ context.Context, token string, rows []clickdb.Row) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	kind := ""
	if l.faults {
		kind = []string{"dies before", "dies after", "fails before", "fails after", "", "", ""}[l.random.IntN(7)]
	}
	l.faulted[kind]++
	switch kind {
	case "dies before":
		return fmt.Errorf("%s: %w", kind, kafka.ErrLeave)
	case "fails before":
		return errAway
	}
	if !l.tokens[token] {
		l.tokens[token] = true
		for i := range rows {
			l.counted[rows[i].ID]++
			l.spaces[rows[i].Key] = rows[i].Workspace
			l.kept[rows[i].Workspace] = rows[i].RetentionDays
		}
	}
	select {
	case l.news <- struct{}{}:
	default:
	}
	switch kind {
	case "dies after":
		return fmt.Errorf("%s: %w", kind, kafka.ErrLeave)
	case "fails after":
		return errAway
	}
	return nil
}

// wrong returns how many clicks are missing, and how many count more than once.
func (l *ledger) wrong(sent map[clicks.EventID]bool) (missing, twice int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id := range sent {
		if l.counted[id] == 0 {
			missing++
		}
	}
	for _, n := range l.counted {
		if n > 1 {
			twice++
		}
	}
	return missing, twice
}

// await waits until every click counts.
func (l *ledger) await(t *testing.T, sent map[clicks.EventID]bool) {
	t.Helper()
	late := time.After(patience)
	for {
		missing, twice := l.wrong(sent)
		if missing == 0 {
			return
		}
		select {
		case <-l.news:
		case <-late:
			t.Fatalf("after %v %d clicks of %d are missing, %d count twice", patience, missing, len(sent), twice)
		}
	}
}

type noKeys struct{}

func (noKeys) DayKey(context.Context, time.Time) ([16]byte, error) { return [16]byte{}, nil }

// site is a server that follows links and sends clicks to Kafka.
type site struct {
	dir      string
	producer *kafka.Producer
	sent     map[clicks.EventID]bool
	random   *rand.Rand
	when     func() time.Time // of the next click
}

func newSite(t *testing.T, c kafka.Config, seed uint64) *site {
	t.Helper()
	p, err := kafka.NewProducer(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return &site{t.TempDir(), p, map[clicks.EventID]bool{}, rand.New(rand.NewPCG(seed, 3)), time.Now}
}

// click takes n clicks through ring, capture, log and shipper, as one life of the server.
// forgetful has the place in the log lost first: all that it holds is sent again.
func (s *site) click(t *testing.T, n int, forgetful bool) {
	t.Helper()
	state := filepath.Join(s.dir, "shipped")
	if forgetful {
		_ = os.Remove(state)
	}
	log, err := clicklog.Open(clicklog.Config{Dir: s.dir})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = log.Close() }()
	ring, began := capture.NewRing(capture.RingConfig{}), time.Now()
	capturer := capture.New(capture.Config{Ring: ring, Log: log, Keys: noKeys{}})
	for range n {
		outcome := clicks.Redirected
		if s.random.IntN(5) == 0 {
			outcome = clicks.Orphan
		}
		ring.Record(&clicks.Raw{
			Time: s.when().UnixMilli(), Code: fmt.Appendf(nil, "c%d", s.random.IntN(50)), Outcome: outcome,
			UserAgent: []byte("Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0"),
		})
	}
	stopped, stop := context.WithCancel(t.Context())
	stop()
	if err := capturer.Run(stopped); err != nil { // drains once
		t.Fatal(err)
	}
	for i := range n {
		s.sent[clicks.EventID{Instance: capturer.Instance(), Sequence: uint64(i)}] = true
	}
	shipper := ship.New(ship.Config{Log: log, Sink: s.producer, State: state, Instance: capturer.Instance(), Began: began})
	life, end := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- shipper.Run(life) }()
	for until := time.Now().Add(patience); shipper.Stats().Events < uint64(n) && time.Now().Before(until); {
		time.Sleep(time.Millisecond) // it tells nobody
	}
	end()
	if err := <-ran; err != nil {
		t.Fatal(err)
	}
	if got := shipper.Stats(); got.Events < uint64(n) { // what failed was sent again
		t.Fatalf("%+v, want %d events", got, n)
	}
}

// cluster is a Kafka in this process, with the topic.
func cluster(t *testing.T, partitions int) kafka.Config {
	t.Helper()
	fake, err := kfake.NewCluster(kfake.NumBrokers(3))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(fake.Close)
	c := kafka.Config{Brokers: fake.ListenAddrs(), Topic: "clicks"}
	if _, err := kafka.Migrate(t.Context(), c, kafka.Topic{Partitions: partitions}); err != nil {
		t.Fatal(err)
	}
	return c
}

// start runs a worker until the returned function is called, or the test ends.
func start(t *testing.T, c worker.Config) (w *worker.Worker, stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	w = worker.New(c)
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	}
	t.Cleanup(stop)
	return w, stop
}

func spaces(_ context.Context, keys []link.Key) ([]string, error) {
	names := make([]string, len(keys))
	for i, k := range keys {
		names[i] = "w" + string(k.Code)
	}
	return names, nil
}

// keepDays differ by workspace.
func keepDays(workspace string) uint16 { return uint16(2 + len(workspace)) }

// run sends clicks in lives of a site, some of them again, while workers die, come and go, and
// the store fails. It returns what is wrong then.
func run(t *testing.T, seed uint64, change func(*worker.Config)) (l *ledger, sent map[clicks.EventID]bool) {
	c := cluster(t, 4)
	l = newLedger(seed)
	l.faults = true
	cfg := worker.Config{Kafka: c, Store: l, Workspaces: spaces, RetentionDays: keepDays}
	cfg.Age(30 * time.Millisecond)
	change(&cfg)
	_, stopFirst := start(t, cfg)
	start(t, cfg)
	s := newSite(t, c, seed)
	for life := range 24 {
		s.click(t, 100, life%4 == 3)
		if life == 12 {
			stopFirst()
		}
	}
	l.mu.Lock()
	l.faults = false
	l.mu.Unlock()
	l.await(t, s.sent)
	return l, s.sent
}

func TestEveryClickCountsOnce(t *testing.T) {
	l, sent := run(t, 1, func(*worker.Config) {})
	if missing, twice := l.wrong(sent); missing+twice > 0 || len(l.counted) != len(sent) {
		t.Errorf("of %d clicks %d are missing, %d count twice; %d count", len(sent), missing, twice, len(l.counted))
	}
	awaitEnds(t, l, sent, 4)
	for k, name := range l.spaces {
		if want := "w" + string(k.Code); k.Code != "" && name != want {
			t.Errorf("%q counts for %q, want %q", k, name, want)
		}
	}
	for name, days := range l.kept {
		if days != keepDays(name) {
			t.Errorf("clicks of %q are kept for %d days, want %d", name, days, keepDays(name))
		}
	}
	t.Logf("blocks by what became of them: %v", l.faulted)
}

// awaitEnds waits until the end of every instance was told of every partition, although
// workers died after they had read of it.
func awaitEnds(t *testing.T, l *ledger, sent map[clicks.EventID]bool, partitions int) {
	t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) { // other goroutines tell, once a second
		open := map[uint64]int{}
		for id := range sent {
			open[id.Instance] = partitions
		}
		told := map[[2]uint64]bool{}
		l.mu.Lock()
		for _, m := range l.marks {
			if at := [2]uint64{m.Instance, uint64(m.Partition)}; m.Watermark == clicks.Ended && !told[at] {
				told[at] = true
				if open[m.Instance]--; open[m.Instance] == 0 {
					delete(open, m.Instance)
				}
			}
		}
		l.mu.Unlock()
		if len(open) == 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("partitions in which nobody told of the end, by instance: %v", open)
		}
	}
}

// TestControls shows that the test above sees what the protocol is for. Workers that take all lives of the site for few blocks
// may have none that fails: one of some runs has to show it.
func TestControls(t *testing.T) {
	testkit.Unraced(t)
	for name, change := range map[string]func(*worker.Config){
		"commit after the insert": (*worker.Config).CommitLate,
		"no look at the sequence": (*worker.Config).CountAgain,
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(10) {
				l, sent := run(t, seed+1, change)
				if _, twice := l.wrong(sent); twice > 0 {
					return
				}
			}
			t.Error("every click counts once all the same")
		})
	}
}

// TestPoison puts what nobody can read between clicks: it is buried, and nothing waits for it.
func TestPoison(t *testing.T) {
	c := cluster(t, 1)
	l := newLedger(1)
	cfg := worker.Config{Kafka: c, Store: l}
	cfg.Age(30 * time.Millisecond)
	client, err := kgo.NewClient(kgo.SeedBrokers(c.Brokers...), kgo.ConsumeTopics("clicks.dead"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	s := newSite(t, c, 1)
	s.click(t, 10, false)
	for _, value := range []string{"", "\xff\xff", "{}"} {
		if err := client.ProduceSync(t.Context(), &kgo.Record{Topic: "clicks", Value: []byte(value)}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	s.click(t, 10, false)
	w, _ := start(t, cfg)
	l.await(t, s.sent)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for found := 0; found < 3; {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			t.Fatalf("%d dead letters: %v", found, err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			found++
			if len(r.Headers) != 4 || len(r.Headers[0].Value) == 0 {
				t.Errorf("a dead letter says %v", r.Headers)
			}
		})
	}
	if got := w.Stats().Poison; got < 3 { // whoever loses the partition before it commits meets them again
		t.Errorf("%d records were poison", got)
	}
}
