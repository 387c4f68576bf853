package events_test

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"curt.example/client"
	"curt/internal/backend/clickhouse"
	"curt/internal/clicks/clicklog"
	"curt/internal/testkit"
	"curt/test/internal/curttest"
)

func TestMain(m *testing.M) { os.Exit(curttest.Main(m)) }

// plant is everything from a visitor to ClickHouse.
type plant struct {
	kafka      *testkit.Kafka
	clickhouse *testkit.ClickHouse
	houses     []*testkit.ClickHouse // that it is one of; none = it is alone
	links      *testkit.Postgres
	database   string // of ClickHouse
	env        []string
	codes      []string      // that visitors click on
	probes     []string      // that nobody clicks on by himself
	ahead      time.Duration // of the machine's clock, those of all servers

	late    int64    // clicks that no visitor made
	deaths  int64    // of sites that visitors click on
	killed  int64    // clicks that they took with them, by their own count
	visited []string // folders of the sites that visitors come to

	mu    sync.Mutex
	sites map[string]*curttest.Server // guarded by mu: by data folder, those who follow links
	works map[string]*curttest.Server // guarded by mu
}

// build starts all of it: a cluster of brokers, followers of links and workers.
func build(t *testing.T, brokers, sites, workers int) *plant {
	t.Helper()
	house := testkit.StartClickHouse(t)
	return buildBefore(t, house, house, brokers, sites, workers)
}

// buildBefore is build with workers that come to ClickHouse by another way.
func buildBefore(t *testing.T, house, way *testkit.ClickHouse, brokers, sites, workers int) *plant {
	t.Helper()
	return buildWith(t, house, brokers, sites, workers, func(p *plant) { p.env[2] = "CURT_ANALYTICS=" + way.URL(p.database) })
}

// buildWith is build with settings that change replaces.
func buildWith(t *testing.T, house *testkit.ClickHouse, brokers, sites, workers int, change func(*plant)) *plant {
	t.Helper()
	p := &plant{kafka: testkit.StartKafka(t, brokers), clickhouse: house, sites: map[string]*curttest.Server{}, works: map[string]*curttest.Server{}}
	p.database = house.Database(t)
	p.links = testkit.StartPostgres(t, testkit.PostgresConfig{})
	links := p.links.Database(t)
	p.env = []string{"CURT_LINKS=" + links, "CURT_EVENTS=" + p.kafka.URL("clicks"), "CURT_ANALYTICS=" + house.URL(p.database), "CURT_RAW_RETENTION_OF=default=90d"}
	change(p)
	p.makeLinks(t, links)
	migrate := exec.CommandContext(t.Context(), curttest.Binary(t), "migrate")
	migrate.Env = append([]string{"CURT_ROLE=worker"}, p.env...)
	if out, err := migrate.CombinedOutput(); err != nil {
		t.Fatalf("curt migrate: %v: %s", err, out)
	}
	for range sites {
		p.site(t, t.TempDir())
	}
	for range workers {
		p.worker(t, t.TempDir())
	}
	return p
}

// makeLinks makes links by a server that goes before clicks come.
func (p *plant) makeLinks(t *testing.T, links string) {
	t.Helper()
	s := curttest.Start(t, curttest.Options{Data: t.TempDir(), Env: []string{"CURT_LINKS=" + links}})
	api, err := client.New("http://"+s.Addr, client.WithKey(curttest.Key))
	if err != nil {
		t.Fatal(err)
	}
	wanted := make([]client.NewLink, 200)
	for i := range wanted {
		wanted[i] = client.NewLink{LongURL: "https://example.com/a"}
	}
	made, err := api.CreateMany(t.Context(), wanted)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range made {
		p.codes = append(p.codes, r.Link.ShortCode)
	}
	p.codes, p.probes = p.codes[:100], p.codes[100:]
	s.Terminate(t)
}

// site starts a server that follows links, on a folder that is new or was another's.
func (p *plant) site(t *testing.T, data string) {
	t.Helper()
	s := p.start(t, data, "redirect")
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sites[data] = s
}

func (p *plant) worker(t *testing.T, data string) {
	t.Helper()
	s := p.start(t, data, "worker")
	p.mu.Lock()
	defer p.mu.Unlock()
	p.works[data] = s
}

func (p *plant) start(t *testing.T, data, role string) *curttest.Server {
	t.Helper()
	s := curttest.Start(t, curttest.Options{Data: data, Env: append([]string{"CURT_ROLE=" + role, "CURT_UNKNOWN_LIMIT=off"}, p.env...)})
	if p.ahead != 0 {
		s.SetClock(t, p.ahead)
	}
	return s
}

// setClocks lets all servers, also those to come, believe that it is so much later.
func (p *plant) setClocks(t *testing.T, ahead time.Duration) {
	t.Helper()
	p.ahead = ahead.Truncate(time.Second)
	for _, all := range []map[string]*curttest.Server{p.sites, p.works} {
		for _, s := range all {
			s.SetClock(t, p.ahead)
		}
	}
}

// now is what servers take for the time.
func (p *plant) now() time.Time { return time.Now().Add(p.ahead).UTC() }

// any returns one of several servers, and its folder.
func (p *plant) any(all map[string]*curttest.Server) (data string, s *curttest.Server) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for data, s = range all {
		break // maps are walked at random
	}
	return data, s
}

// event is one of a click log.
type event struct {
	sequence uint64
	at       int64 // its own time, Unix milliseconds
}

// logged returns what all click logs hold, by instance: every event once.
func (p *plant) logged(t *testing.T) map[uint64][]event {
	t.Helper()
	all := map[uint64][]event{}
	for data := range p.sites {
		r, err := clicklog.ReadDir(filepath.Join(data, "clicks"), clicklog.Position{})
		if err != nil {
			t.Fatal(err)
		}
		for {
			b, err := r.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			err = b.Events(func(e *clicklog.Event) error {
				all[e.ID.Instance] = append(all[e.ID.Instance], event{e.ID.Sequence, e.Time})
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		r.Close()
	}
	return all
}

// store opens ClickHouse as workers do.
func (p *plant) store(t *testing.T) *clickhouse.Store {
	t.Helper()
	var s *clickhouse.Store
	within(t, 3*time.Minute, "ClickHouse that takes connections", func() bool {
		p.keepStore(t)
		var err error
		if s, err = clickhouse.Open(t.Context(), clickhouse.Config{URL: p.clickhouse.URL(p.database)}); err != nil {
			t.Log(err)
		}
		return err == nil
	})
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// metric returns a metric of a server; -1 = it does not say.
func metric(t *testing.T, s *curttest.Server, name string) float64 {
	t.Helper()
	v, found, err := s.Metric(t.Context(), name)
	if err != nil || !found {
		return -1
	}
	return v
}

// within waits for what other processes have to come to: a machine with other work may take minutes for what usually
// takes seconds.
func within(t *testing.T, bound time.Duration, what string, holds func() bool) time.Duration {
	t.Helper()
	begun := time.Now()
	for !holds() {
		if time.Since(begun) > bound {
			t.Fatalf("no %s within %v", what, bound)
		}
		time.Sleep(50 * time.Millisecond)
	}
	return time.Since(begun)
}
