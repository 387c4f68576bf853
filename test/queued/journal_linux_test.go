package queued_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"curt/internal/testkit"
	"curt/test/internal/curttest"
)

// promised is a link that was answered 202, and who asked for it when.
type promised struct {
	id, code    string
	by          author
	safety      string
	since, till time.Time
}

// entry is one of the journal.
type entry struct {
	Sequence uint64    `json:"sequence"`
	At       time.Time `json:"at"`
	Entity   struct{ Kind, Name string }
	LinkID   string `json:"link_id"`
	Action   string `json:"action"`
	Safety   string `json:"safety"`
	Actor    string `json:"actor"`
	Hash     string `json:"hash"`
}

// journal reads all of it, the newest entry first.
func journal(t *testing.T, s *curttest.Server) (all []entry) {
	t.Helper()
	for path := "/api/v1/journal?limit=100"; path != ""; {
		var page struct {
			Entries []entry `json:"entries"`
			Next    string  `json:"next_cursor"`
		}
		a := call(t, s, "GET", path, "")
		if err := json.Unmarshal(a.Body, &page); err != nil || a.Status != 200 {
			t.Fatalf("the journal: %d %q: %v", a.Status, a.Body, err)
		}
		all, path = append(all, page.Entries...), ""
		if page.Next != "" {
			path = "/api/v1/journal?limit=100&cursor=" + url.QueryEscape(page.Next)
		}
	}
	return all
}

// promise creates links, each with an idempotency key and twice. The policy quarantines every third.
func promise(t *testing.T, s *curttest.Server, by author, n int) (all []promised) {
	t.Helper()
	for i := range n {
		p := promised{by: by, safety: "clean", since: time.Now().Truncate(time.Millisecond)}
		destination := fmt.Sprintf("https://example.com/%s/%d", by.Workspace, i)
		if i%3 == 0 {
			p.safety, destination = "quarantined", fmt.Sprintf("https://paypa1.com/login/%s/%d", by.Workspace, i)
		}
		for range 2 {
			a := accepted(t, s, by.Secret, "/api/v1/links", `{"long_url":"`+destination+`"}`, fmt.Sprintf("Idempotency-Key: %d", i))
			if a.Status != 202 || p.id != "" && p.id != a.Link.ID {
				t.Fatalf("create: %d %q", a.Status, a.Body)
			}
			p.id, p.code = a.Link.ID, a.Link.Code
		}
		p.till = time.Now()
		all = append(all, p)
	}
	return all
}

// promiseMany creates links in one request, which is sent twice.
func promiseMany(t *testing.T, s *curttest.Server, by author) (all []promised) {
	t.Helper()
	var body struct {
		Links []map[string]string `json:"links"`
	}
	for i := range 9 {
		destination := fmt.Sprintf("https://example.com/%s/bulk/%d", by.Workspace, i)
		all = append(all, promised{by: by, safety: "clean", since: time.Now().Truncate(time.Millisecond)})
		if i%3 == 0 {
			all[i].safety, destination = "quarantined", fmt.Sprintf("https://paypa1.com/bulk/%s/%d", by.Workspace, i)
		}
		body.Links = append(body.Links, map[string]string{"long_url": destination})
	}
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		var made struct {
			Results []struct {
				Status int
				Link   struct {
					ID   string `json:"id"`
					Code string `json:"short_code"`
				}
			}
		}
		a := accepted(t, s, by.Secret, "/api/v1/links/bulk", string(text), "Idempotency-Key: bulk")
		if err := json.Unmarshal(a.Body, &made); err != nil || len(made.Results) != len(all) {
			t.Fatalf("bulk: %d %q: %v", a.Status, a.Body, err)
		}
		for i, r := range made.Results {
			if r.Status != 202 || all[i].id != "" && all[i].id != r.Link.ID {
				t.Fatalf("bulk: row %d: %+v", i, r)
			}
			all[i].id, all[i].code, all[i].till = r.Link.ID, r.Link.Code, time.Now()
		}
	}
	return all
}

