package postgres_test

import (
	"bytes"
	"context"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"curt.example/client"
	"curt/internal/testkit"
	"curt/test/internal/curttest"
)

// said collects what a command prints, for who waits for it.
type said struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *said) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *said) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// mover is a curt move under way.
type mover struct {
	cmd       *exec.Cmd
	out, errs said
	ended     chan struct{}
}

func beginMove(t *testing.T, data, url string) *mover {
	t.Helper()
	return beginMover(t, "--data="+data, "--to="+url)
}

func beginMover(t *testing.T, args ...string) *mover {
	t.Helper()
	m := &mover{cmd: exec.CommandContext(context.WithoutCancel(t.Context()), curttest.Binary(t), append([]string{"move"}, args...)...), ended: make(chan struct{})}
	m.cmd.Env = slices.DeleteFunc(os.Environ(), func(kv string) bool { return strings.HasPrefix(kv, "CURT_") })
	m.cmd.Stdout, m.cmd.Stderr = &m.out, &m.errs
	if err := m.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { _ = m.cmd.Wait(); close(m.ended) }() // the code is in ProcessState
	t.Cleanup(func() {
		_ = m.cmd.Process.Kill() // it may have ended
		<-m.ended
		if t.Failed() {
			t.Logf("curt move said:\n%s\n%s", m.out.String(), m.errs.String())
		}
	})
	return m
}

// switched waits until the links are in the database; false = it ended before.
func (m *mover) switched(t *testing.T) bool {
	t.Helper()
	ok := false
	soon(t, "the switch", func() bool {
		if ok = strings.Contains(m.errs.String(), "serve now"); ok {
			return true
		}
		select {
		case <-m.ended:
			return true
		default:
			return false
		}
	})
	return ok
}

// wait returns the exit code.
func (m *mover) wait(t *testing.T) int {
	t.Helper()
	select {
	case <-m.ended:
	case <-time.After(10 * time.Minute):
		_ = m.cmd.Process.Signal(syscall.SIGQUIT) // it says where it is
		<-m.ended
		t.Fatal("curt move does not end")
	}
	return m.cmd.ProcessState.ExitCode()
}

// embedded starts a server on a folder of its own.
func embedded(t *testing.T, data string) node {
	t.Helper()
	n := node{Server: curttest.Start(t, curttest.Options{Data: data})}
	var err error
	if n.api, err = client.New("http://"+n.Addr, client.WithKey(curttest.Key)); err != nil {
		t.Fatal(err)
	}
	return n
}

// only503 fails for creates that were answered otherwise than by 201 or 503.
func only503(t *testing.T, c *curttest.Creators) {
	t.Helper()
	for status, body := range c.Others() {
		if status != http.StatusServiceUnavailable {
			t.Errorf("a create was answered %d: %s", status, body)
		}
	}
	for _, bad := range c.Bad() {
		t.Errorf("a create had no answer: %s", bad)
	}
}

// variety is what a folder has besides plain links.
type variety struct {
	alias, deleted, changed, limited, idempotent client.Link
	key                                          client.KeySecret
	share                                        client.Share
	job                                          client.Job
	journal                                      uint64
}

func makeVariety(t *testing.T, n node) (v variety) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	var err error
	create := func(l client.NewLink) client.Link {
		t.Helper()
		made, err := n.api.Create(t.Context(), l)
		must(err)
		return made
	}
	v.alias = create(client.NewLink{LongURL: "https://example.com/alias", CustomAlias: "own-name", Title: "ein \"Titel\" {,}", Tags: []string{"a", "b c", `"q"`}})
	v.deleted = create(client.NewLink{LongURL: "https://example.com/deleted"})
	must(n.api.Delete(t.Context(), v.deleted.ShortCode))
	v.changed = create(client.NewLink{LongURL: "https://example.com/before"})
	v.changed, err = n.api.Update(t.Context(), v.changed.ShortCode, map[string]any{"long_url": "https://example.com/after"})
	must(err)
	v.limited = create(client.NewLink{LongURL: "https://example.com/limited", MaxClicks: 5})
	v.idempotent, err = n.api.CreateOnce(t.Context(), "once", client.NewLink{LongURL: "https://example.com/once"})
	must(err)
	v.key, err = n.api.Keys.Create(t.Context(), client.NewKey{Name: "ein Schlüssel", WorkspaceID: "acme", Scopes: []string{"links:read", "links:write"}})
	must(err)
	v.share, err = n.api.Share(t.Context(), v.alias.ShortCode, time.Hour)
	must(err)
	_, err = n.api.Lists.Add(t.Context(), "refused_words", "qwertz", "a reason")
	must(err)
	_, err = n.api.Moderation.Decide(t.Context(), v.changed.ShortCode, "warn", "looks odd")
	must(err)
	_, err = n.api.Moderation.Ban(t.Context(), client.NewBan{Entity: client.Entity{Kind: "host", Name: "evil.example"}, Safety: "blocked", Reason: "phishing"})
	must(err)
	v.job, err = n.api.Jobs.CreateExport(t.Context(), "jsonl")
	must(err)
	soon(t, "the export ends", func() bool {
		v.job, err = n.api.Jobs.Get(t.Context(), v.job.ID)
		must(err)
		return v.job.Ended()
	})
	page, err := n.api.Moderation.Journal(t.Context(), client.JournalQuery{})
	must(err)
	v.journal = page.Entries[0].Sequence
	return v
}

