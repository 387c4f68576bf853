package postgres_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"curt.example/client"
	"curt/internal/testkit"
	"curt/test/internal/curttest"
)

// writePause leaves a move the time to catch up: DynamoDB Local takes fewer writes than a data folder.
const writePause = 50 * time.Millisecond

// aws is what the SDK needs for DynamoDB Local.
func aws() []string {
	return []string{"AWS_ACCESS_KEY_ID=local", "AWS_SECRET_ACCESS_KEY=local", "AWS_EC2_METADATA_DISABLED=true"}
}

// curt runs a command with settings and returns what it printed.
func curt(t *testing.T, env []string, args ...string) (said string, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, curttest.Binary(t), args...)
	c.Cancel = func() error { return c.Process.Signal(syscall.SIGQUIT) } // it says where it is
	c.Env = slices.Concat(slices.DeleteFunc(os.Environ(), func(kv string) bool { return strings.HasPrefix(kv, "CURT_") }), aws(), env)
	out, _ := c.CombinedOutput() // the code says it
	return string(out), c.ProcessState.ExitCode()
}

// freshTables returns the URL of tables of DynamoDB of their own.
func freshTables(t *testing.T) (url string) {
	t.Helper()
	url = testkit.StartDynamoDB(t, false).URL("curt")
	// No accounts are needed for tables, as for a server with this role.
	env := []string{"CURT_LINKS=" + url, "CURT_ROLE=redirect", "CURT_ANALYTICS=postgres://127.0.0.1:1/none"}
	if said, code := curt(t, env, "migrate"); code != 0 {
		t.Fatalf("migrate: code %d, %s", code, said)
	}
	return url
}

// overTables starts servers over tables, with accounts and statistics in a database.
func overTables(t *testing.T, n int, url, accounts string, env ...string) []node {
	t.Helper()
	return begin(t, n, url, slices.Concat(aws(), []string{"CURT_ACCOUNTS=" + accounts, "CURT_ANALYTICS=" + accounts}, env)...)
}

// newCodes fails for codes that are issued a second time.
func (n node) newCodes(t *testing.T) {
	t.Helper()
	codes := map[string]bool{}
	for _, l := range n.AllLinks(t) {
		codes[l.Code] = true
	}
	for _, l := range n.MustCreate(t, 100) {
		if codes[l.Code] {
			t.Errorf("%s was generated twice", l.Code)
		}
	}
}

// TestAFolderMovesToDynamoDB: as to PostgreSQL, with accounts and statistics there: every acknowledged
// link is in the table, no code is issued twice, and each click counts once. Kills in between lose nothing.
func TestAFolderMovesToDynamoDB(t *testing.T) {
	testkit.Faults(t)
	data := t.TempDir()
	old := embedded(t, data)
	known := old.MustCreate(t, 40)
	v := makeVariety(t, old)
	for range 2 {
		if status := old.visit(t, "/"+v.limited.ShortCode); status != http.StatusFound {
			t.Fatalf("a limited link: %d", status)
		}
	}
	creators := old.CreateEvery(t, 2, "https://example.com/made", writePause)
	churn := old.ChurnEvery(t, 1, "https://example.com", writePause)
	clickers := old.Click(t, curttest.ClickPlan{Clients: 2, Links: known, Pace: time.Millisecond})
	creators.AwaitMade(t, 200)
	url, accounts := freshTables(t), database(t)
	args := []string{"--data=" + data, "--to=" + url, "--accounts=" + accounts}
	for after := 200 * time.Millisecond; after < 1500*time.Millisecond; after += 200 * time.Millisecond {
		m := beginMover(t, args...)
		time.Sleep(after) // the moment of the kill is what differs, nothing is awaited
		_ = m.cmd.Process.Kill()
		<-m.ended
		if there, err := os.Stat(filepath.Join(data, "moved")); err == nil && there.Size() > 0 {
			break
		}
		creators.AwaitMore(t, 1) // the server writes again
	}
	m := beginMover(t, args...)
	if !m.switched(t) {
		t.Fatal("it ended before the switch")
	}
	fleet := overTables(t, 1, url, accounts)[0]
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
	fleet.newCodes(t)
	clickers.Stop()
	for _, bad := range clickers.Bad() {
		t.Error(bad)
	}
	if code, _ := old.Terminate(t); code != 0 {
		t.Errorf("the folder's server ended with %d", code)
	}
	if code := m.wait(t); code != 0 || !strings.Contains(m.out.String(), "counted from the click log") {
		t.Errorf("curt move: %d, %s", code, m.out.String())
	}
	t.Log(m.out.String())
	if counted := fleet.AwaitTotal(t, known, clickers.Answered(), 3*time.Minute); counted != clickers.Answered() {
		t.Errorf("%d clicks were counted, want %d", counted, clickers.Answered())
	}
	if m := beginMover(t, "--data="+t.TempDir(), "--to="+url, "--accounts="+database(t)); m.wait(t) == 0 {
		t.Error("a move of nothing, to tables that are used")
	}
}

