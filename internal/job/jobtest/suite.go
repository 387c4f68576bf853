// Package jobtest proves stores of package job.
package jobtest

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"curt/internal/job"
	"curt/internal/joblease"
	"curt/internal/link"
)

// long outlasts the test, and soon does not.
const (
	long = time.Hour
	soon = time.Millisecond
)

// Open returns an empty store with bounds, and a second handle on its data, as another process
// would have it.
type Open func(t testing.TB, b job.Bounds) [2]job.Store

// Run proves a store.
func Run(t *testing.T, open Open) {
	for name, prove := range map[string]func(*testing.T, [2]job.Store){
		"input comes in order":                    input,
		"one of many has a job":                   one,
		"a paused holder writes nothing":          paused,
		"a kill between effect and save repeats":  killed,
		"a save is all or nothing":                whole,
		"a job waits and goes on":                 waits,
		"the one that waited longest comes first": fair,
		"a job is canceled in every state":        canceled,
		"a job takes over an input":               takeover,
		"workspaces are apart":                    apart,
		"what is no job":                          invalid,
	} {
		t.Run(name, func(t *testing.T) { prove(t, open(t, job.DefaultBounds())) })
	}
	t.Run("a job that ended is deleted", func(t *testing.T) {
		b := job.DefaultBounds()
		b.RetainInput = 0
		deleted(t, open(t, b))
	})
	t.Run("jobs have bounds", func(t *testing.T) { bounds(t, open) })
	t.Run("jobs expire", func(t *testing.T) { expires(t, open) })
}