// sendAgain has Kafka deliver twice what was queued.
func (p *plant) sendAgain(t *testing.T) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(p.kafka.Brokers[0].Address), kgo.DefaultProduceTopic("writes"), kgo.ConsumeTopics("writes"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ends, err := kadm.NewClient(client).ListEndOffsets(t.Context(), "writes")
	if err != nil {
		t.Fatal(err)
	}
	left := int64(0)
	ends.Each(func(o kadm.ListedOffset) { left += o.Offset })
	for left > 0 {
		fetched := client.PollFetches(t.Context())
		if err := fetched.Err(); err != nil {
			t.Fatal(err)
		}
		for _, r := range fetched.Records() {
			if left--; left < 0 {
				break
			}
			if err := client.ProduceSync(t.Context(), &kgo.Record{Key: r.Key, Value: r.Value, Headers: r.Headers}).FirstErr(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestTheJournalOfQueuedLinks: a link that was judged has its decision in the journal from its 202 on, once, and those whom nothing was found about
// have none. The writer adds nothing, however often it writes a link and whenever it is killed; nor do dead letters. Links are those of the
// caller: a ban of a key that was made while they waited holds for them, and for no others.
func TestTheJournalOfQueuedLinks(t *testing.T) {
	testkit.Faults(t)
	t.Parallel()
	p := build(t, 1, database(t), "CURT_WRITES_RATE=20", "CURT_THRESHOLDS=quarantine=60,block=100")
	api := p.start(t, "redirect,api", t.TempDir())
	one, two, banned := newAuthor(t, api, "one"), newAuthor(t, api, "two"), newAuthor(t, api, "banned")
	links := slices.Concat(promise(t, api, one, 30), promise(t, api, two, 30), promiseMany(t, api, two), promise(t, api, banned, 6))
	before := journal(t, api)
	compareJournal(t, before, links)

	if a := call(t, api, "POST", "/api/v1/bans", `{"kind":"key","name":"`+banned.ID+`","safety":"blocked","reason":"spam"}`); a.Status != 201 {
		t.Fatalf("a ban: %d %q", a.Status, a.Body)
	}
	p.sendAgain(t)
	p.poison(t, map[string]string{"/unread1": "no JSON", "/invalid1": `{"v":1,"link":{"id":[1,158,131,14,26,0,112,1,144,192,107,146,13,115,90,3],"code":"invalid1","domain":""}}`})
	data := t.TempDir()
	for i := range 4 {
		writer := p.start(t, "writer", data)
		soon(t, "the writer writes", func() bool { // or has written all, while this test had to wait
			return metric(t, writer, "curt_writer_links_total") > float64(5*i) || metric(t, writer, "curt_writer_partitions") == 4 && metric(t, api, "curt_pending_links") == 0
		})
		writer.Kill()
	}
	writer := p.start(t, "writer", data)
	soon(t, "all is written", func() bool {
		return metric(t, writer, "curt_writer_partitions") == 4 && metric(t, writer, "curt_writer_lag_links") == 0 && metric(t, api, "curt_pending_links") == 0
	})
	after := journal(t, api)
	if after[0].Action != "ban" || after[0].Entity.Name != banned.ID || after[0].Actor != "admin" {
		t.Errorf("the newest entry is %+v", after[0])
	}
	if diff := cmp.Diff(before, after[1:]); diff != "" {
		t.Errorf("the journal before and after the links were written (-before +after):\n%s", diff)
	}
	cases := 0.0
	for _, l := range links {
		if l.safety != "clean" {
			cases++
		}
		if l.by == banned {
			l.safety = "blocked"
		}
		compareLink(t, api, l)
	}
	soon(t, "each link that was judged comes before a moderator", func() bool { return metric(t, api, "curt_reviews_open") == cases })
}

// compareJournal looks for the decisions about links, and for nothing else.
func compareJournal(t *testing.T, entries []entry, links []promised) {
	t.Helper()
	of := map[string][]entry{}
	for _, e := range entries {
		of[e.LinkID] = append(of[e.LinkID], e)
	}
	for _, l := range links {
		found := of[l.id]
		delete(of, l.id)
		if l.safety == "clean" {
			if len(found) > 0 {
				t.Errorf("%s is clean and has the entries %+v", l.code, found)
			}
			continue
		}
		if len(found) != 1 {
			t.Errorf("%s has %d entries: %+v", l.code, len(found), found)
			continue
		}
		e := found[0]
		if e.Action != "decide" || e.Safety != l.safety || e.Actor != "policy" || e.Entity.Kind != "link" || e.Entity.Name[len(e.Entity.Name)-len(l.code):] != l.code || e.At.Before(l.since) || e.At.After(l.till) {
			t.Errorf("the entry of %+v is %+v", l, e)
		}
	}
	if len(of) > 0 {
		t.Errorf("entries of no link that was accepted: %+v", of)
	}
}

// compareLink looks whether a link is that of its author, and as old as its 202.
func compareLink(t *testing.T, s *curttest.Server, want promised) {
	t.Helper()
	var l struct {
		ID        string    `json:"id"`
		By        string    `json:"created_by"`
		Workspace string    `json:"workspace_id"`
		Created   time.Time `json:"created_at"`
		Safety    string    `json:"safety"`
		Version   int       `json:"version"`
	}
	a := callWith(t, s, want.by.Secret, "GET", "/api/v1/links/"+want.code, "")
	if err := json.Unmarshal(a.Body, &l); err != nil || a.Status != 200 {
		t.Fatalf("get %s: %d %q: %v", want.code, a.Status, a.Body, err)
	}
	if l.ID != want.id || l.By != want.by.ID || l.Workspace != want.by.Workspace || l.Safety != want.safety || l.Version < 1 || l.Created.Before(want.since) || l.Created.After(want.till) {
		t.Errorf("%+v, want that of %+v", l, want)
	}
}