// visit is answers for a visitor who counts as a human.
func (n node) visit(t *testing.T, path string) (status int) {
	t.Helper()
	c := n.MustDial(t)
	defer c.Close()
	a, err := c.Do("GET", path, []string{"User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"}, "")
	if err != nil {
		t.Fatal(err)
	}
	return a.Status
}

// check compares what a server of the fleet has with what was in the folder.
func (v *variety) check(t *testing.T, n node, clicksLeft int) {
	t.Helper()
	alias, err := n.api.Get(t.Context(), v.alias.ShortCode)
	if err != nil || alias.ID != v.alias.ID || alias.Title != v.alias.Title || !slices.Equal(alias.Tags, v.alias.Tags) || alias.Version != v.alias.Version {
		t.Errorf("the alias is %+v, %v; was %+v", alias, err, v.alias)
	}
	if status, _ := n.answers(t, "/"+v.deleted.ShortCode); status != http.StatusGone {
		t.Errorf("a deleted link is answered %d", status)
	}
	changed, err := n.api.Get(t.Context(), v.changed.ShortCode)
	if err != nil || changed.LongURL != "https://example.com/after" {
		t.Errorf("the changed link is %+v, %v", changed, err)
	}
	if safety, err := n.api.Moderation.Safety(t.Context(), v.changed.ShortCode); err != nil || safety.Safety != "warn" {
		t.Errorf("its safety is %+v, %v", safety, err)
	}
	for i := range clicksLeft + 1 {
		want := http.StatusFound
		if i == clicksLeft {
			want = http.StatusGone
		}
		if status := n.visit(t, "/"+v.limited.ShortCode); status != want {
			t.Errorf("click %d of those left: %d, want %d", i+1, status, want)
		}
	}
	again, err := n.api.CreateOnce(t.Context(), "once", client.NewLink{LongURL: "https://example.com/once"})
	if err != nil || again.ShortCode != v.idempotent.ShortCode {
		t.Errorf("the create with an idempotency key, again: %+v, %v", again, err)
	}
	of, err := client.New("http://"+n.Addr, client.WithKey(v.key.Secret))
	if err != nil {
		t.Fatal(err)
	}
	if self, err := of.Self(t.Context()); err != nil || self.WorkspaceID != "acme" {
		t.Errorf("the key is %+v, %v", self, err)
	}
	if bans, err := n.api.Moderation.Bans(t.Context(), "", "", 10); err != nil || len(bans.Bans) != 1 {
		t.Errorf("bans: %+v, %v", bans, err)
	}
	if text, err := n.api.Lists.Export(t.Context(), "refused_words"); err != nil || !strings.Contains(string(text), "qwertz") {
		t.Errorf("the list: %s, %v", text, err)
	}
	if page, err := n.api.Moderation.Journal(t.Context(), client.JournalQuery{}); err != nil || page.Entries[0].Sequence != v.journal {
		t.Errorf("the journal: %+v, %v", page, err)
	}
	if j, err := n.api.Jobs.Get(t.Context(), v.job.ID); err != nil || j.State != "done" {
		t.Errorf("the job: %+v, %v", j, err)
	}
}

