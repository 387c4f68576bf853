package events_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"curt.example/client"
	"curt/internal/testkit"
	"curt/test/internal/curttest"
)

// startWith starts a server with settings that replace the plant's.
func (p *plant) startWith(t *testing.T, data string, env ...string) *curttest.Server {
	t.Helper()
	return curttest.Start(t, curttest.Options{Data: data, Env: append(append([]string{"CURT_UNKNOWN_LIMIT=off"}, p.env...), env...)})
}

// health asks a server with the API how it does.
func health(t *testing.T, s *curttest.Server) client.Health {
	t.Helper()
	api, err := client.New("http://"+s.Addr, client.WithKey(curttest.Key))
	if err != nil {
		t.Fatal(err)
	}
	var h client.Health
	within(t, 3*time.Minute, "answer of "+s.Addr, func() bool {
		h, err = api.Health(t.Context())
		return err == nil
	})
	return h
}

// concerned reports whether a server has a concern.
func concerned(t *testing.T, s *curttest.Server, name string) bool {
	t.Helper()
	return slices.ContainsFunc(health(t, s).Concerns, func(c client.Concern) bool { return c.Name == name })
}

// complete is up to when a server says that clicks are complete; zero = it does not know.
func complete(t *testing.T, s *curttest.Server) time.Time {
	t.Helper()
	if at := health(t, s).Clicks.CompleteUntil; at != nil {
		return *at
	}
	return time.Time{}
}

// clickOn clicks on every code once.
func (p *plant) clickOn(t *testing.T, s *curttest.Server) int64 {
	t.Helper()
	c := s.MustDial(t)
	for _, code := range p.codes {
		within(t, 3*time.Minute, "answer about "+code, func() bool {
			a, err := c.Do("GET", "/"+code, nil, "")
			if err != nil || a.Status != http.StatusFound && a.Status != http.StatusServiceUnavailable {
				t.Fatalf("a click on %s: %d, %v", code, a.Status, err)
			}
			return a.Status == http.StatusFound // a busy machine is unavailable now and then, which is no click
		})
	}
	return int64(len(p.codes))
}

