package faults_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"curt.example/client"
	"curt/internal/testkit"
	"curt/test/internal/curttest"
)

// moderators decide about links and ban hosts as fast as they are answered.
type moderators struct {
	t     *testing.T
	links []client.Link

	mu   sync.Mutex
	said map[string]bool // reasons of what was acknowledged; guarded by mu
}

// work decides and bans until the server is gone.
func (m *moderators) work(api *client.Client, round, who int) {
	for n := 0; ; n++ {
		reason := fmt.Sprintf("round %d, moderator %d, %d", round, who, n)
		l := m.links[rand.N(len(m.links))]
		var err error
		if who == 0 { // bans and lifts in turn
			host := fmt.Sprintf("host-%d.example", rand.N(4))
			_, err = api.Moderation.Ban(m.t.Context(), client.NewBan{Entity: client.Entity{Kind: "host", Name: host}, Reason: reason})
			if page, e := api.Moderation.Bans(m.t.Context(), "", "", 100); err == nil && e == nil && len(page.Bans) > 1 {
				_ = api.Moderation.LiftBan(m.t.Context(), page.Bans[rand.N(len(page.Bans))].Sequence, reason+", lifted")
			}
		} else {
			_, err = api.Moderation.Decide(m.t.Context(), l.ShortCode, []string{"clean", "warn", "quarantined", "blocked", "legal"}[rand.N(5)], reason)
		}
		switch {
		case err == nil:
			m.mu.Lock()
			m.said[reason] = true
			m.mu.Unlock()
		case errors.Is(err, client.ErrNoAnswer):
			return
		default:
			m.t.Errorf("%s: %v", reason, err)
			return
		}
	}
}

// TestKillsAroundDecisions kills the server again and again while moderators decide and
// ban: every decision that was answered is on the journal, and after each start links,
// what visitors are answered and what the journal says agree.
func TestKillsAroundDecisions(t *testing.T) {
	testkit.Faults(t)
	data := t.TempDir()
	m := &moderators{t: t, said: map[string]bool{}}
	// A busy machine takes few decisions in each round: it gets more of them.
	for round := 0; round < rounds(20, 200) || len(m.said) < 100 && round < 400; round++ {
		s := curttest.Start(t, curttest.Options{Data: data})
		api, err := client.New("http://"+s.Addr, client.WithKey(curttest.Key))
		if err != nil {
			t.Fatal(err)
		}
		if round == 0 {
			m.make(api)
		}
		m.agree(s, api)
		creates := s.Create(t, 4, prefix(t, round))
		var all sync.WaitGroup
		for who := range 5 {
			all.Go(func() { m.work(api, round, who) })
		}
		someTime(20*time.Millisecond, 200*time.Millisecond)
		s.Kill()
		all.Wait()
		creates.Wait()
	}
	s := curttest.Start(t, curttest.Options{Data: data})
	api, err := client.New("http://"+s.Addr, client.WithKey(curttest.Key))
	if err != nil {
		t.Fatal(err)
	}
	said := m.agree(s, api)
	if len(m.said) < 100 {
		t.Errorf("only %d decisions: that proves little", len(m.said))
	}
	for reason := range m.said {
		if !said[reason] {
			t.Errorf("acknowledged, and not on the journal: %s", reason)
		}
	}
	s.Terminate(t)
	m.examine(data)
	t.Logf("%d decisions acknowledged, %d on the journal", len(m.said), len(said))
}

// make makes the links that are decided about.
func (m *moderators) make(api *client.Client) {
	for i := range 12 {
		l, err := api.Create(m.t.Context(), client.NewLink{LongURL: fmt.Sprintf("https://host-%d.example/%d", i%6, i)})
		if err != nil {
			m.t.Fatal(err)
		}
		m.links = append(m.links, l)
	}
}

// agree waits until the bans have been walked, and compares journal, links and answers.
// It returns the reasons on the journal.
func (m *moderators) agree(s *curttest.Server, api *client.Client) map[string]bool {
	m.t.Helper()
	banned := m.walked(api)
	decided, said := map[string]string{}, map[string]bool{}
	for cursor := ""; ; {
		page, err := api.Moderation.Journal(m.t.Context(), client.JournalQuery{Cursor: cursor, Limit: 100})
		if err != nil {
			m.t.Fatal(err)
		}
		for _, e := range page.Entries { // newest first
			said[e.Reason] = true
			if _, known := decided[e.LinkID]; e.Action == "decide" && !known {
				decided[e.LinkID] = e.Safety
			}
		}
		if cursor = page.NextCursor; cursor == "" {
			break
		}
	}
	grave := map[string]int{"": 0, "clean": 0, "warn": 1, "quarantined": 2, "blocked": 3, "legal": 4}
	c := s.MustDial(m.t)
	for _, l := range m.links {
		want := decided[l.ID]
		if host, _, _ := strings.Cut(strings.TrimPrefix(l.LongURL, "https://"), "/"); banned[host] && grave[want] < grave["blocked"] {
			want = "blocked"
		}
		if got := m.settled(api, l.ShortCode, func(safety string) bool { return grave[safety] == grave[want] }); grave[got] != grave[want] {
			m.t.Errorf("%s is %s, and the journal says %q", l.ShortCode, got, want)
		}
		a, err := c.Do("GET", "/"+l.ShortCode, nil, "")
		if status := []int{http.StatusFound, http.StatusForbidden, http.StatusForbidden, http.StatusForbidden, http.StatusUnavailableForLegalReasons}[grave[want]]; err != nil || a.Status != status {
			m.t.Errorf("%s, which is %q, is answered %d, %v", l.ShortCode, want, a.Status, err)
		}
	}
	return said
}

// settled returns the safety of a link once it is right, or after a while: nothing tells when
// a ban that was lifted has been walked.
func (m *moderators) settled(api *client.Client, code string, right func(string) bool) string {
	m.t.Helper()
	for end := time.Now().Add(3 * time.Minute); ; time.Sleep(5 * time.Millisecond) {
		got, err := api.Get(m.t.Context(), code)
		if err != nil {
			m.t.Fatal(err)
		}
		if right(got.Safety) || time.Now().After(end) {
			return got.Safety
		}
	}
}

// walked waits until no ban is walking any more, and returns the hosts that are banned.
func (m *moderators) walked(api *client.Client) map[string]bool {
	m.t.Helper()
	for end := time.Now().Add(3 * time.Minute); ; time.Sleep(5 * time.Millisecond) {
		page, err := api.Moderation.Bans(m.t.Context(), "", "", 100)
		if err != nil {
			m.t.Fatal(err)
		}
		hosts, walking := map[string]bool{}, false
		for _, b := range page.Bans {
			hosts[b.Name], walking = true, walking || b.Walk != nil
		}
		if !walking {
			return hosts
		}
		if time.Now().After(end) {
			m.t.Fatal("bans are still walking")
		}
	}
}

// examine lets doctor verify the journal of a folder without a server.
func (m *moderators) examine(data string) {
	cmd := exec.CommandContext(m.t.Context(), curttest.Binary(m.t), "doctor", "--data="+data, "--listen=127.0.0.1:0", "--admin-listen=")
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")} // nobody's settings
	text, _ := cmd.CombinedOutput()                 // its exit code is of other findings, too
	for _, want := range []string{"ok       decisions: hash chain of", "ok       decisions: all links match the journal"} {
		if !strings.Contains(string(text), want) {
			m.t.Errorf("doctor does not say %q:\n%s", want, text)
		}
	}
}
