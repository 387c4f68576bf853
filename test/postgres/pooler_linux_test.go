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

// patience is for how long a look-up may find no pooler so that enough of its time is left for an answer.
const patience = lookUp / 2

// TestThePoolerIsStartedAgain has PgBouncer end, with all connections through it, and start again
// under visitors of links that no memory holds. Nobody gets a 503 for whom a pooler was there
// within the time of a look-up; on a busy machine some get it once that time is over, and none before. A restart may take
// longer than a look-up: who comes towards its end meets little of it.
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
	saved := func() (n int) { // look-ups that found no pooler, and then one
		mu.Lock()
		defer mu.Unlock()
		for _, v := range visits {
			if met := longest(away, v); 0 < met && met < patience && v.status == http.StatusFound {
				n++
			}
		}
		return n
	}
	for len(away) < 5 || saved() < enough {
		before := visited()
		eventually(t, "visits", func() bool { return visited() > before+100 || len(cold) == 0 })
		if len(cold) == 0 {
			t.Fatalf("of all visits %d met one of %d restarts, and were answered", saved(), len(away))
		}
		o := outage{from: time.Now()}
		pooler.Kill(t)
		pooler.Again(t)
		o.to = time.Now()
		away = append(away, o)
	}
	before := visited()
	eventually(t, "visits after the last restart", func() bool { return visited() > before+100 || len(cold) == 0 })
	stop()
	visitors.Wait()
	late := 0
	for _, v := range visits {
		met := longest(away, v)
		switch took := v.to.Sub(v.from); {
		case v.err == nil && v.status == http.StatusFound, met >= patience:
		case v.err == nil && v.status == http.StatusServiceUnavailable && took >= lookUp:
			late++
		default:
			t.Errorf("a visit that met no pooler for %v, and took %v, was answered %d, %v", met, took, v.status, v.err)
		}
	}
	if n := saved(); late > n {
		t.Errorf("%d visits were not answered within a look-up's time; %d met a restart, and were", late, n)
	}
	t.Logf("%d visits of cold links, %d restarts, %d were answered although they met one, %d took too long", len(visits), len(away), saved(), late)
}

// enough are the look-ups that have to outlast a restart.
const enough = 20

// longest returns for how long of a visit one of several outages lasted.
func longest(away []outage, v poolerVisit) (met time.Duration) {
	for _, o := range away {
		met = max(met, o.meets(v))
	}
	return met
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