// TestAFolderMovesWhileItsServerServes: creates, changes and clicks go on while all is copied. Every
// acknowledged link is in the database, the folder's server refuses writes from the switch on and
// redirects until it is ended, and each click counts once.
func TestAFolderMovesWhileItsServerServes(t *testing.T) {
	testkit.Faults(t)
	t.Parallel()
	data := t.TempDir()
	old := embedded(t, data)
	known := old.MustCreate(t, 40)
	v := makeVariety(t, old)
	for range 2 {
		if status := old.visit(t, "/"+v.limited.ShortCode); status != http.StatusFound {
			t.Fatalf("a limited link: %d", status)
		}
	}
	creators := old.Create(t, 2, "https://example.com/made")
	churn := old.Churn(t, 1, "https://example.com")
	clickers := old.Click(t, curttest.ClickPlan{Clients: 2, Links: known, Pace: time.Millisecond})
	creators.AwaitMade(t, 200)

	url := database(t)
	m := beginMove(t, data, url)
	if !m.switched(t) {
		t.Fatal("it ended before the switch")
	}
	fleet := begin(t, 1, url, "CURT_ANALYTICS="+url)[0]
	soon(t, "a create is refused", func() bool { return len(creators.Others()) > 0 })
	creators.Stop()
	churn.Stop()
	only503(t, creators)
	if len(creators.Made()) < 200 || len(churn.Deleted()) == 0 {
		t.Error("too little was created and deleted: this shows nothing")
	}
	for _, wrong := range append(fleet.Follow(t, creators.Made(), 4), fleet.AllGone(t, churn.Deleted(), 4)...) {
		t.Error(wrong)
	}
	v.check(t, fleet, 3)
	codes := map[string]bool{}
	for _, l := range fleet.AllLinks(t) {
		codes[l.Code] = true
	}
	for _, l := range fleet.MustCreate(t, 100) {
		if codes[l.Code] {
			t.Errorf("%s was generated twice", l.Code)
		}
	}
	clickers.Stop()
	for _, bad := range clickers.Bad() {
		t.Error(bad)
	}
	if code, _ := old.Terminate(t); code != 0 {
		t.Errorf("the folder's server ended with %d", code)
	}
	if code := m.wait(t); code != 0 || !strings.Contains(m.out.String(), "digest") {
		t.Errorf("curt move: %d, %s", code, m.out.String())
	}
	t.Log(m.out.String())
	counted := fleet.AwaitTotal(t, known, clickers.Answered(), 3*time.Minute)
	if counted != clickers.Answered() {
		t.Errorf("%d clicks were counted, want %d", counted, clickers.Answered())
	}
	checkFolder(t, data, url, known)
}

// checkFolder starts servers on a folder whose links were moved: one says in a line where they are,
// the other serves them.
func checkFolder(t *testing.T, data, url string, known []curttest.Link) {
	t.Helper()
	s, err := curttest.Launch(t, curttest.Options{Data: data})
	if err == nil || s.ExitCode() != 78 || strings.Count(s.Log(), "\n") != 1 || !strings.Contains(s.Log(), "were moved to postgres://") {
		t.Errorf("a server without CURT_LINKS: %v\n%s", err, s.Log())
	}
	if code := beginMove(t, data, url).wait(t); code != 78 {
		t.Errorf("another curt move: %d", code)
	}
	member := node{Server: curttest.Start(t, curttest.Options{Data: data, Env: []string{"CURT_LINKS=" + url, "CURT_ANALYTICS=" + url}})}
	for _, wrong := range member.Follow(t, known[:20], 2) {
		t.Error(wrong)
	}
	if _, err := os.Stat(filepath.Join(data, "moved-files", "curt.db")); err != nil {
		t.Error(err)
	}
}

// TestAFolderWithoutServerMoves: at once, and to an empty database only.
func TestAFolderWithoutServerMoves(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	old := embedded(t, data)
	known := old.MustCreate(t, 20)
	if code, _ := old.Terminate(t); code != 0 {
		t.Fatalf("ended with %d", code)
	}
	url := database(t)
	used := begin(t, 1, url)[0]
	used.MustCreate(t, 1)
	if m := beginMove(t, data, url); m.wait(t) == 0 || !strings.Contains(m.errs.String(), "has links or accounts already") {
		t.Errorf("a database that is used: %s", m.errs.String())
	}
	elsewhere := url
	url = database(t)
	if code, _ := used.Terminate(t); code != 0 {
		t.Fatalf("ended with %d", code)
	}
	used.refused(t, "accounts of other links", "CURT_LINKS="+url, "CURT_ACCOUNTS="+elsewhere) // it leaves a key of codes
	if m := beginMove(t, data, url); m.wait(t) != 0 {
		t.Errorf("curt move: %s", m.errs.String())
	}
	fleet := begin(t, 1, url)[0]
	for _, wrong := range fleet.Follow(t, known, 2) {
		t.Error(wrong)
	}
}

