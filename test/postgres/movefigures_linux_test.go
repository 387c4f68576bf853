package postgres_test

import (
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"curt.example/client"
	"curt/internal/testkit"
)

// figuresEnv says how many links TestMoveFigures moves (scripts/bench-move-dynamodb).
const figuresEnv = "CURT_BENCH_MOVE"

// prober follows links of a server, one after the other, and keeps how long each answer took.
type prober struct {
	stop  chan struct{}
	ended chan struct{}
	took  []time.Duration // owned by run until it has ended
	bad   int             // likewise
}

func (n node) probe(t *testing.T, codes []string) *prober {
	t.Helper()
	p := &prober{stop: make(chan struct{}), ended: make(chan struct{})}
	conn := n.MustDial(t)
	go func() {
		defer close(p.ended)
		defer conn.Close()
		for i := 0; ; i++ {
			select {
			case <-p.stop:
				if i > 0 {
					return
				}
			case <-time.After(time.Millisecond):
			}
			began := time.Now()
			a, err := conn.Do("GET", "/"+codes[i%len(codes)], nil, "")
			took := time.Since(began)
			p.took = append(p.took, took)
			late := a.Status == http.StatusServiceUnavailable && took >= lookUp // a busy machine did not find it in time
			if err != nil || a.Status != http.StatusFound && !late {
				p.bad++
			}
			if err != nil {
				return
			}
		}
	}()
	return p
}

// p99 ends the probing, and returns the 99th percentile.
func (p *prober) p99() time.Duration {
	close(p.stop)
	<-p.ended
	slices.Sort(p.took)
	return p.took[len(p.took)*99/100]
}

// TestMoveFigures moves many links from PostgreSQL to DynamoDB and back while servers redirect: no
// redirect fails. It logs how long it took, and the latencies.
func TestMoveFigures(t *testing.T) {
	testkit.Faults(t)
	many := 20_000
	if text := os.Getenv(figuresEnv); text != "" {
		var err error
		if many, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	url, there := database(t), database(t)
	old := begin(t, 1, url)[0]
	var codes []string
	for n := 0; n < many; n += 1000 {
		batch := make([]client.NewLink, min(1000, many-n))
		for i := range batch {
			batch[i].LongURL = fmt.Sprintf("https://example.com/articles/2026/%d", n+i)
		}
		made, err := old.api.CreateMany(t.Context(), batch)
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			for i := range made {
				codes = append(codes, made[i].Link.ShortCode)
			}
		}
	}
	tables := freshTables(t)
	old.figures(t, codes, many, url, tables)
	fleet := overTables(t, 1, tables, url)[0]
	fleet.figures(t, codes, many, tables, there)
}

// figures moves the links of a server away, and logs what visitors noticed.
func (n node) figures(t *testing.T, codes []string, many int, from, to string) {
	t.Helper()
	calm := n.probe(t, codes)
	time.Sleep(3 * time.Second) // its length is what is measured
	before := calm.p99()
	busy := n.probe(t, codes)
	began := time.Now()
	m := beginMover(t, "--from="+from, "--to="+to)
	<-m.ended
	took := time.Since(began)
	during := busy.p99()
	if code := m.cmd.ProcessState.ExitCode(); code != 0 {
		t.Fatalf("curt move: %d", code)
	}
	if calm.bad+busy.bad > 0 {
		t.Errorf("%d redirects failed", calm.bad+busy.bad)
	}
	t.Logf("%d links in %s, %.0f a second; p99 of redirects %s before, %s during the move\n%s",
		many, took.Round(time.Millisecond), float64(many)/took.Seconds(), before, during, m.out.String())
}
