package transfer_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"curt/internal/auth"
	"curt/internal/background"
	"curt/internal/codegen"
	"curt/internal/hosts/hoststest"
	"curt/internal/idempotency/idempotencytest"
	"curt/internal/job"
	"curt/internal/job/jobtest"
	"curt/internal/joblease"
	"curt/internal/link"
	"curt/internal/link/linktest"
	"curt/internal/ratelimit"
	"curt/internal/shorten/create"
	"curt/internal/shorten/linkservice"
	"curt/internal/transfer"
)

// counter is a Generator that counts.
type counter struct{ n atomic.Int64 }

func (c *counter) Next(context.Context, codegen.Need) (link.Code, error) {
	return link.Code(fmt.Sprintf("c%06d", c.n.Add(1))), nil
}
func (c *counter) Guarantee() codegen.Guarantee { return codegen.Unique }
func (c *counter) Kind() link.CodeKind          { return link.Counted }
func (c *counter) Burned(link.Code)             {}

// torn is a store of jobs in which some saves fail although what they were about was done, as when
// a server is killed.
type torn struct {
	job.Store

	saves, each int  // every each-th save is lost; 0 = none
	cancels     bool // the first save is lost with its holder, and the job is canceled before another claim

	killed int    // the number of the save that is lost with its holder; 0 = none
	then   func() // before another claim
}

func (s *torn) Save(ctx context.Context, l joblease.Lease, step job.Step) (job.Job, error) {
	if s.saves++; s.cancels && s.saves == 1 {
		id, err := link.ParseID(l.Name)
		if err == nil {
			_, err = s.Cancel(ctx, id)
		}
		return job.Job{}, errors.Join(joblease.ErrLost, err)
	}
	if s.killed > 0 && s.saves == s.killed {
		s.then()
		return job.Job{}, joblease.ErrLost
	}
	if s.each > 0 && s.saves%s.each == 0 {
		return job.Job{}, link.ErrUnavailable
	}
	return s.Store.Save(ctx, l, step)
}

// fleet is one server with memory for stores.
type fleet struct {
	links *linktest.Memory
	all   *linkservice.Service
	jobs  *torn
	who   auth.Principal
	gone  atomic.Bool // the key was revoked

	breaks func() // called when a link is changed, which fails then; nil = it does not
}

// undisabled is a store in which links cannot be changed while breaks is set, which is called then.
type undisabled struct {
	*linktest.Memory

	of *fleet
}

func (s undisabled) Replace(ctx context.Context, l link.Link, e link.Edit) (link.Link, error) {
	if s.of.breaks != nil {
		s.of.breaks()
		return link.Link{}, link.ErrUnavailable
	}
	return s.Memory.Replace(ctx, l, e)
}

func newFleet(t *testing.T, plans create.Plans) *fleet {
	t.Helper()
	f := &fleet{
		links: linktest.NewMemory(), jobs: &torn{Store: jobtest.NewMemory(job.DefaultBounds())},
		who: auth.Principal{KeyID: "key", Workspace: "acme", Plan: auth.PlanVerified, Scopes: []auth.Scope{auth.LinksRead, auth.LinksWrite}},
	}
	f.all = linkservice.New(linkservice.Config{
		Store: undisabled{f.links, f}, Codes: &counter{}, Limits: ratelimit.NewMemory(), Plans: plans, Hosts: hoststest.New(t, "https://curt.test"), Once: idempotencytest.NewMemory(),
		Random: rand.Reader,
	})
	return f
}

