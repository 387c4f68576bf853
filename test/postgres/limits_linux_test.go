package postgres_test

import (
	"net/http"
	"strconv"
	"testing"
	"time"

	"curt/test/internal/curttest"
)

// create creates a link and returns the answer, which is 201 or a refusal.
func (n node) create(t *testing.T) curttest.Answer {
	t.Helper()
	c := n.MustDial(t)
	defer c.Close()
	_, a, err := c.Create("https://example.com/")
	if err != nil && a.Status == 0 {
		t.Fatal(err)
	}
	return a
}

// creates tries to create links one after the other, and returns how many were.
func (n node) creates(t *testing.T, tries int) (created int) {
	t.Helper()
	for range tries {
		if n.create(t).Status == http.StatusCreated {
			created++
		}
	}
	return created
}

// TestServersWithoutRedisShareLimits has a workspace spend a plan at two servers, and a creator be
// too fast at both together.
func TestServersWithoutRedisShareLimits(t *testing.T) {
	t.Parallel()
	t.Run("plan", sharePlan)
	t.Run("velocity", shareVelocity)
}

// sharePlan spends most of a plan at one server. What a server does not know of is spent twice until it does:
// each look costs a create, so that they are a second apart, and more and more: some minutes pass before they are too many.
func sharePlan(t *testing.T) {
	const plan, spent, slack = 50, 40, 2
	nodes := begin(t, 2, database(t), "CURT_LIMITS=default="+strconv.Itoa(plan)+"/d")
	if n := nodes[0].creates(t, spent); n != spent {
		t.Fatalf("%d of %d creates are answered 201", n, spent)
	}
	made := 0
	for left, pause := plan, time.Second; left > plan-spent-made; pause = pause * 9 / 5 {
		if made > 0 {
			time.Sleep(pause)
		}
		a := nodes[1].create(t)
		text, _ := a.Get("X-RateLimit-Remaining")
		var err error
		if left, err = strconv.Atoi(text); err != nil || a.Status != http.StatusCreated {
			t.Fatalf("create %d at the other server, which is told of %d at the first one: %d, %s left", made+1, spent, a.Status, text)
		}
		if made++; made == plan-spent {
			t.Fatalf("%d creates at the other server, and it knows nothing of %d at the first one: %d left", made, spent, left)
		}
	}
	if made += nodes[1].creates(t, 30); made > plan-spent || made < plan-spent-slack {
		t.Errorf("%d creates at the other server, want the %d that are left", made, plan-spent)
	}
	for more, pause := 0, time.Second; nodes[0].create(t).Status == http.StatusCreated; pause = pause * 23 / 20 {
		time.Sleep(pause)
		if more++; more == plan-spent/2 {
			t.Fatalf("%d more creates at the first server, want none", more)
		}
	}
	if n := nodes[0].creates(t, 5); n != 0 {
		t.Errorf("%d more creates at the first server, want none", n)
	}
}

// shareVelocity has two servers count the links of a creator, refused ones too. A server learns what others
// counted when it tells of its own.
func shareVelocity(t *testing.T) {
	const most, first, own = 50, 40, 2
	url := database(t)
	nodes := begin(t, 2, url, "CURT_LIMITS=default=off", "CURT_WEIGHTS=velocity=90")
	counted := func(links int64) {
		t.Helper()
		soon(t, strconv.FormatInt(links, 10)+" links are counted", func() bool {
			return scan(t, url, "SELECT coalesce(sum(links), 0) FROM creator_minutes") >= links
		})
	}
	if n := nodes[0].creates(t, first); n != first {
		t.Fatalf("%d of %d creates are answered 201", n, first)
	}
	counted(first)
	if n := nodes[1].creates(t, own); n != own {
		t.Fatalf("%d of %d creates are answered 201", n, own)
	}
	counted(first + own)
	// What a server was told is in its memory before it tells of the next.
	if n := nodes[1].creates(t, 1); n != 1 {
		t.Fatal("the third create is not answered 201")
	}
	counted(first + own + 1)
	const tries = 30
	if n := nodes[1].creates(t, tries); n < most-first-own-3 || n > most-first-own {
		t.Errorf("%d more creates at the other server, want the %d that are left", n, most-first-own-1)
	}
	for told := int64(first + own + 1 + tries); told < first+own+1+tries+2; told++ {
		counted(told)
		nodes[0].creates(t, 1)
	}
	counted(first + own + 1 + tries + 2)
	if n := nodes[0].creates(t, 5); n != 0 {
		t.Errorf("%d more creates at the first server, want none", n)
	}
}
