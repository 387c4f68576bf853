package postgres_test

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"curt.example/client"
	"curt/internal/testkit"
)

// TestAnotherServerGoesOnWithAJob: the server that imports is paused until another one has its job,
// and is killed in the next. Each row has one link and one result.
func TestAnotherServerGoesOnWithAJob(t *testing.T) {
	testkit.Faults(t)
	t.Parallel()
	const rows = 30_000
	url := database(t)
	first := begin(t, 1, url)[0]
	get := func(n node, id string) *client.Job {
		j, err := n.api.Jobs.Get(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		return &j
	}
	ended := func(n node, id string) (j *client.Job) {
		soon(t, "the job ends", func() bool { j = get(n, id); return j.Ended() })
		return j
	}
	// submit returns a job that has begun; underWay = and may not have ended.
	submit := func(name string) (id string, underWay bool) {
		var text strings.Builder
		text.WriteString("url\n")
		for i := range rows {
			_, _ = fmt.Fprintf(&text, "https://%s.example/%d\n", name, i)
		}
		j, err := first.api.Jobs.CreateImport(t.Context(), 0, client.JobOptions{Format: "csv"})
		for rest := []byte(text.String()); err == nil && len(rest) > 0; {
			n := min(len(rest), client.MaxJobInput)
			j, err = first.api.Jobs.SendInput(t.Context(), j.ID, j.Uploaded, rest[:n], n == len(rest))
			rest = rest[n:]
		}
		if err != nil {
			t.Fatal(err)
		}
		soon(t, "the job begins", func() bool {
			j, err = first.api.Jobs.Get(t.Context(), j.ID)
			return err != nil || j.Progress.Rows > 0
		})
		if err != nil {
			t.Fatal(err)
		}
		return j.ID, !j.Ended()
	}
	var second node
	check := func(name, id string) {
		t.Helper()
		j := ended(second, id)
		if p := j.Progress; j.State != "done" || p.Created != rows || p.Failed != 0 {
			t.Errorf("%s: %+v", name, j)
		}
		body, err := second.api.Jobs.Result(t.Context(), id, 0)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(body)
		if err != nil || strings.Count(string(text), "\n") != rows || strings.Count(string(text), "short_code") != rows {
			t.Errorf("%s: %d results, %v", name, strings.Count(string(text), "\n"), err)
		}
		seen := map[string]int{}
		for _, l := range second.AllLinks(t) {
			if strings.HasPrefix(l.LongURL, "https://"+name+".") {
				seen[l.LongURL]++
			}
		}
		for to, n := range seen {
			if n != 1 {
				t.Errorf("%s was created %d times", to, n)
			}
		}
		if len(seen) != rows {
			t.Errorf("%s: %d links", name, len(seen))
		}
	}
	for try, paused := 1, false; !paused; try++ { // the job may be quicker than who is to pause it
		name := fmt.Sprint("paused-", try)
		id, underWay := submit(name)
		if try == 10 {
			t.Fatal("all jobs ended before they were interrupted: this shows nothing")
		}
		if !underWay {
			continue
		}
		stop(t, first, func() {
			second = begin(t, 1, url)[0]
			paused = !get(second, id).Ended()
			ended(second, id)
		})
		if paused {
			soon(t, "the paused server hears of it", func() bool { // its save is refused
				return strings.Contains(first.Log(), "job interrupted")
			})
		}
		check(name, id)
		if code, _ := second.Terminate(t); code != 0 {
			t.Fatalf("ended with %d", code)
		}
	}
	for try, killed := 1, false; !killed; try++ { // as above
		if try > 10 {
			t.Fatal("all jobs ended before their server was killed: this shows nothing")
		}
		name := fmt.Sprint("killed-", try)
		id, _ := submit(name)
		first.Kill()
		killed = scan(t, url, "SELECT count(*) FROM jobs WHERE state IN ('queued', 'running')") > 0
		second = begin(t, 1, url)[0]
		check(name, id)
		first = second
	}
}