// relay is two servers whose links are moved, with clients at work.
type relay struct {
	old      []node
	known    []curttest.Link
	v        variety
	creators []*curttest.Creators
	churn    *curttest.Churn
	clickers *curttest.Clickers
}

func startRelay(t *testing.T, old []node) *relay {
	t.Helper()
	r := &relay{old: old, known: old[0].MustCreate(t, 40)}
	r.v = makeVariety(t, old[0])
	for range 2 {
		if status := old[0].visit(t, "/"+r.v.limited.ShortCode); status != http.StatusFound {
			t.Fatalf("a limited link: %d", status)
		}
	}
	for i, n := range old {
		r.creators = append(r.creators, n.CreateEvery(t, 1, fmt.Sprintf("https://example.com/made/%d", i), writePause))
	}
	r.churn = old[0].ChurnEvery(t, 1, "https://example.com", writePause)
	r.clickers = old[0].Click(t, curttest.ClickPlan{Clients: 2, Links: r.known, Pace: time.Millisecond})
	for _, c := range r.creators {
		c.AwaitMade(t, 100)
	}
	return r
}

// move kills curt move at several moments, and then lets it end.
func (r *relay) move(t *testing.T, args ...string) {
	t.Helper()
	kills := 0
	for after := 150 * time.Millisecond; after < 1200*time.Millisecond; after += 250 * time.Millisecond {
		m := beginMover(t, args...)
		time.Sleep(after) // the moment of the kill is what differs, nothing is awaited
		_ = m.cmd.Process.Kill()
		<-m.ended
		if m.cmd.ProcessState.ExitCode() < 0 {
			kills++
		}
	}
	if kills == 0 {
		t.Error("every move ended before it was killed: this shows nothing")
	}
	t.Logf("killed %d times", kills)
	m := beginMover(t, args...)
	if code := m.wait(t); code != 0 {
		t.Fatalf("curt move: %d, %s %s", code, m.out.String(), m.errs.String())
	}
	t.Log(m.out.String())
}

// check holds what the other store's servers have against what clients were told, and that the old ones
// refuse writes and redirect on.
func (r *relay) check(t *testing.T, fleet node) {
	t.Helper()
	for _, c := range r.creators {
		soon(t, "a create is refused", func() bool { return len(c.Others()) > 0 })
		c.Stop()
		only503(t, c)
	}
	r.churn.Stop()
	if len(r.churn.Deleted()) == 0 {
		t.Error("nothing was deleted: this shows nothing")
	}
	made := slices.Clone(r.known)
	for _, c := range r.creators {
		made = append(made, c.Made()...)
	}
	for _, wrong := range append(fleet.Follow(t, made, 4), fleet.AllGone(t, r.churn.Deleted(), 4)...) {
		t.Error(wrong)
	}
	r.v.check(t, fleet, 3)
	fleet.newCodes(t)
	r.clickers.Stop()
	for _, bad := range r.clickers.Bad() {
		t.Error(bad)
	}
	for _, n := range r.old {
		if code, _ := n.Terminate(t); code != 0 {
			t.Errorf("a server ended with %d", code)
		}
	}
}

// TestLinksMoveFromPostgresToDynamoDB: while two servers serve, with the accounts left where they are. A
// server that is started again on the database says where its links are, and a freeze whose mover died
// does not hold writers.
func TestLinksMoveFromPostgresToDynamoDB(t *testing.T) {
	testkit.Faults(t)
	url := database(t)
	r := startRelay(t, begin(t, 2, url, "CURT_ANALYTICS="+url))
	tables := freshTables(t)
	r.move(t, "--from="+url, "--to="+tables)
	fleet := overTables(t, 1, tables, url)[0]
	r.check(t, fleet)
	r.old[0].refused(t, "were moved", "CURT_LINKS="+url)
	if code := beginMover(t, "--from="+url, "--to="+tables).wait(t); code != 0 {
		t.Errorf("curt move once more: %d", code)
	}
}