// run runs a job until it has ended.
func (f *fleet) run(t *testing.T, k job.Kind, options, input string) job.Job {
	t.Helper()
	id, err := link.NewID(time.Now(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	j := job.Job{ID: id, Kind: k, Workspace: "acme", CreatedBy: "key", Options: []byte(options), State: job.Uploading}
	if k == job.Export {
		j.State = job.Queued
	}
	if _, err := f.jobs.Create(t.Context(), j); err != nil {
		t.Fatal(err)
	}
	if k == job.Import {
		if _, err := f.jobs.Append(t.Context(), id, 0, []byte(input), true); err != nil {
			t.Fatal(err)
		}
	}
	does := transfer.Jobs{
		Creator: &transfer.Creator{
			Links: f.all, Now: time.Now,
			ShortURL: func(k link.Key) string { return "https://curt.test/" + string(k.Code) },
			Explain:  func(err error) (string, int) { return err.Error(), 409 },
		},
		Who: func(context.Context, string, time.Time) (auth.Principal, error) {
			if f.gone.Load() {
				return auth.Principal{}, auth.ErrUnauthenticated
			}
			return f.who, nil
		},
		Yielder: background.Inline{},
	}
	ctx, cancel := context.WithCancel(t.Context())
	r := job.Runner{Store: f.jobs, Holder: "server", Kinds: does.Kinds(), Log: slog.New(slog.DiscardHandler)}
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	defer func() {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}()
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if j, err = f.jobs.Get(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		if j.State.Ended() {
			return j
		}
	}
	t.Fatalf("the job does not end: %+v", j)
	return j
}

func (f *fleet) result(t *testing.T, j *job.Job) []string {
	t.Helper()
	var text strings.Builder
	r := job.NewReader(t.Context(), f.jobs, j.ID, job.Result, 0, 0)
	for b := make([]byte, 4096); ; {
		n, err := r.Read(b)
		text.Write(b[:n])
		if err != nil {
			break
		}
	}
	return strings.Split(strings.TrimSuffix(text.String(), "\n"), "\n")
}

// stored are the links by destination.
func (f *fleet) stored(t *testing.T) map[string]int {
	t.Helper()
	all := map[string]int{}
	for page := (link.Page{Limit: link.MaxPage}); ; {
		slice, err := f.links.List(t.Context(), link.Filter{Oldest: true}, page)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range slice.Links {
			all[l.Destination]++
		}
		if page.After = slice.Next; slice.Next == "" {
			return all
		}
	}
}

func rows(n int) string {
	var text strings.Builder
	text.WriteString("url\n")
	for i := range n {
		_, _ = fmt.Fprintf(&text, "https://example.com/%d\n", i)
	}
	return text.String()
}

func (f *fleet) check(t *testing.T, j *job.Job, n int) {
	t.Helper()
	if p := j.Progress; j.State != job.Done || p.Created != int64(n) || p.Rows != int64(n) || p.Failed != 0 {
		t.Fatalf("%+v", j)
	}
	all := f.stored(t)
	for to, times := range all {
		if times != 1 {
			t.Errorf("%s was created %d times", to, times)
		}
	}
	lines := f.result(t, j)
	for i, l := range lines {
		if !strings.HasPrefix(l, fmt.Sprintf(`{"line":%d,"short_code":"`, i+2)) {
			t.Fatalf("result %d is %s", i, l)
		}
	}
	if len(all) != n || len(lines) != n {
		t.Errorf("%d links and %d results of %d rows", len(all), len(lines), n)
	}
}

// A batch whose save was lost is repeated, and creates nothing twice.
func TestALostSaveCreatesNothingTwice(t *testing.T) {
	f := newFleet(t, nil)
	f.who.Plan = auth.PlanDefault
	f.jobs.each = 2
	j := f.run(t, job.Import, `{}`, rows(3500))
	f.check(t, &j, 3500)
}

// A batch whose holder was killed before its save is finished although the job was canceled since, so
// that the rest of the file can be imported later.
func TestACanceledImportKnowsItsLastBatch(t *testing.T) {
	f := newFleet(t, nil)
	f.who.Plan = auth.PlanDefault
	f.jobs.cancels = true
	j := f.run(t, job.Import, `{}`, rows(2500))
	if j.State != job.Canceled || j.Progress.Created == 0 || int(j.Progress.Created) != len(f.stored(t)) {
		t.Fatalf("%d links, %+v", len(f.stored(t)), j)
	}
	f.jobs.cancels = false
	f.run(t, job.Import, fmt.Sprintf(`{"offset":%d}`, j.Progress.Bytes), rows(2500))
	all := f.stored(t)
	for to, times := range all {
		if times != 1 {
			t.Errorf("%s was created %d times", to, times)
		}
	}
	if len(all) != 2500 {
		t.Errorf("%d links of 2500 rows", len(all))
	}
}

// A batch whose holder was killed before its save is in the result although the key was revoked since,
// and nothing is created after that.
func TestARevokedImportKnowsItsLastBatch(t *testing.T) {
	for killed := 1; killed <= 2; killed++ {
		f := newFleet(t, nil)
		f.who.Plan = auth.PlanDefault
		created := 0
		f.jobs.killed, f.jobs.then = killed, func() { created = len(f.stored(t)); f.gone.Store(true) }
		const last = `{"long_url":"https://example.com/last","status":"disabled"}` + "\n"
		input := last
		for i := range 1500 {
			input += fmt.Sprintf(`{"long_url":"https://example.com/%d"}`+"\n", i)
		}
		j := f.run(t, job.Import, `{"format":"jsonl"}`, input)
		lines := f.result(t, &j)
		if p := j.Progress; j.State != job.Failed || !strings.Contains(j.Error, "revoked") || created == 0 || int(p.Created) != created || len(f.stored(t)) != created || len(lines) != created {
			t.Fatalf("%d links, %d of them before the revocation, %d outcomes, %+v", len(f.stored(t)), created, len(lines), j)
		}
		f.jobs.killed = 0
		f.gone.Store(false)
		f.run(t, job.Import, fmt.Sprintf(`{"offset":%d}`, j.Progress.Bytes), input)
		all := f.stored(t)
		for to, times := range all {
			if times != 1 {
				t.Errorf("%s was created %d times", to, times)
			}
		}
		if len(all) != 1501 {
			t.Errorf("%d links of 1501 rows", len(all))
		}
	}
}

// A link that was to be disabled when the key was revoked stays as it is, and the result says so.
func TestARevokedImportDisablesNothing(t *testing.T) {
	f := newFleet(t, nil)
	f.breaks = func() { f.gone.Store(true) }
	j := f.run(t, job.Import, `{}`, `{"long_url":"https://example.com/a","short_code":"first","status":"disabled"}`+"\n"+`{"long_url":"https://example.com/b","short_code":"second"}`+"\n")
	lines := f.result(t, &j)
	if j.State != job.Failed || j.Progress.Created != 1 || j.Progress.Failed != 1 || len(lines) != 2 || !strings.Contains(lines[0], `"short_code":"first"`) || !strings.Contains(lines[0], "not disabled") {
		t.Errorf("%q, %+v", lines, j)
	}
}

// A job that waits for a limit ends soon after its key.
func TestAJobThatWaitsEndsWithItsKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, create.Plans{auth.PlanVerified: {ratelimit.Per(1, 12*time.Hour)}})
		revoked := time.Now().Add(30 * time.Second)
		time.AfterFunc(time.Until(revoked), func() { f.gone.Store(true) })
		j := f.run(t, job.Import, `{}`, rows(3))
		if took := time.Since(revoked); j.State != job.Failed || !strings.Contains(j.Error, "revoked") || j.Progress.Created != 1 || took < 0 || took > time.Minute+5*time.Second {
			t.Errorf("%s after the revocation: %+v", took, j)
		}
	})
}

