package writer_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"curt/internal/backend/kafka"
	"curt/internal/link"
	"curt/internal/link/linktest"
	"curt/internal/pending"
	"curt/internal/writer"
)

var created = time.Date(2026, 11, 27, 6, 0, 0, 0, time.UTC)

// queue is a topic in a Kafka of this process.
type queue struct {
	t      *testing.T
	at     kafka.Config
	client *kgo.Client
}

func newQueue(t *testing.T) *queue { t.Helper(); return newQueueOf(t, 1) }

func newQueueOf(t *testing.T, partitions int) *queue {
	t.Helper()
	fake, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(fake.Close)
	q := &queue{t: t, at: kafka.Config{Brokers: fake.ListenAddrs(), Topic: "writes"}}
	if _, err := kafka.Migrate(t.Context(), q.at, kafka.Topic{Partitions: partitions}); err != nil {
		t.Fatal(err)
	}
	if q.client, err = kgo.NewClient(kgo.SeedBrokers(q.at.Brokers...), kgo.DefaultProduceTopic("writes")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(q.client.Close)
	return q
}

// add appends a record of a link.
func (q *queue) add(l link.Link) { q.t.Helper(); q.addText(q.record(l)) }

func (q *queue) record(l link.Link) (key, text string) {
	q.t.Helper()
	b, err := pending.Encode(&l)
	if err != nil {
		q.t.Fatal(err)
	}
	return l.Key.String(), string(b)
}

// addText appends a record, and returns the partition that it is in.
func (q *queue) addText(key, text string) int32 {
	q.t.Helper()
	r, err := q.client.ProduceSync(q.t.Context(), &kgo.Record{Key: []byte(key), Value: []byte(text)}).First()
	if err != nil {
		q.t.Fatal(err)
	}
	return r.Partition
}

// committed returns what writers say that they have written; 0 = nothing.
func (q *queue) committed() int64 {
	offsets, err := kadm.NewClient(q.client).FetchOffsets(q.t.Context(), "writes")
	if err != nil {
		return 0 // the group is not there yet
	}
	o, _ := offsets.Lookup("writes", 0)
	return max(0, o.At)
}

// reasons reads the dead letters: their reasons by their keys.
func (q *queue) reasons(n int) map[string]string {
	q.t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(q.at.Brokers...), kgo.ConsumeTopics("writes.dead"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		q.t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(q.t.Context(), 3*time.Minute)
	defer cancel()
	found := map[string]string{}
	for len(found) < n && ctx.Err() == nil {
		client.PollFetches(ctx).EachRecord(func(r *kgo.Record) { found[string(r.Key)] = string(r.Headers[0].Value) })
	}
	return found
}

// run lets a writer write until the returned function is called, or the test ends.
func (q *queue) run(c writer.Config) (w *writer.Writer, stop func()) {
	q.t.Helper()
	c.Kafka = q.at
	if c.Rate == 0 {
		c.Rate = 10_000
	}
	w = writer.New(c)
	ctx, cancel := context.WithCancel(q.t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		if err := w.Run(ctx); err != nil {
			q.t.Errorf("Run: %v", err)
		}
	})
	stop = sync.OnceFunc(func() { cancel(); running.Wait() })
	q.t.Cleanup(stop)
	return w, stop
}

// soon waits until ok.
func soon(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(3 * time.Minute); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not within three minutes", what)
		}
	}
}

// a returns a link with a code and an id that follows from n.
func a(code string, n byte) link.Link {
	return link.Link{
		ID: link.ID{1, n}, Key: link.Key{Code: link.Code(code)}, Destination: "https://example.com/" + code, Workspace: "acme", Status: link.Active,
		Safety: link.Clean, Redirect: 302, CodeKind: link.Counted, Created: created, Updated: created,
	}
}

// breaking is a store whose writes of several links are decided by a function: whether they happen, and what is answered.
type breaking struct {
	*linktest.Memory

	decide func() (apply bool, err error)
}

func (b *breaking) CreateMany(ctx context.Context, now time.Time, entries []link.Creation) ([]link.Result, error) {
	apply, fault := b.decide()
	if !apply {
		return nil, fault
	}
	results, err := b.Memory.CreateMany(ctx, now, entries)
	return results, errors.Join(err, fault)
}

func TestEveryRecordBecomesOneLink(t *testing.T) {
	t.Parallel()
	q, store := newQueue(t), linktest.NewMemory()
	for i := range byte(100) {
		q.add(a(fmt.Sprintf("code%03d", i), i))
	}
	q.add(a("code007", 7)) // a retry of its create
	w, stop := q.run(writer.Config{Store: store})
	soon(t, "all is committed", func() bool { return q.committed() == 101 })
	for i := range byte(100) {
		want := a(fmt.Sprintf("code%03d", i), i)
		if l, err := store.Get(t.Context(), want.Key); err != nil || l.ID != want.ID || l.Version != 1 || l.Destination != want.Destination {
			t.Errorf("%s: %+v, %v", want.Key, l, err)
		}
	}
	soon(t, "the lag is 0", func() bool { s := w.Stats(); return s.Measured && s.Lag == 0 })
	if s := w.Stats(); s.Written != 101 || s.Dead != 0 || s.Failures != 0 || s.Partitions != 1 || s.Held != 0 || !s.Oldest.IsZero() || w.Healthy() != nil {
		t.Errorf("%+v, %v", s, w.Healthy())
	}
	stop()

	// What was committed is not read again.
	q.add(a("later01", 200))
	w, _ = q.run(writer.Config{Store: store})
	soon(t, "the next is written", func() bool { return q.committed() == 102 })
	if s := w.Stats(); s.Written != 1 {
		t.Errorf("after a restart: %+v", s)
	}
}