// counted returns how many clicks are in ClickHouse.
func (p *plant) counted(t *testing.T) (n int64) {
	t.Helper()
	_, err := fmt.Sscan(p.clickhouse.Exec(t, "SELECT count() FROM "+p.database+".clicks"), &n)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// neverHeard waits until clicks would be called complete up to a time by somebody who waits only
// for those that have said something.
func (p *plant) neverHeard(t *testing.T, at time.Time) {
	t.Helper()
	store := p.store(t)
	within(t, 3*time.Minute, "progress of those that are heard", func() bool {
		progress, err := store.Progress(t.Context(), time.Now())
		return err == nil && progress.Complete.After(at)
	})
}

// TestAServerThatNeverReachesKafka has a wrong address: its clicks are served, kept, and waited for
// by every server, from before the first of them. It says so itself. With the right
// address on the same folder they come; without its folder, an operator gives it up.
func TestAServerThatNeverReachesKafka(t *testing.T) {
	testkit.Faults(t)
	p := build(t, 1, 1, 1)
	api := p.startWith(t, t.TempDir(), "CURT_ROLE=api")
	_, site := p.any(p.sites)
	answered := p.clickOn(t, site)
	within(t, 3*time.Minute, "clicks", func() bool { return p.counted(t) == answered })
	within(t, 3*time.Minute, "complete_until", func() bool { return !complete(t, api).IsZero() })

	folder := t.TempDir()
	lost := p.startWith(t, folder, "CURT_ROLE=redirect,api", "CURT_EVENTS=kafka://127.0.0.1:1/clicks")
	began := time.Now()
	answered += p.clickOn(t, lost)
	captured(t, lost, len(p.codes)) // so that none goes when it is killed
	p.neverHeard(t, time.Now())
	for name, s := range map[string]*curttest.Server{"another server": api, "the server itself": lost} {
		until := complete(t, s)
		within(t, 3*time.Minute, "fresh answer", func() bool { until = complete(t, s); return !until.IsZero() })
		if until.After(began) {
			t.Errorf("%s says that clicks are complete until %v; %d from %v on are not", name, until, len(p.codes), began)
		}
	}
	within(t, 3*time.Minute, "concern about clicks that go nowhere", func() bool { return concerned(t, lost, "clicks-unsent") })
	if concerned(t, api, "clicks-unsent") || concerned(t, lost, "clicks-unknown") {
		t.Errorf("concerns: %+v and %+v", health(t, api).Concerns, health(t, lost).Concerns)
	}
	if out, _, code := p.curt(t, nil, "clicks", "servers", "--csv"); code != 0 || !strings.Contains(out, ",unheard,") {
		t.Errorf("curt clicks servers: %d, %s", code, out)
	}

	// With the right address they come at once.
	lost.Kill()
	right := p.startWith(t, folder, "CURT_ROLE=redirect")
	within(t, 3*time.Minute, "clicks of the folder", func() bool { return p.counted(t) == answered })
	at := time.Now()
	within(t, 3*time.Minute, "complete_until", func() bool { return complete(t, api).After(at) })

	// And once more, with the folder lost.
	right.Terminate(t)
	lost = p.startWith(t, folder, "CURT_ROLE=redirect", "CURT_EVENTS=kafka://127.0.0.1:1/clicks")
	began = time.Now()
	p.clickOn(t, lost)
	lost.Kill()
	p.neverHeard(t, time.Now())
	if until := complete(t, api); until.After(began) {
		t.Errorf("a server has died with clicks of %v, and they are complete until %v", began, until)
	}
	name, err := os.ReadFile(filepath.Join(folder, "instance"))
	if err != nil {
		t.Fatal(err)
	}
	if _, complaint, code := p.curt(t, nil, "clicks", "forget", "--yes", "nobody"); code != 1 || strings.Count(complaint, "\n") != 1 {
		t.Errorf("forget nobody: %d, %s", code, complaint)
	}
	if _, complaint, code := p.curt(t, nil, "clicks", "forget", "--yes", string(name)); code != 0 {
		t.Errorf("forget: %d, %s", code, complaint)
	}
	at = time.Now()
	within(t, 3*time.Minute, "complete_until without the lost folder", func() bool { return complete(t, api).After(at) })
}

// TestAServerThatCannotBeWrittenDown has no table to be written to: visitors notice nothing, the server
// says that nobody waits for its clicks, and waits for them itself.
func TestAServerThatCannotBeWrittenDown(t *testing.T) {
	testkit.Faults(t)
	p := build(t, 1, 0, 1)
	database := p.env[0][strings.LastIndexByte(p.env[0], '/')+1 : strings.IndexByte(p.env[0], '?')]
	p.links.ExecIn(t, database, `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'no'; END $$;
		CREATE TRIGGER refuse BEFORE INSERT OR UPDATE ON click_senders FOR EACH ROW EXECUTE FUNCTION refuse()`)
	s := p.startWith(t, t.TempDir(), "CURT_ROLE=redirect,api", "CURT_EVENTS=kafka://127.0.0.1:1/clicks")
	heard := p.startWith(t, t.TempDir(), "CURT_ROLE=redirect,api")
	began := time.Now()
	p.clickOn(t, s)
	p.neverHeard(t, began)
	within(t, 3*time.Minute, "concern about clicks that nobody knows of", func() bool { return concerned(t, s, "clicks-unknown") })
	if n := metric(t, s, "curt_events_enlisted"); n != 0 {
		t.Errorf("it is enlisted: %v", n)
	}
	within(t, 3*time.Minute, "answer", func() bool { return !complete(t, s).IsZero() })
	if until := complete(t, s); until.After(began) {
		t.Errorf("the server itself says that clicks are complete until %v; its own of %v are not", until, began)
	}
	p.links.ExecIn(t, database, "DROP TRIGGER refuse ON click_senders")
	within(t, 3*time.Minute, "end of the concern", func() bool { return !concerned(t, s, "clicks-unknown") })
	within(t, 3*time.Minute, "answer of another server", func() bool { at := complete(t, heard); return !at.IsZero() && at.Before(began) })
}

// TestATopicIsMadeAnew deletes the topic while visitors click, and makes it again. Nobody is started
// again, and every click counts once. Who has not spoken in the new topic yet is waited for.
func TestATopicIsMadeAnew(t *testing.T) {
	testkit.Faults(t)
	p := build(t, 1, 2, 1)
	api := p.startWith(t, t.TempDir(), "CURT_ROLE=api")
	var both []*curttest.Server
	answered := int64(0)
	for _, s := range p.sites {
		both = append(both, s)
		answered += p.clickOn(t, s)
	}
	within(t, 3*time.Minute, "clicks", func() bool { return p.counted(t) == answered })
	within(t, 3*time.Minute, "complete_until", func() bool { return !complete(t, api).IsZero() })

	if err := syscall.Kill(both[1].PID, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	stopped := time.Now()
	p.deleteTopic(t)
	answered += p.clickOn(t, both[0])
	within(t, 3*time.Minute, "concern about clicks that wait", func() bool { return metric(t, both[0], "curt_events_waiting_bytes") > 0 })
	if _, complaint, code := p.curt(t, nil, "migrate"); code != 0 {
		t.Fatalf("curt migrate: %d: %s", code, complaint)
	}
	within(t, 3*time.Minute, "clicks in the new topic", func() bool { return p.counted(t) == answered })
	// The new topic is read, and who writes to it has promised all that it has.
	after := stopped.Add(2 * time.Second).UnixMilli()
	within(t, 3*time.Minute, "news of the new topic", func() bool {
		return p.clickhouse.Exec(t, fmt.Sprintf(`SELECT count() FROM (SELECT partition FROM %s.watermarks
WHERE topic = (SELECT topic FROM %[1]s.watermarks GROUP BY topic ORDER BY min(at) DESC LIMIT 1) GROUP BY partition
HAVING maxIf(watermark, instance = 0) > %[2]d AND maxIf(watermark, instance != 0) > %[2]d)`, p.database, after)) == "12"
	})
	within(t, 3*time.Minute, "server that has read it", func() bool {
		at := health(t, api).Clicks.UpdatedAt
		return at != nil && at.UnixMilli() > after
	})
	if until := complete(t, api); until.After(stopped) {
		t.Errorf("a server has stood still since %v and knows nothing of the new topic, and clicks are complete until %v", stopped, until)
	}
	if err := syscall.Kill(both[1].PID, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	answered += p.clickOn(t, both[1])
	within(t, 3*time.Minute, "clicks of who stood still", func() bool { return p.counted(t) == answered })
	at := time.Now()
	within(t, 3*time.Minute, "complete_until in the new topic", func() bool { return complete(t, api).After(at) })

	p.equal(t)
	out, complaint, code := p.curt(t, nil, "clicks", "verify", "--json", "--hour="+stopped.UTC().Add(-time.Hour).Format(time.RFC3339), "--hours=2")
	if code != 0 || strings.Contains(complaint, "replay") || !strings.Contains(complaint, "an earlier topic") {
		t.Errorf("curt clicks verify: %d, %s\n%s", code, complaint, out)
	}
	var apart uint64
	for line := range strings.Lines(out) {
		var found struct {
			Apart uint64 `json:"not_compared"`
		}
		if err := json.Unmarshal([]byte(line), &found); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		apart += found.Apart
	}
	if apart < uint64(2*len(p.codes)) {
		t.Errorf("%d clicks are compared with nothing, want those of the earlier life", apart)
	}
}

// deleteTopic deletes the topic, and returns when it is gone.
func (p *plant) deleteTopic(t *testing.T) {
	t.Helper()
	c, err := kgo.NewClient(kgo.SeedBrokers(p.kafka.Brokers[0].Address))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	admin := kadm.NewClient(c)
	if _, err := admin.DeleteTopic(t.Context(), "clicks"); err != nil {
		t.Fatal(err)
	}
	within(t, 3*time.Minute, "end of the topic", func() bool {
		topics, err := admin.ListTopics(t.Context(), "clicks")
		return err == nil && topics.Error() != nil
	})
}