// Where a limit refuses a batch, smaller ones pass; also when their saves are lost.
func TestALimitLetsAJobWait(t *testing.T) {
	f := newFleet(t, create.Plans{auth.PlanVerified: {ratelimit.Per(300, time.Second)}})
	f.jobs.each = 3
	j := f.run(t, job.Import, `{}`, rows(1100))
	f.check(t, &j, 1100)
}

func TestAJobEndsWithItsKey(t *testing.T) {
	f := newFleet(t, nil)
	f.gone.Store(true)
	if j := f.run(t, job.Import, `{}`, rows(3)); j.State != job.Failed || !strings.Contains(j.Error, "revoked") {
		t.Errorf("%+v", j)
	}
	f.gone.Store(false)
	f.who.Scopes = []auth.Scope{auth.LinksRead}
	if j := f.run(t, job.Import, `{}`, rows(3)); j.State != job.Failed || !strings.Contains(j.Error, "links:write") {
		t.Errorf("%+v", j)
	}
	if len(f.stored(t)) != 0 {
		t.Error("links were created")
	}
}

func TestRowsHaveOutcomes(t *testing.T) {
	const input = `{"long_url":"https://example.com/a","short_code":"first","status":"disabled","tags":["own"]}
{"long_url":"https://example.com/b","short_code":"first"}
{"short_code":"old","status":"deleted"}
{"long_url":"javascript:alert(1)"}
nothing
`
	for _, options := range []string{`{"tags":["moved"],"dry_run":true}`, `{"tags":["moved"]}`} {
		f := newFleet(t, nil)
		f.who.Plan = auth.PlanDefault
		j := f.run(t, job.Import, options, input)
		if p := j.Progress; j.State != job.Done || p.Created != 1 || p.Skipped != 1 || p.Failed != 3 || p.Bytes != int64(len(input)) {
			t.Errorf("%+v", j)
		}
		lines := f.result(t, &j)
		if len(lines) != 5 || lines[2] != `{"line":3,"short_code":"old","skipped":"deleted"}` && lines[2] != `{"line":3,"skipped":"deleted"}` {
			t.Errorf("%q", lines)
		}
		l, err := f.links.Get(t.Context(), link.Key{Code: "first"})
		if dry := strings.Contains(options, "dry"); dry != errors.Is(err, link.ErrNotFound) || !dry && (l.Status != link.Disabled || strings.Join(l.Tags, " ") != "own moved") {
			t.Errorf("%+v, %v", l, err)
		}
	}
}