func TestAWriteIsRepeatedUntilItsAnswerComes(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	asked := 0
	store := &breaking{linktest.NewMemory(), func() (bool, error) {
		switch asked++; asked {
		case 1:
			return false, link.ErrUnavailable
		case 2:
			return true, link.ErrUncertain
		}
		return true, nil
	}}
	q.add(a("code001", 1))
	q.add(a("code002", 2))
	w, _ := q.run(writer.Config{Store: store})
	soon(t, "all is committed", func() bool { return q.committed() == 2 })
	for _, l := range []link.Link{a("code001", 1), a("code002", 2)} {
		if got, err := store.Get(t.Context(), l.Key); err != nil || got.ID != l.ID || got.Version != 1 {
			t.Errorf("%+v, %v", got, err)
		}
	}
	if s := w.Stats(); s.Failures < 2 || s.Dead != 0 || w.Healthy() != nil {
		t.Errorf("%+v, %v", s, w.Healthy())
	}
}

func TestWhatCanNeverBeWrittenIsADeadLetterWithItsReason(t *testing.T) {
	t.Parallel()
	q, store := newQueue(t), linktest.NewMemory()
	other := a("taken01", 1)
	if _, err := store.Create(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	wide, bare, twin, chosen := a("wide001", 2), a("bare001", 3), a("twin001", 1), a("taken01", 4)
	wide.Workspace = link.WorkspaceID(strings.Repeat("w", link.MaxName+1))
	bare.Destination, bare.Safety = "", 99
	script, spelled, fallback := a("script1", 6), a("spelled", 7), a("fallbk1", 8)
	script.Destination, spelled.Destination, fallback.Fallback = "javascript:alert(1)", "https://EXAMPLE.com", "data:text/html,x"
	for _, l := range []link.Link{wide, bare, twin, chosen, script, spelled, fallback} {
		q.add(l)
	}
	q.addText("/shortid", `{"v":1,"link":{"id":[7],"code":"shortid","destination":"https://example.com/","workspace":"acme","status":1,"safety":1,"redirect":302}}`)
	q.addText("/torn001", "{")
	q.addText("go.example/torn002", `{"v":1,"link":{"id":7,"code":"torn002","domain":"go.example"}}`)
	q.addText("no key / of a link", "?")
	q.add(a("good001", 5))
	w, _ := q.run(writer.Config{Store: store})
	soon(t, "all is committed", func() bool { return q.committed() == 12 })

	for text, want := range map[string]struct {
		why  link.Unwritten
		says string
	}{
		wide.Key.String(): {link.UnwrittenInvalid, "workspace"}, bare.Key.String(): {link.UnwrittenInvalid, "safety"},
		twin.Key.String(): {link.UnwrittenInvalid, "id belongs to"}, "/torn001": {link.UnwrittenUnreadable, "unreadable"},
		"go.example/torn002": {link.UnwrittenUnreadable, "id"}, "/shortid": {link.UnwrittenInvalid, "id of 1 bytes"},
		"/script1": {link.UnwrittenInvalid, "javascript"}, "/spelled": {link.UnwrittenInvalid, "normal form"}, "/fallbk1": {link.UnwrittenInvalid, "data:"},
	} {
		domain, code, _ := strings.Cut(text, "/")
		l, err := store.Get(t.Context(), link.Key{Domain: link.Domain(domain), Code: link.Code(code)})
		if err != nil || l.Status != link.Deleted || l.Unwritten() != want.why || l.CodeKind != link.Chosen {
			t.Errorf("%s: %+v, %v, want a tombstone that says %d", text, l, err, want.why)
		}
	}
	for text, says := range map[string]string{
		"wide001": "workspace", "bare001": "safety", "twin001": "id belongs to", "taken01": "already exists", "torn001": "unreadable", "torn002": "unreadable",
		"no key / of a link": "unreadable", "shortid": "id of 1 bytes", "script1": "javascript", "spelled": "normal form", "fallbk1": "data:",
	} {
		found := ""
		for key, reason := range q.reasons(11) {
			if strings.HasSuffix(key, text) {
				found = reason
			}
		}
		if !strings.Contains(found, says) {
			t.Errorf("the dead letter of %s says %q, want %q", text, found, says)
		}
	}
	if l, err := store.Get(t.Context(), other.Key); err != nil || l.ID != other.ID || l.Status != link.Active {
		t.Errorf("the link whose code another one wanted: %+v, %v", l, err)
	}
	if l, err := store.Get(t.Context(), link.Key{Code: "good001"}); err != nil || l.Status != link.Active {
		t.Errorf("behind them: %+v, %v", l, err)
	}
	if s := w.Stats(); s.Dead != 11 || s.Written != 1 {
		t.Errorf("%+v", s)
	}
}

func TestALinkIsJudgedAgainBeforeItsOffsetIsCommitted(t *testing.T) {
	t.Parallel()
	q, store := newQueue(t), linktest.NewMemory()
	var mu sync.Mutex
	var log []string
	note := func(text string) {
		mu.Lock()
		defer mu.Unlock()
		log = append(log, text)
	}
	failed := false
	q.add(a("code001", 1))
	w, stop := q.run(writer.Config{
		Store:      store,
		BeginWrite: func() func() { note("begin"); return func() { note("done") } },
		Recheck: func(ctx context.Context, now time.Time, l *link.Link) error {
			if stored, err := store.Get(ctx, l.Key); err != nil || l.Version != stored.Version || now.Location() != time.UTC || q.committed() != 0 {
				t.Errorf("rechecked: %+v at %v, stored %+v, %v", l, now, stored, err)
			}
			note("recheck")
			if !failed {
				failed = true
				return link.ErrUnavailable
			}
			return nil
		},
	})
	soon(t, "all is committed", func() bool { return q.committed() == 1 })
	stop()
	if got := strings.Join(log, " "); got != "begin recheck done begin recheck done" || w.Stats().Failures != 1 {
		t.Errorf("%s; %+v", got, w.Stats())
	}
}

// newer returns the record of a link as a newer release may write it.
func newer(t *testing.T, l link.Link) string {
	t.Helper()
	text, err := pending.Encode(&l)
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string]any
	if err := json.Unmarshal(text, &fields); err != nil {
		t.Fatal(err)
	}
	fields["v"] = 2
	if text, err = json.Marshal(fields); err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestARecordOfANewerReleaseHoldsUpItsPartitionOnly(t *testing.T) {
	t.Parallel()
	q, store := newQueueOf(t, 4), linktest.NewMemory()
	l := a("newer01", 1)
	at := q.addText(l.Key.String(), newer(t, l))
	behind, others := 0, 0
	for i := range byte(60) {
		if q.addText(q.record(a(fmt.Sprintf("code%03d", i), i+10))) == at {
			behind++
		} else {
			others++
		}
	}
	w, stop := q.run(writer.Config{Store: store})
	soon(t, "the other partitions are written", func() bool { return w.Stats().Written == uint64(others) })
	soon(t, "the lag is what waits", func() bool { s := w.Stats(); return s.Measured && s.Lag == int64(behind)+1 })
	soon(t, "the partition is held up", func() bool { return w.Stats().Held == 1 })
	if s := w.Stats(); s.Dead != 0 || behind == 0 || others == 0 {
		t.Errorf("%d behind it, %d elsewhere: %+v", behind, others, s)
	}
	if err := w.Healthy(); !errors.Is(err, pending.ErrNewer) || !strings.Contains(err.Error(), fmt.Sprintf("partition %d ", at)) {
		t.Errorf("Healthy: %v", err)
	}
	stop()
	if _, err := store.Get(t.Context(), l.Key); !errors.Is(err, link.ErrNotFound) {
		t.Errorf("the link of a newer release: %v", err)
	}
}

func TestTheLagIsThatOfTheTopicWhoeverHasItsPartitions(t *testing.T) {
	t.Parallel()
	q, store := newQueueOf(t, 4), linktest.NewMemory()
	if s := writer.New(writer.Config{Kafka: q.at, Store: store}).Stats(); s.Measured {
		t.Errorf("before anybody asked: %+v", s)
	}
	for i := range byte(40) {
		q.add(a(fmt.Sprintf("code%03d", i), i+10))
	}
	// The first takes what there is and cannot write it; the second has nothing of that.
	never := &breaking{linktest.NewMemory(), func() (bool, error) { return false, link.ErrUnavailable }}
	first, _ := q.run(writer.Config{Store: never})
	soon(t, "the first has the partitions", func() bool { return first.Stats().Failures > 0 })
	second, _ := q.run(writer.Config{Store: never})
	for _, w := range []*writer.Writer{first, second} {
		soon(t, "the lag is known", func() bool { s := w.Stats(); return s.Measured && s.Lag == 40 })
	}
}

func TestTheRateIsThatOfTheWriter(t *testing.T) {
	t.Parallel()
	q, store := newQueue(t), linktest.NewMemory()
	for i := range byte(60) {
		q.add(a(fmt.Sprintf("code%03d", i), i))
	}
	began := time.Now()
	w, _ := q.run(writer.Config{Store: store, Rate: 50})
	for written := uint64(0); written < 60; time.Sleep(10 * time.Millisecond) {
		written = w.Stats().Written
		if most := 50*time.Since(began).Seconds() + 50*0.2 + 1; float64(written) > most { // what 200 ms were not used for comes at once
			t.Fatalf("%d links were written after %s, want at most %.0f", written, time.Since(began), most)
		}
		if time.Since(began) > 3*time.Minute {
			t.Fatalf("%d links were written after %s", written, time.Since(began))
		}
	}
}
