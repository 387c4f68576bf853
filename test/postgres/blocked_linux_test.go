package postgres_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"curt.example/client"
	"curt/test/internal/curttest"
)

// TestARefusedCreateIsAllowedEverywhere: a create whose score is too high names its case, its creator
// appeals, a moderator at another server allows the destination, and the create works at every server:
// also at one that was killed and knows the decision from the journal alone.
func TestARefusedCreateIsAllowedEverywhere(t *testing.T) {
	t.Parallel()
	const url = "https://paypa1.com/login"
	const thresholds = "CURT_THRESHOLDS=quarantine=60,block=80"
	database := database(t)
	nodes := begin(t, 3, database, thresholds)
	key, err := nodes[0].api.Keys.Create(t.Context(), client.NewKey{Name: "k", WorkspaceID: "acme", Scopes: []string{"links:write", "links:read"}})
	if err != nil {
		t.Fatal(err)
	}
	owner := func(n node) *client.Client {
		c, err := client.New("http://"+n.Addr, client.WithKey(key.Secret))
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	refused := func(n node) *client.Problem {
		t.Helper()
		_, err := owner(n).Create(t.Context(), client.NewLink{LongURL: url})
		problem, ok := errors.AsType[*client.Problem](err)
		if !ok || problem.Status != http.StatusUnprocessableEntity || problem.Type != "/problems/destination-harmful" || problem.Case == "" ||
			!strings.HasSuffix(problem.AppealURL, "/appeal?case="+problem.Case) {
			t.Fatalf("a harmful create: %+v, %v", problem, err)
		}
		return problem
	}
	id := refused(nodes[0]).Case
	if other := refused(nodes[1]).Case; other != id {
		t.Errorf("another server names case %s, want %s", other, id)
	}
	appeal, err := owner(nodes[0]).Moderation.Appeal(t.Context(), client.NewAppeal{Case: id, Reason: "we own it"})
	if err != nil {
		t.Fatal(err)
	}
	nodes[0].Kill()

	queue, err := nodes[1].api.Moderation.Reviews(t.Context(), client.ReviewQuery{Source: "blocked"})
	if err != nil || len(queue.Reviews) != 1 || queue.Reviews[0].Case != id {
		t.Fatalf("the queue is %+v, %v", queue, err)
	}
	if f, err := nodes[1].api.Moderation.Case(t.Context(), id); err != nil || f.LongURL != url || f.Refused != 2 || f.Appeal == nil || f.Appeal.Reason != "we own it" || len(f.Findings) == 0 {
		t.Fatalf("the case is %+v, %v", f, err)
	}
	if _, err := owner(nodes[1]).Moderation.Case(t.Context(), id); err == nil {
		t.Error("its creator may read what moderators know")
	}
	if _, err := nodes[1].api.Moderation.DecideCase(t.Context(), id, client.CaseDecision{Safety: "clean", Reason: "they do", Reply: true}); err != nil {
		t.Fatal(err)
	}
	created := func(n node) bool {
		l, err := owner(n).Create(t.Context(), client.NewLink{LongURL: url})
		if err != nil {
			return false
		}
		status, to := n.answers(t, "/"+l.ShortCode)
		return l.Safety == "clean" && status == http.StatusFound && to == url
	}
	if !created(nodes[1]) {
		t.Error("the server that decided refuses the create")
	}
	t.Logf("allowed at another server after %s", soon(t, "the create works at a second server", func() bool { return created(nodes[2]) }))
	again := node{Server: curttest.Start(t, curttest.Options{Data: nodes[0].Data, Env: []string{"CURT_LINKS=" + database, thresholds}})}
	if !created(again) {
		t.Error("the server that was killed refuses the create")
	}
	if a, err := owner(again).Moderation.GetAppeal(t.Context(), appeal.Token); err != nil || a.State != "answered" || a.Safety != "clean" || a.Answer != "they do" {
		t.Errorf("the appeal is %+v, %v", a, err)
	}

	if _, err := nodes[1].api.Moderation.DecideCase(t.Context(), id, client.CaseDecision{Safety: "blocked", Reason: "they do not"}); err != nil {
		t.Fatal(err)
	}
	soon(t, "the create is refused at a second server", func() bool { return !created(nodes[2]) })
	if same := refused(nodes[2]).Case; same != id {
		t.Errorf("refused with case %s, want %s", same, id)
	}
	if queue, err := nodes[2].api.Moderation.Reviews(t.Context(), client.ReviewQuery{Source: "blocked"}); err != nil || len(queue.Reviews) != 0 {
		t.Errorf("a refusal that a moderator made is in the queue: %+v, %v", queue, err)
	}
}
