package faults_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"curt.example/client"
	"curt/internal/testkit"
	"curt/test/internal/curttest"
)

// suspects are links that the policy quarantines, as fast as they are answered, and what a
// moderator decides about them.
type suspects struct {
	t *testing.T

	mu      sync.Mutex
	made    map[string]bool // codes that were acknowledged; guarded by mu
	decided map[string]bool // codes whose decision was acknowledged; guarded by mu
}

// make makes links until the server is gone.
func (q *suspects) make(api *client.Client, round, who int) {
	for n := 0; ; n++ {
		l, err := api.Create(q.t.Context(), client.NewLink{LongURL: fmt.Sprintf("https://paypal-login.example/%d/%d/%d", round, who, n)})
		switch {
		case err == nil && l.Safety == "quarantined":
			q.mu.Lock()
			q.made[l.ShortCode] = true
			q.mu.Unlock()
		case err == nil || !errors.Is(err, client.ErrNoAnswer):
			q.t.Errorf("a link is %q, %v", l.Safety, err)
			return
		default:
			return
		}
	}
}

// decide decides about what is in the queue until the server is gone, a few at a time.
func (q *suspects) decide(api *client.Client) {
	for {
		page, err := api.Moderation.Reviews(q.t.Context(), client.ReviewQuery{Limit: 3, Sort: "-opened_at"})
		var orders []client.Decision
		for _, r := range page.Reviews {
			orders = append(orders, client.Decision{Code: r.ShortCode, Safety: "blocked", Reason: "phishing"})
		}
		var done []client.Decided
		if err == nil && len(orders) > 0 {
			done, err = api.Moderation.DecideMany(q.t.Context(), orders)
		}
		if errors.Is(err, client.ErrNoAnswer) {
			return
		}
		for i, d := range done {
			if d.Status == 200 {
				q.mu.Lock()
				q.decided[orders[i].Code] = true
				q.mu.Unlock()
			} else if err == nil {
				err = fmt.Errorf("%s: %d", orders[i].Code, d.Status)
			}
		}
		if err != nil {
			q.t.Error(err)
			return
		}
	}
}

// queue counts the reviews of each link, and how many of them are open.
func (q *suspects) queue(api *client.Client) (all, open map[string]int) {
	q.t.Helper()
	all, open = map[string]int{}, map[string]int{}
	for _, state := range []string{"open", "closed"} {
		for cursor := ""; ; {
			page, err := api.Moderation.Reviews(q.t.Context(), client.ReviewQuery{State: state, Limit: 100, Sort: "-opened_at", Cursor: cursor})
			if err != nil {
				q.t.Fatal(err)
			}
			for _, r := range page.Reviews {
				all[r.ShortCode]++
				if state == "open" {
					open[r.ShortCode]++
				}
			}
			if cursor = page.NextCursor; cursor == "" {
				break
			}
		}
	}
	return all, open
}

// TestKillsAroundTheQueue kills the server again and again while links are made that the
// policy quarantines, and a moderator decides: what was answered 201 is under review once,
// and what was decided is not any more.
func TestKillsAroundTheQueue(t *testing.T) {
	testkit.Faults(t)
	data := t.TempDir()
	q := &suspects{t: t, made: map[string]bool{}, decided: map[string]bool{}}
	enough := func() bool { return len(q.made) >= 100 && len(q.decided) >= 20 } // once all have stopped
	for round := 0; round < rounds(8, 200) || !enough() && round < 400; round++ {
		s, api := q.serve(data)
		var all sync.WaitGroup
		for who := range 3 {
			all.Go(func() { q.make(api, round, who) })
		}
		all.Go(func() { q.decide(api) })
		someTime(20*time.Millisecond, 200*time.Millisecond)
		s.Kill()
		all.Wait()
	}
	if !enough() {
		t.Errorf("only %d links and %d decisions: that proves little", len(q.made), len(q.decided))
	}
	_, api := q.serve(data)
	for end := time.Now().Add(3 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		wrong := q.wrong(api)
		if wrong == "" {
			break
		}
		if time.Now().After(end) {
			t.Fatal(wrong)
		}
	}
	t.Logf("%d links under review, %d of them decided", len(q.made), len(q.decided))
}

func (q *suspects) serve(data string) (*curttest.Server, *client.Client) {
	q.t.Helper()
	s := curttest.Start(q.t, curttest.Options{Data: data})
	api, err := client.New("http://"+s.Addr, client.WithKey(curttest.Key))
	if err != nil {
		q.t.Fatal(err)
	}
	return s, api
}

// wrong says what the queue does not say yet, or says too often; "" = nothing.
func (q *suspects) wrong(api *client.Client) string {
	all, open := q.queue(api)
	for code, n := range all {
		if n != 1 {
			return fmt.Sprintf("%s was under review %d times", code, n)
		}
	}
	for code := range q.made {
		if all[code] == 0 {
			return code + " was never under review"
		}
	}
	for code := range q.decided {
		if open[code] > 0 {
			return code + " was decided, and is under review"
		}
	}
	return ""
}