// TestLinksMoveFromDynamoDBToPostgres: as the other way. A server that stands still keeps the links from
// being moved, because nobody knows what it does next; so does one that was killed, until an operator says so.
func TestLinksMoveFromDynamoDBToPostgres(t *testing.T) {
	testkit.Faults(t)
	tables, accounts := freshTables(t), database(t)
	r := startRelay(t, overTables(t, 2, tables, accounts))
	url := database(t)
	dead := overTables(t, 1, tables, accounts)[0]
	name, err := os.ReadFile(filepath.Join(dead.Data, "instance"))
	if err != nil {
		t.Fatal(err)
	}
	dead.Kill()
	silent := beginMover(t, "--from="+tables, "--to="+url)
	if code := silent.wait(t); code == 0 || !strings.Contains(silent.errs.String(), strings.TrimSpace(string(name))) {
		t.Errorf("with a server that died: %d, %s", code, silent.errs.String())
	}
	for _, c := range r.creators {
		c.AwaitMore(t, 1) // they write again
	}
	r.move(t, "--from="+tables, "--to="+url, "--without="+strings.TrimSpace(string(name)))
	fleet := begin(t, 1, url, "CURT_ACCOUNTS="+accounts, "CURT_ANALYTICS="+accounts)[0]
	r.check(t, fleet)
	r.old[0].refused(t, "were moved", append(aws(), "CURT_LINKS="+tables, "CURT_ACCOUNTS="+accounts)...)
}

// TestTablesMoveBackToAFolder: with their accounts, while no server uses them. One that was killed keeps them from being
// moved until an operator says that it is gone. A reserved alias stays behind.
func TestTablesMoveBackToAFolder(t *testing.T) {
	testkit.Faults(t)
	tables, accounts := freshTables(t), database(t)
	old := overTables(t, 1, tables, accounts)[0]
	known := old.MustCreate(t, 30)
	v := makeVariety(t, old)
	if _, err := old.api.Aliases.Reserve(t.Context(), "held", ""); err != nil {
		t.Fatal(err)
	}
	dead := overTables(t, 1, tables, accounts)[0]
	name, err := os.ReadFile(filepath.Join(dead.Data, "instance"))
	if err != nil {
		t.Fatal(err)
	}
	gone := strings.TrimSpace(string(name))
	known = append(known, dead.MustCreate(t, 10)...)
	dead.Kill()
	data := filepath.Join(t.TempDir(), "new")
	back := func(without ...string) *mover {
		return beginMover(t, append([]string{"--data=" + data, "--from=" + tables, "--accounts=" + accounts}, without...)...)
	}
	if m := back("--without=" + gone); m.wait(t) == 0 || !strings.Contains(m.errs.String(), "end them first") || strings.Contains(m.errs.String(), gone) {
		t.Errorf("while a server runs: %s", m.errs.String())
	}
	if code, _ := old.Terminate(t); code != 0 {
		t.Fatalf("ended with %d", code)
	}
	for _, without := range [][]string{nil, {"--without=another"}} {
		if m := back(without...); m.wait(t) == 0 || !strings.Contains(m.errs.String(), gone) || strings.Count(m.errs.String(), "\n") != 1 {
			t.Errorf("with a server that was killed, %v: %s", without, m.errs.String())
		}
	}
	if _, err := os.Stat(data); err == nil {
		t.Error("there is a folder although nothing was moved")
	}
	if m := back("--without=" + gone); m.wait(t) != 0 {
		t.Fatalf("curt move: %s", m.errs.String())
	}
	old.refused(t, "were moved", append(aws(), "CURT_LINKS="+tables, "CURT_ACCOUNTS="+accounts)...)
	n := embedded(t, data)
	if got, _ := n.answers(t, "/held"); got != http.StatusNotFound {
		t.Errorf("a visitor of a reserved alias is answered %d", got)
	}
	if _, err := n.api.Create(t.Context(), client.NewLink{LongURL: "https://example.com/", CustomAlias: "held"}); err != nil {
		t.Errorf("a create of an alias that was reserved: %v", err)
	}
	for _, wrong := range n.Follow(t, known, 2) {
		t.Error(wrong)
	}
	v.check(t, n, 5)
	n.newCodes(t)
}

// rows are the lines of an export, in one order for all stores.
func rows(t *testing.T, args ...string) (all []string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "links.jsonl")
	if said, code := curt(t, nil, append([]string{"export", "-o", file}, args...)...); code != 0 {
		t.Fatalf("export %v: code %d, %s", args, code, said)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return slices.Sorted(strings.Lines(string(text)))
}