// TestADatabaseMovesBack: to a folder with the same links, accounts and totals, in which no code is
// issued again; only while no server uses the database. A reserved alias is in no folder.
func TestADatabaseMovesBack(t *testing.T) {
	t.Parallel()
	url := database(t)
	fleet := begin(t, 1, url, "CURT_ANALYTICS="+url)[0]
	known := fleet.MustCreate(t, 30)
	v := makeVariety(t, fleet)
	clickers := fleet.Click(t, curttest.ClickPlan{Clients: 2, Links: known})
	soon(t, "some clicks", func() bool { return fleet.Total(t, known) > 0 })
	clickers.Stop()
	holder, _ := member(t, fleet, "acme")
	if _, err := holder.Aliases.Reserve(t.Context(), "held", ""); err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(t.TempDir(), "new")
	back := func() *mover { return beginMover(t, "--data="+data, "--from="+url) }
	if m := back(); m.wait(t) == 0 || !strings.Contains(m.errs.String(), "end them first") {
		t.Errorf("while a server runs: %s", m.errs.String())
	}
	if code, _ := fleet.Terminate(t); code != 0 {
		t.Fatalf("ended with %d", code)
	}
	testkit.AwaitNoServer(t, url)
	if m := back(); m.wait(t) != 0 {
		t.Fatalf("curt move: %s", m.errs.String())
	}
	n := embedded(t, data)
	for _, wrong := range n.Server.Follow(t, known, 2) { // once: each visit is a click
		t.Error(wrong)
	}
	v.check(t, n, 5)
	if got, want := n.AwaitTotal(t, known, clickers.Answered()+int64(len(known)), 3*time.Minute), clickers.Answered()+int64(len(known)); got != want {
		t.Errorf("%d clicks were counted, want %d", got, want)
	}
	codes := map[string]bool{}
	for _, l := range n.AllLinks(t) {
		codes[l.Code] = true
	}
	for _, l := range n.MustCreate(t, 100) {
		if codes[l.Code] {
			t.Errorf("%s was issued again", l.Code)
		}
	}
	if _, err := n.api.Create(t.Context(), client.NewLink{LongURL: "https://example.com/", CustomAlias: "held"}); err != nil {
		t.Errorf("a create of an alias that was reserved: %v", err)
	}
	if m := back(); m.wait(t) == 0 || !strings.Contains(m.errs.String(), "not empty") {
		t.Errorf("to a folder that is used: %s", m.errs.String())
	}
}

// TestKilledMovesLoseNothing kills curt move at any moment, also while the folder's server is frozen
// for it, and begins again until it is done. The server writes in between, and every link that it
// acknowledged is in the database.
func TestKilledMovesLoseNothing(t *testing.T) {
	testkit.Faults(t)
	t.Parallel()
	for range 10 { // a move may be quicker than who is to kill it
		if killMoves(t) >= 3 || t.Failed() {
			return
		}
	}
	t.Error("no move was killed three times: this shows nothing")
}

// killMoves moves a folder, and returns how often it killed the move before that was done.
func killMoves(t *testing.T) (kills int) {
	data := t.TempDir()
	old := embedded(t, data)
	known := old.MustCreate(t, 100)
	v := makeVariety(t, old)
	creators := old.Create(t, 2, "https://example.com/made")
	clickers := old.Click(t, curttest.ClickPlan{Clients: 1, Links: known, Pace: time.Millisecond})
	creators.AwaitMade(t, 2000)
	url := database(t)
	frozen := func() int { return strings.Count(old.Log(), "frozen for curt move") }
	inFreeze := 0
	for after := time.Duration(0); ; after += 37 * time.Millisecond {
		m := beginMove(t, data, url)
		if kills%3 == 2 { // as soon as it is frozen
			at := frozen()
			soon(t, "the freeze", func() bool {
				select {
				case <-m.ended:
					return true
				default:
					return frozen() > at
				}
			})
		} else {
			time.Sleep(after) // the moment of the kill is what differs, nothing is awaited
		}
		_ = m.cmd.Process.Kill() // it may have ended
		<-m.ended
		if there, err := os.Stat(filepath.Join(data, "moved")); err == nil && there.Size() > 0 {
			break
		}
		kills++
		if kills%3 == 0 {
			inFreeze++
		}
		creators.AwaitMore(t, 1) // the server writes again
		if kills == 12 {
			m := beginMove(t, data, url)
			if !m.switched(t) {
				t.Fatal("it ended before the switch")
			}
			_ = m.cmd.Process.Kill() // after the switch
			<-m.ended
			break
		}
	}
	t.Logf("killed %d times, %d of them while the server was frozen", kills, inFreeze)
	creators.Stop()
	clickers.Stop()
	only503(t, creators)
	for _, bad := range clickers.Bad() {
		t.Error(bad)
	}
	m := beginMove(t, data, url)
	if !m.switched(t) {
		t.Fatal("it ended before the folder's server")
	}
	fleet := begin(t, 1, url, "CURT_ANALYTICS="+url)[0]
	if code, _ := old.Terminate(t); code != 0 {
		t.Errorf("the folder's server ended with %d", code)
	}
	if code := m.wait(t); code != 0 {
		t.Errorf("curt move: %d", code)
	}
	for _, wrong := range fleet.Follow(t, creators.Made(), 4) {
		t.Error(wrong)
	}
	v.check(t, fleet, 5)
	if counted := fleet.AwaitTotal(t, known, clickers.Answered(), 3*time.Minute); counted != clickers.Answered() {
		t.Errorf("%d clicks were counted, want %d", counted, clickers.Answered())
	}
	if got, want := len(fleet.AllLinks(t)), len(creators.Made())+len(known)+4; got != want {
		t.Errorf("%d links, want %d", got, want)
	}
	return kills
}