func newID(t testing.TB) link.ID {
	t.Helper()
	id, err := link.NewID(time.Now(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func create(t testing.TB, s job.Store, w link.WorkspaceID, k job.Kind) job.Job {
	t.Helper()
	state := job.Uploading
	if k == job.Export {
		state = job.Queued
	}
	j, err := s.Create(t.Context(), job.Job{ID: newID(t), Kind: k, Workspace: w, CreatedBy: "key", Options: []byte(`{"a":"b"}`), State: state})
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func add(t testing.TB, s job.Store, id link.ID, offset int64, text string, complete bool) job.Job {
	t.Helper()
	j, err := s.Append(t.Context(), id, offset, []byte(text), complete)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func get(t testing.TB, s job.Store, id link.ID) job.Job {
	t.Helper()
	j, err := s.Get(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func claim(t testing.TB, s job.Store, holder string, ttl time.Duration) (job.Job, joblease.Lease) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; {
		j, err := s.Claim(t.Context(), holder, ttl)
		if err == nil {
			return j, job.Claim(&j, holder)
		}
		if !errors.Is(err, job.ErrNoJob) || time.Now().After(end) {
			t.Fatalf("%s claims: %v", holder, err)
		}
	}
}

func save(t testing.TB, s job.Store, l joblease.Lease, step job.Step) job.Job {
	t.Helper()
	j, err := s.Save(t.Context(), l, step)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func text(t testing.TB, s job.Store, id link.ID, p job.Part, from int64) string {
	t.Helper()
	all, err := io.ReadAll(job.NewReader(t.Context(), s, id, p, from, 0))
	if err != nil {
		t.Fatal(err)
	}
	return string(all)
}

func want(t testing.TB, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: %v, want %v", what, err, want)
	}
}

func noJob(t testing.TB, s job.Store) {
	t.Helper()
	j, err := s.Claim(t.Context(), "nobody", long)
	if !errors.Is(err, job.ErrNoJob) {
		t.Errorf("claimed %+v, %v", j, err)
	}
}

func input(t *testing.T, s [2]job.Store) {
	j := create(t, s[0], "acme", job.Import)
	if j.State != job.Uploading || string(j.Options) != `{"a":"b"}` || j.Created.IsZero() || !j.Expires.After(j.Created) || j.CreatedBy != "key" {
		t.Errorf("%+v", j)
	}
	noJob(t, s[0])
	add(t, s[0], j.ID, 0, "one,", false)
	_, err := s[1].Append(t.Context(), j.ID, 5, []byte("gap"), false)
	if gap, ok := errors.AsType[*job.OffsetError](err); !ok || gap.Uploaded != 4 {
		t.Errorf("a gap: %v", err)
	}
	for range 2 { // sent again after a time-out
		if j := add(t, s[1], j.ID, 4, "two,", false); j.Uploaded != 8 {
			t.Errorf("%+v", j)
		}
	}
	add(t, s[0], j.ID, 6, "o,three", false)
	big := strings.Repeat("four", job.MaxChunk/4)
	for range 2 {
		if j := add(t, s[0], j.ID, 13, big, true); j.State != job.Queued || j.Uploaded != 13+job.MaxChunk {
			t.Errorf("%+v", j)
		}
	}
	_, err = s[0].Append(t.Context(), j.ID, 13+job.MaxChunk, []byte("x"), true)
	want(t, "append to a complete input", err, job.ErrState)
	if got, want := text(t, s[1], j.ID, job.Input, 0), "one,two,three"+big; got != want {
		t.Errorf("%d bytes, want %d: %.40s", len(got), len(want), got)
	}
	if got := text(t, s[1], j.ID, job.Input, 10); got != "ree"+big {
		t.Errorf("from 10: %.20s", got)
	}
	sized := job.Job{ID: newID(t), Kind: job.Import, Workspace: "acme", CreatedBy: "key", Size: 4, State: job.Uploading}
	if _, err := s[0].Create(t.Context(), sized); err != nil {
		t.Fatal(err)
	}
	if _, err := s[0].Append(t.Context(), sized.ID, 1, []byte("abcd"), true); !errors.As(err, new(*job.OffsetError)) {
		t.Errorf("a gap: %v", err)
	}
	for _, chunk := range []string{"abc", "abcde"} {
		_, err := s[1].Append(t.Context(), sized.ID, 0, []byte(chunk), true)
		if size, ok := errors.AsType[*job.SizeError](err); !ok || size.Size != 4 || size.Bytes != int64(len(chunk)) {
			t.Errorf("%q of 4 bytes: %v", chunk, err)
		}
	}
	add(t, s[0], sized.ID, 0, "abcd", false)
	if j := add(t, s[0], sized.ID, 4, "", true); j.State != job.Queued {
		t.Errorf("%+v", j)
	}
}

func one(t *testing.T, s [2]job.Store) {
	j := create(t, s[0], "acme", job.Export)
	var won sync.Map
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			got, err := s[i%2].Claim(t.Context(), string(rune('a'+i)), long)
			if err == nil {
				won.Store(i, got)
			} else if !errors.Is(err, job.ErrNoJob) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	winners := 0
	won.Range(func(_, v any) bool {
		winners++
		if got := v.(job.Job); got.ID != j.ID || got.State != job.Running || got.Fence != 1 {
			t.Errorf("%+v", got)
		}
		return true
	})
	if winners != 1 {
		t.Errorf("%d servers have the job", winners)
	}
}

func paused(t *testing.T, s [2]job.Store) {
	create(t, s[0], "acme", job.Export)
	_, first := claim(t, s[0], "a", soon)
	j, second := claim(t, s[1], "b", long)
	if second.Fence <= first.Fence {
		t.Errorf("fence %d behind %d", second.Fence, first.Fence)
	}
	save(t, s[1], second, job.Step{Progress: job.Progress{Rows: 1}, Result: []byte("b")})
	for _, step := range []job.Step{{Result: []byte("a")}, {State: job.Done}, {Release: true}} {
		_, err := s[0].Save(t.Context(), first, step)
		want(t, "a save of the paused holder", err, joblease.ErrLost)
	}
	want(t, "renew", s[0].Renew(t.Context(), first, long), joblease.ErrLost)
	want(t, "release", s[0].Release(t.Context(), first), nil)
	noJob(t, s[0])
	if got := get(t, s[0], j.ID); got.State != job.Running || got.Progress.Rows != 1 || text(t, s[0], j.ID, job.Result, 0) != "b" {
		t.Errorf("%+v", got)
	}
	save(t, s[1], second, job.Step{State: job.Done})
	_, err := s[1].Save(t.Context(), second, job.Step{Result: []byte("late")})
	want(t, "a save behind the end", err, joblease.ErrLost)
}

func killed(t *testing.T, s [2]job.Store) {
	id := create(t, s[0], "acme", job.Export).ID
	_, l := claim(t, s[0], "a", long)
	save(t, s[0], l, job.Step{Progress: job.Progress{Bytes: 10, Rows: 2, Next: []byte{0, 255}}, Result: []byte("rows")})
	j, again := claim(t, s[1], "a", long) // killed, and started again
	if j.ID != id || j.Progress.Bytes != 10 || !bytes.Equal(j.Progress.Next, []byte{0, 255}) || j.Result != 4 || again.Fence != l.Fence+1 {
		t.Errorf("%+v", j)
	}
	_, err := s[0].Save(t.Context(), l, job.Step{})
	want(t, "a save of before the kill", err, joblease.ErrLost)
	want(t, "release", s[1].Release(t.Context(), again), nil)
	if j, _ := claim(t, s[0], "b", long); j.Progress.Rows != 2 {
		t.Errorf("%+v", j)
	}
}

func whole(t *testing.T, s [2]job.Store) {
	id := create(t, s[0], "acme", job.Export).ID
	_, l := claim(t, s[0], "a", long)
	large := make([]byte, 3*job.MaxChunk+5)
	_, _ = rand.Read(large)
	j := save(t, s[0], l, job.Step{Progress: job.Progress{Rows: 7, Header: []string{"a"}}, Result: large})
	if j.Result != int64(len(large)) || text(t, s[1], id, job.Result, 0) != string(large) {
		t.Errorf("%+v", j)
	}
	for _, from := range []int64{1, job.MaxChunk, job.MaxChunk + 1, int64(len(large)) - 1, int64(len(large))} {
		if text(t, s[1], id, job.Result, from) != string(large[from:]) {
			t.Errorf("from %d: another text", from)
		}
	}
	j = save(t, s[0], l, job.Step{Progress: j.Progress, Result: []byte("end"), State: job.Failed, Error: "why"})
	if got := get(t, s[1], id); got.State != job.Failed || got.Error != "why" || got.Result != j.Result || got.Progress.Header[0] != "a" {
		t.Errorf("%+v", got)
	}
	noJob(t, s[0])
}

func waits(t *testing.T, s [2]job.Store) {
	id := create(t, s[0], "acme", job.Export).ID
	_, l := claim(t, s[0], "a", long)
	limited := time.Now().Add(2 * long).UTC().Truncate(time.Millisecond)
	j := save(t, s[0], l, job.Step{Progress: job.Progress{WaitsUntil: limited}, Release: true, Wait: long})
	if got := get(t, s[1], id); got.State != job.Running || got.Waits.IsZero() || !got.Progress.WaitsUntil.Equal(limited) || !got.Waits.Equal(j.Waits) || !got.Expires.After(got.Waits) {
		t.Errorf("%+v, saved %+v", got, j)
	}
	noJob(t, s[0])
	want(t, "release", s[0].Release(t.Context(), l), nil)
	noJob(t, s[1])
	if j, err := s[1].Cancel(t.Context(), id); err != nil || j.State != job.Canceled {
		t.Errorf("%+v, %v", j, err)
	}
	other := create(t, s[0], "acme", job.Export).ID
	_, l = claim(t, s[0], "a", long)
	save(t, s[0], l, job.Step{Release: true, Wait: soon})
	if j, _ := claim(t, s[1], "b", long); j.ID != other || j.State != job.Running || !j.Waits.IsZero() {
		t.Errorf("%+v", j)
	}
}

func fair(t *testing.T, s [2]job.Store) {
	first, second := create(t, s[0], "acme", job.Export), create(t, s[0], "other", job.Export)
	j, l := claim(t, s[0], "a", long)
	if j.ID != first.ID {
		t.Error("the newer job came first")
	}
	time.Sleep(2 * soon) // times are kept to the millisecond
	save(t, s[0], l, job.Step{Release: true})
	if j, _ := claim(t, s[0], "a", long); j.ID != second.ID {
		t.Error("a job that had its turn came before one that waits")
	}
}

func canceled(t *testing.T, s [2]job.Store) {
	for _, kind := range []job.Kind{job.Import, job.Export} {
		j := create(t, s[0], "acme", kind)
		for range 2 {
			if j, err := s[1].Cancel(t.Context(), j.ID); err != nil || j.State != job.Canceled {
				t.Errorf("%s: %+v, %v", kind, j, err)
			}
		}
	}
	noJob(t, s[0])
	id := create(t, s[0], "acme", job.Export).ID
	_, l := claim(t, s[0], "a", long)
	if j, err := s[1].Cancel(t.Context(), id); err != nil || j.State != job.Canceling {
		t.Errorf("%+v, %v", j, err)
	}
	if j := save(t, s[0], l, job.Step{Result: []byte("x")}); j.State != job.Canceling {
		t.Errorf("%+v", j)
	}
	j, l := claim(t, s[1], "a", long) // killed before it stopped
	if j.ID != id || j.State != job.Canceling {
		t.Errorf("%+v", j)
	}
	if j := save(t, s[1], l, job.Step{State: job.Canceled}); j.State != job.Canceled || j.Result != 1 {
		t.Errorf("%+v", j)
	}
	noJob(t, s[0])
}

func deleted(t *testing.T, s [2]job.Store) {
	id := create(t, s[0], "acme", job.Import).ID
	add(t, s[0], id, 0, "text", true)
	want(t, "delete a queued job", s[0].Delete(t.Context(), id), job.ErrState)
	_, l := claim(t, s[0], "a", long)
	want(t, "delete a running job", s[1].Delete(t.Context(), id), job.ErrState)
	save(t, s[0], l, job.Step{Result: []byte("result"), State: job.Done})
	sweep(t, s[1])
	if in, out := text(t, s[0], id, job.Input, 0), text(t, s[0], id, job.Result, 0); in != "" || out != "result" {
		t.Errorf("of a job that ended %q and %q are left", in, out)
	}
	want(t, "delete", s[0].Delete(t.Context(), id), nil)
	want(t, "delete again", s[1].Delete(t.Context(), id), job.ErrNoJob)
	sweep(t, s[0])
	_, err := s[1].Read(t.Context(), id, job.Result, 0)
	want(t, "read a deleted job", err, job.ErrNoJob)
}

// takeover: an input goes from job to job, and is of one at a time.
func takeover(t *testing.T, s [2]job.Store) {
	first := create(t, s[0], "acme", job.Import).ID
	big := strings.Repeat("four", job.MaxChunk/4)
	add(t, s[0], first, 0, big, false)
	take := func(w link.WorkspaceID, from link.ID, spoil func(*job.Job)) (job.Job, error) {
		j := job.Job{ID: newID(t), Kind: job.Import, Workspace: w, CreatedBy: "other", State: job.Queued, Input: from}
		if spoil != nil {
			spoil(&j)
		}
		return s[1].Create(t.Context(), j)
	}
	refused := func(what string, w link.WorkspaceID, from link.ID, as error) {
		t.Helper()
		_, err := take(w, from, nil)
		want(t, what, err, as)
	}
	refused("take of a job that is uploading", "acme", first, job.ErrState)
	incomplete := create(t, s[0], "acme", job.Import).ID
	add(t, s[0], incomplete, 0, "a", false)
	if _, err := s[0].Cancel(t.Context(), incomplete); err != nil {
		t.Fatal(err)
	}
	refused("take an incomplete input", "acme", incomplete, job.ErrState)
	add(t, s[0], first, job.MaxChunk, "end", true)
	refused("take of a queued job", "acme", first, job.ErrState)
	_, l := claim(t, s[0], "a", long)
	refused("take of a running job", "acme", first, job.ErrState)
	save(t, s[0], l, job.Step{Result: []byte("first"), State: job.Failed})
	sweep(t, s[0])
	refused("take of another workspace", "rival", first, job.ErrNoJob)
	refused("take of no job", "acme", newID(t), job.ErrNoJob)
	_, err := take("acme", first, func(j *job.Job) { j.State = job.Uploading })
	want(t, "take and upload", err, link.ErrInvalid)

	second, err := take("acme", first, nil)
	if err != nil || second.State != job.Queued || second.Uploaded != job.MaxChunk+3 || !second.Input.IsZero() {
		t.Fatalf("%+v, %v", second, err)
	}
	refused("take what another job has", "acme", first, job.ErrState)
	want(t, "delete the first", s[0].Delete(t.Context(), first), nil)
	sweep(t, s[0])
	if got := text(t, s[0], second.ID, job.Input, 0); got != big+"end" {
		t.Errorf("%d bytes", len(got))
	}
	_, l = claim(t, s[0], "a", long)
	save(t, s[0], l, job.Step{Result: []byte("second"), State: job.Done})
	third, err := take("acme", second.ID, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := text(t, s[1], third.ID, job.Input, job.MaxChunk); got != "end" || text(t, s[1], third.ID, job.Result, 0) != "" {
		t.Errorf("%q", got)
	}
	if got := text(t, s[1], second.ID, job.Result, 0); got != "second" || text(t, s[1], second.ID, job.Input, 0) != "" {
		t.Errorf("%q", got)
	}
}

func sweep(t testing.TB, s job.Store) {
	t.Helper()
	for more := true; more; {
		var err error
		if more, err = s.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

func apart(t *testing.T, s [2]job.Store) {
	var mine []link.ID
	for range 3 {
		mine = append(mine, create(t, s[0], "acme", job.Import).ID)
		create(t, s[1], "other", job.Import)
	}
	var before link.ID
	for _, id := range slices.Backward(mine) {
		list, err := s[1].List(t.Context(), "acme", before, 1)
		if err != nil || len(list) != 1 || list[0].ID != id || list[0].Workspace != "acme" {
			t.Fatalf("%+v, %v", list, err)
		}
		before = id
	}
	for w, n := range map[link.WorkspaceID]int{"acme": 3, "": 6, "nobody": 0} {
		if list, err := s[0].List(t.Context(), w, link.ID{}, 100); err != nil || len(list) != n {
			t.Errorf("%q has %d jobs, %v, want %d", w, len(list), err, n)
		}
	}
}

func invalid(t *testing.T, s [2]job.Store) {
	ctx, id := t.Context(), newID(t)
	_, err := s[0].Get(ctx, id)
	want(t, "get", err, job.ErrNoJob)
	_, err = s[0].Append(ctx, id, 0, nil, false)
	want(t, "append", err, job.ErrNoJob)
	_, err = s[0].Cancel(ctx, id)
	want(t, "cancel", err, job.ErrNoJob)
	_, err = s[0].Save(ctx, joblease.Lease{Name: id.String(), Holder: "a", Fence: 1}, job.Step{})
	want(t, "save", err, joblease.ErrLost)
	good := job.Job{ID: id, Kind: job.Import, Workspace: "acme", CreatedBy: "key", State: job.Uploading}
	for i, spoil := range []func(*job.Job){
		func(j *job.Job) { j.ID = link.ID{} },
		func(j *job.Job) { j.Workspace = "" },
		func(j *job.Job) { j.CreatedBy = "" },
		func(j *job.Job) { j.State = job.Running },
		func(j *job.Job) { j.Size = -1 },
		func(j *job.Job) { j.Options = make([]byte, job.MaxOptions+1) },
	} {
		bad := good
		spoil(&bad)
		_, err := s[0].Create(ctx, bad)
		want(t, string(rune('a'+i)), err, link.ErrInvalid)
	}
	for range 2 { // a call that is repeated
		if j, err := s[0].Create(ctx, good); err != nil || j.ID != id {
			t.Errorf("%+v, %v", j, err)
		}
	}
	_, err = s[0].Append(ctx, id, -1, nil, false)
	want(t, "a negative offset", err, link.ErrInvalid)
	_, err = s[0].Append(ctx, id, 0, make([]byte, job.MaxChunk+1), false)
	want(t, "a large chunk", err, link.ErrInvalid)
}

func bounds(t *testing.T, open Open) {
	b := job.Bounds{Input: 100, Result: 50, Unfinished: 2, Jobs: 3, Stored: 500, WorkspaceStored: 200, Retention: long}
	s := open(t, b)
	random := func(n int) string {
		text := make([]byte, n)
		_, _ = rand.Read(text) // which no compression makes smaller
		return string(text)
	}
	full := create(t, s[0], "acme", job.Import).ID
	add(t, s[0], full, 0, random(100), false)
	_, err := s[0].Append(t.Context(), full, 100, []byte("x"), false)
	want(t, "a large input", err, job.ErrTooBig)
	second := create(t, s[1], "acme", job.Export).ID
	extra := job.Job{ID: newID(t), Kind: job.Export, Workspace: "acme", CreatedBy: "key", State: job.Queued}
	_, err = s[0].Create(t.Context(), extra)
	want(t, "a third unfinished job", err, job.ErrTooMany)
	_, l := claim(t, s[0], "a", long)
	_, err = s[0].Save(t.Context(), l, job.Step{Result: []byte(random(51)), State: job.Done})
	want(t, "a large result", err, job.ErrTooBig)
	if got := get(t, s[1], second); got.State != job.Running || got.Result != 0 {
		t.Errorf("%+v", got)
	}
	save(t, s[0], l, job.Step{Result: []byte(random(40)), State: job.Done})
	create(t, s[0], "acme", job.Export)
	_, err = s[1].Create(t.Context(), extra)
	want(t, "a fourth job", err, job.ErrTooMany)
	large := extra
	large.Workspace, large.Size, large.Kind, large.State = "other", 101, job.Import, job.Uploading
	_, err = s[0].Create(t.Context(), large)
	want(t, "a size above the bound", err, job.ErrTooBig)
	want(t, "delete", s[0].Delete(t.Context(), second), nil)
	sweep(t, s[0])
	full = fill(t, s, "other", random)
	_, err = s[0].Append(t.Context(), full, 0, []byte(random(50)), false)
	want(t, "append where a workspace is full", err, link.ErrFull)
	fill(t, s, "third", random)
	first, err := s[0].List(t.Context(), "acme", link.ID{}, 10)
	if err != nil {
		t.Fatal(err)
	}
	_, l = claim(t, s[0], "a", long)
	_, err = s[0].Save(t.Context(), l, job.Step{Result: []byte("x")})
	if len(first) != 2 {
		t.Errorf("%d jobs", len(first))
	}
	want(t, "save where all is full", err, link.ErrFull)
}

// fill takes a workspace to its bound of stored bytes, and returns an empty input of it.
func fill(t *testing.T, s [2]job.Store, w link.WorkspaceID, random func(int) string) link.ID {
	t.Helper()
	for range 2 {
		id := create(t, s[0], w, job.Import).ID
		add(t, s[0], id, 0, random(100), false)
		if _, err := s[0].Cancel(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
	return create(t, s[1], w, job.Import).ID
}

// claimNew creates a job and claims it. Where a slow machine lets the job expire between the two, it
// creates another.
func claimNew(t *testing.T, s job.Store, w link.WorkspaceID, ttl time.Duration) (link.ID, joblease.Lease) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; {
		id := create(t, s, w, job.Export).ID
		j, err := s.Claim(t.Context(), "a", ttl)
		if err == nil && j.ID == id {
			return id, job.Claim(&j, "a")
		}
		if err != nil && !errors.Is(err, job.ErrNoJob) || time.Now().After(end) {
			t.Fatalf("claim a new job: %+v, %v", j, err)
		}
	}
}

func expires(t *testing.T, open Open) {
	b := job.DefaultBounds()
	b.Retention = 100 * soon
	s := open(t, b)
	id, l := claimNew(t, s[0], "acme", soon)
	for end := time.Now().Add(time.Minute); ; {
		if _, err := s[1].Get(t.Context(), id); errors.Is(err, job.ErrNoJob) {
			break
		}
		if time.Now().After(end) {
			t.Fatal("a job does not expire")
		}
	}
	_, err := s[0].Save(t.Context(), l, job.Step{Result: []byte("late")})
	want(t, "a save behind the end", err, joblease.ErrLost)
	want(t, "delete", s[0].Delete(t.Context(), id), job.ErrNoJob)
	noJob(t, s[0])
	sweep(t, s[1])
	if list, err := s[0].List(t.Context(), "", link.ID{}, 10); err != nil || len(list) != 0 {
		t.Errorf("%+v, %v", list, err)
	}
}