// TestExportsGoIntoEveryStore: what a table had, with ids, versions, times, counters and tombstones, is the
// same in a folder, a database and another table, and so are its decisions; a repeated import changes nothing.
func TestExportsGoIntoEveryStore(t *testing.T) {
	testkit.Faults(t)
	tables, accounts := freshTables(t), database(t)
	old := overTables(t, 1, tables, accounts)[0]
	known := old.MustCreate(t, 50)
	v := makeVariety(t, old)
	for range 2 {
		if status := old.visit(t, "/"+v.limited.ShortCode); status != http.StatusFound {
			t.Fatalf("a limited link: %d", status)
		}
	}
	want := rows(t, "--from="+tables)
	if len(want) < len(known)+5 || !strings.Contains(strings.Join(want, ""), `"clicks_spent":2`) || !strings.Contains(strings.Join(want, ""), `"status":"deleted"`) {
		t.Fatalf("%d rows are exported: %s", len(want), want)
	}
	file := filepath.Join(t.TempDir(), "links.jsonl")
	if err := os.WriteFile(file, []byte(strings.Join(want, "")), 0o600); err != nil {
		t.Fatal(err)
	}
	folder, db, others, theirs := t.TempDir(), database(t), freshTables(t), database(t)
	for name, store := range map[string]struct{ into, from []string }{
		"folder":     {[]string{"--data=" + folder}, []string{"--data=" + folder}},
		"PostgreSQL": {[]string{"--to=" + db}, []string{"--from=" + db}},
		"DynamoDB":   {[]string{"--to=" + others, "--accounts=" + theirs}, []string{"--from=" + others}},
	} {
		for n := range 2 {
			results := filepath.Join(t.TempDir(), "results.jsonl")
			if said, code := curt(t, nil, slices.Concat([]string{"import", file, "--results=" + results}, store.into)...); code != 0 {
				t.Errorf("import %d into %s: code %d, %s", n, name, code, said)
			}
			if diff := cmp.Diff(want, rows(t, store.from...)); diff != "" {
				t.Errorf("%s after import %d (-the table +it):\n%s", name, n, diff)
			}
		}
	}
	for name, n := range map[string]node{
		"folder": embedded(t, folder), "PostgreSQL": begin(t, 1, db)[0], "DynamoDB": overTables(t, 1, others, theirs)[0],
	} {
		if safety, err := n.api.Moderation.Safety(t.Context(), v.changed.ShortCode); err != nil || safety.Safety != "warn" {
			t.Errorf("%s: the safety is %+v, %v", name, safety, err)
		}
		for _, wrong := range n.Follow(t, known, 2) {
			t.Error(wrong)
		}
	}
}

// TestAnExportOfATableResumes: one that was killed goes on behind the page that it had, and the file is what one
// that was not killed has.
func TestAnExportOfATableResumes(t *testing.T) {
	testkit.Faults(t)
	data, tables := t.TempDir(), freshTables(t)
	old := embedded(t, data)
	for range 12 { // more than two pages
		all := make([]client.NewLink, 1000)
		for i := range all {
			all[i] = client.NewLink{LongURL: "https://example.com/a"}
		}
		if _, err := old.api.CreateMany(t.Context(), all); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(t.TempDir(), "links.jsonl")
	for _, args := range [][]string{{"export", "--data=" + data, "-o", file}, {"import", file, "--to=" + tables, "--accounts=" + database(t)}} {
		if said, code := curt(t, nil, args...); code != 0 {
			t.Fatalf("%v: code %d, %s", args, code, said)
		}
	}
	want := rows(t, "--from="+tables)
	if len(want) < 12_000 {
		t.Fatalf("%d rows are exported", len(want))
	}
	for range 5 {
		folder := t.TempDir()
		out := filepath.Join(folder, "out.jsonl")
		c := exec.CommandContext(t.Context(), curttest.Binary(t), "export", "--from="+tables, "-o", out)
		c.Env = slices.Concat(slices.DeleteFunc(os.Environ(), func(kv string) bool { return strings.HasPrefix(kv, "CURT_") }), aws())
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- c.Wait() }()
		killed := false
		for !killed {
			if _, err := os.Stat(out + ".cursor"); err == nil { // the rows of a page are stored, and how far they go
				_ = c.Process.Kill()
				killed = true
			}
			select {
			case err := <-ended:
				ended <- err
				killed = true
			case <-time.After(time.Millisecond):
			}
		}
		if err := <-ended; err == nil {
			continue // it was done before
		}
		if text, err := os.ReadFile(out); err == nil {
			if !slices.Equal(want, slices.Sorted(strings.Lines(string(text)))) {
				t.Fatal("a killed export has its name, and is not whole")
			}
			continue // it was done, and had not ended
		}
		if said, code := curt(t, nil, "export", "--from="+tables, "-o", out, "--resume"); code != 0 {
			t.Fatalf("--resume: code %d, %s", code, said)
		}
		text, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, slices.Sorted(strings.Lines(string(text)))); diff != "" {
			t.Errorf("resumed (-whole +resumed):\n%.2000s", diff)
		}
		return
	}
	t.Error("no export could be killed in between")
}
