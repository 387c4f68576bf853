package postgres_test

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"time"

	"curt/internal/testkit"
	"curt/test/internal/curttest"
)

// lookUp is what a look-up has for an answer of the database, and patience somewhat less.
const (
	lookUp   = time.Second
	patience = 800 * time.Millisecond
)

// TestThePoolerIsStartedAgain has PgBouncer end, with all connections through it, and start again
// under visitors of links that no memory holds. Nobody gets a 503 for whom a pooler was there
// within the time of a look-up; on a busy machine some get it once that time is over, and none before.
func TestThePoolerIsStartedAgain(t *testing.T) {
	t.Parallel()
	server := testkit.StartPostgres(t, testkit.PostgresConfig{})
	name := server.Copy(t, "template1")
	pooler := testkit.StartPgBouncer(t, server)
	maker := begin(t, 1, server.URL(name))[0]
	made := maker.MustCreate(t, 1)
	for len(made) < 5_000 {
		made = append(made, maker.MustCreate(t, 1000)...)
	}
	maker.Terminate(t)
	n := begin(t, 1, pooler.URL(name), "CURT_UNKNOWN_LIMIT=off")[0]

	cold := make(chan curttest.Link, len(made))
	for _, l := range made {
		cold <- l
	}
	ctx, stop := context.WithCancel(t.Context())
	var visitors sync.WaitGroup
	var mu sync.Mutex
	var visits []poolerVisit
	for range 8 {
		visitors.Go(func() {
			c := n.MustDial(t)
			defer c.Close()
			for tick := time.NewTicker(15 * time.Millisecond); ctx.Err() == nil; <-tick.C {
				select {
				case l := <-cold:
					began := time.Now()
					a, err := c.Do("GET", "/"+l.Code, nil, "")
					mu.Lock()
					visits = append(visits, poolerVisit{began, time.Now(), a.Status, err})
					mu.Unlock()
					if err != nil {
						return
					}
				default:
					return // all were visited
				}
			}
		})
	}
	visited := func() int { mu.Lock(); defer mu.Unlock(); return len(visits) }
	var away []outage
	quick := 0
	for end := time.Now().Add(3 * time.Minute); quick < 5; {
		before := visited()
		eventually(t, "visits", func() bool { return visited() > before+100 || len(cold) == 0 })
		if len(cold) == 0 || time.Now().After(end) {
			t.Fatalf("of %d restarts %d took less than %v", len(away), quick, patience)
		}
		o := outage{from: time.Now()}
		pooler.Kill(t)
		pooler.Again(t)
		o.to = time.Now()
		if away = append(away, o); o.to.Sub(o.from) < patience {
			quick++
		}
	}
	before := visited()
	eventually(t, "visits after the last restart", func() bool { return visited() > before+100 || len(cold) == 0 })
	stop()
	visitors.Wait()
	met, late := 0, 0
	for _, v := range visits {
		longest := time.Duration(0)
		for _, o := range away {
			longest = max(longest, o.meets(v))
		}
		if longest > 0 {
			met++
		}
		switch took := v.to.Sub(v.from); {
		case v.err == nil && v.status == http.StatusFound, longest >= patience:
		case v.err == nil && v.status == http.StatusServiceUnavailable && took >= lookUp:
			late++
		default:
			t.Errorf("a visit that met no pooler for %v, and took %v, was answered %d, %v", longest, took, v.status, v.err)
		}
	}
	if late > met/10 {
		t.Errorf("%d visits were not answered within a look-up's time; %d met a restart", late, met)
	}
	if met < len(away) {
		t.Errorf("%d visits met one of %d restarts: this shows nothing", met, len(away))
	}
	t.Logf("%d visits of cold links, %d of them met one of %d restarts, %d took too long", len(visits), met, len(away), late)
}

// poolerVisit is one of a link that no memory holds.
type poolerVisit struct {
	from, to time.Time
	status   int
	err      error
}

// outage is a time in which there may have been no pooler.
type outage struct{ from, to time.Time }

// meets returns for how long of a visit there may have been none.
func (o outage) meets(v poolerVisit) time.Duration {
	from, to := o.from, o.to
	if v.from.After(from) {
		from = v.from
	}
	if v.to.Before(to) {
		to = v.to
	}
	return max(0, to.Sub(from))
}