// A dry run knows which codes are taken.
func TestADryRunAsksForCodes(t *testing.T) {
	f := newFleet(t, nil)
	f.who.Plan = auth.PlanDefault
	const taken = `{"long_url":"https://example.com/a","short_code":"taken"}` + "\n"
	f.run(t, job.Import, `{}`, taken)
	if j := f.run(t, job.Import, `{"dry_run":true}`, taken); j.Progress.Failed != 1 || !strings.Contains(f.result(t, &j)[0], "taken") {
		t.Errorf("%+v", j)
	}
}

func TestAFileThatIsNoneFailsTheJob(t *testing.T) {
	f := newFleet(t, nil)
	for _, input := range []string{"", "just\ntext\n"} {
		if j := f.run(t, job.Import, `{"format":"csv"}`, input); j.State != job.Failed || j.Error == "" || strings.Contains(j.Error, "log") {
			t.Errorf("%q: %+v", input, j)
		}
	}
}

// An export has each link once, whatever saves are lost.
func TestALostSaveExportsNothingTwice(t *testing.T) {
	f := newFleet(t, nil)
	f.who.Plan = auth.PlanDefault
	f.run(t, job.Import, `{}`, rows(1200))
	f.jobs.each = 2
	for options, lines := range map[string]int{`{}`: 1200, `{"format":"csv"}`: 1201} {
		j := f.run(t, job.Export, options, "")
		seen := map[string]bool{}
		for _, l := range f.result(t, &j) {
			seen[l] = true
		}
		if j.State != job.Done || len(seen) != lines || j.Progress.Rows != 1200 {
			t.Errorf("%s: %d lines, %+v", options, len(seen), j)
		}
	}
}

// An import that was canceled is continued by another one, which begins behind its last row.
func TestAnImportBeginsAtAnOffset(t *testing.T) {
	f := newFleet(t, nil)
	const text = "url,title\nhttps://a.example/,\"two\nlines\"\nhttps://b.example/,b\n"
	offset := strings.Index(text, "https://b")
	j := f.run(t, job.Import, fmt.Sprintf(`{"offset":%d}`, offset), text)
	if got := f.result(t, &j); j.State != job.Done || j.Progress.Rows != 1 || j.Progress.Bytes != int64(len(text)) || len(got) != 1 || !strings.HasPrefix(got[0], `{"line":4,`) {
		t.Errorf("%+v %s", j, got)
	}
	if stored := f.stored(t); len(stored) != 1 || stored["https://b.example/"] != 1 {
		t.Errorf("%v", stored)
	}
}

func TestPeopleChooseAmongColumns(t *testing.T) {
	f := newFleet(t, nil)
	const text = "a,b\nx,https://a.example/\n"
	j := f.run(t, job.Import, `{}`, text)
	if want := []job.Column{{Name: "a", Sample: "x"}, {Name: "b", Sample: "https://a.example/"}}; j.State != job.Failed || !slices.Equal(j.Progress.Columns, want) || strings.Contains(j.Error, "--") {
		t.Errorf("%+v", j)
	}
	j = f.run(t, job.Import, `{"columns":{"long_url":"#2","title":"#1"},"dry_run":true}`, text)
	if want := []job.Column{{Name: "a", Field: "title", Sample: "x"}, {Name: "b", Field: "long_url", Sample: "https://a.example/"}}; j.State != job.Done || j.Progress.Created != 1 || !slices.Equal(j.Progress.Columns, want) {
		t.Errorf("%+v", j)
	}
}

func TestAnExportChoosesLinks(t *testing.T) {
	f := newFleet(t, nil)
	f.run(t, job.Import, `{}`, "url\nhttps://a.example/\n")
	for options, state := range map[string]job.State{`{}`: job.Done, `{"state":"gone"}`: job.Failed, `{"domain":"other.example"}`: job.Failed} {
		if j := f.run(t, job.Export, options, ""); j.State != state || state == job.Done && j.Progress.Rows != 1 {
			t.Errorf("%s: %+v", options, j)
		}
	}
}
