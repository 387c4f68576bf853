package faults_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"curt.example/client"
	"curt/internal/testkit"
	"curt/test/internal/curttest"
)

// working is a server with jobs, which is killed and started again.
type working struct {
	*curttest.Server

	api *client.Client
}

func startWorking(t *testing.T, data string) working {
	t.Helper()
	s := curttest.Start(t, curttest.Options{Data: data})
	api, err := client.New("http://"+s.Addr, client.WithKey(curttest.Key))
	if err != nil {
		t.Fatal(err)
	}
	return working{s, api}
}

// send creates an import of rows and sends it.
func (w working) send(t *testing.T, rows int) string {
	t.Helper()
	var text strings.Builder
	text.WriteString("url,code\n")
	for i := range rows {
		code := ""
		if i%2 == 0 {
			code = fmt.Sprintf("own-%d", i)
		}
		_, _ = fmt.Fprintf(&text, "https://example.com/%d,%s\n", i, code)
	}
	j, err := w.api.Jobs.CreateImport(t.Context(), int64(text.Len()), client.JobOptions{})
	for rest := text.String(); err == nil && rest != ""; {
		n := min(len(rest), client.MaxJobInput)
		j, err = w.api.Jobs.SendInput(t.Context(), j.ID, j.Uploaded, []byte(rest[:n]), n == len(rest))
		rest = rest[n:]
	}
	if err != nil {
		t.Fatal(err)
	}
	return j.ID
}

// await polls a job until it is as wanted.
func (w working) await(t *testing.T, id string, ok func(*client.Job) bool) client.Job {
	t.Helper()
	for end := time.Now().Add(3 * time.Minute); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		j, err := w.api.Jobs.Get(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if ok(&j) {
			return j
		}
	}
	t.Fatal("the job does not come so far")
	return client.Job{}
}

// lines returns the lines of a result; each is different, or the test fails.
func (w working) lines(t *testing.T, id string) (all []string) {
	t.Helper()
	body, err := w.api.Jobs.Result(t.Context(), id, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = body.Close() }()
	seen := map[string]bool{}
	in := bufio.NewScanner(body)
	for in.Scan() {
		if seen[in.Text()] {
			t.Errorf("twice in the result: %s", in.Text())
		}
		seen[in.Text()] = true
		all = append(all, in.Text())
	}
	if in.Err() != nil {
		t.Fatal(in.Err())
	}
	return all
}

// killedImport kills a server while it imports. Where a test on a busy machine sees the job when it has ended, another
// server gets one that takes longer.
func killedImport(t *testing.T, rows, kills int) (w working, id string, imported int) {
	t.Helper()
	for ; rows <= 200_000; rows *= 2 {
		data := t.TempDir()
		w = startWorking(t, data)
		id = w.send(t, rows)
		killed := 0
		for at := int64(1); killed < kills; killed++ {
			j := w.await(t, id, func(j *client.Job) bool { return j.Ended() || j.Progress.Rows >= at })
			if j.Ended() {
				break
			}
			at = j.Progress.Rows + int64(rows/(kills+1))
			w.Kill()
			w = startWorking(t, data)
		}
		if killed > 0 {
			return w, id, rows
		}
		w.Kill()
	}
	t.Fatal("it was never killed: this shows nothing")
	return w, "", 0
}

// killedExport kills a server while it exports. Where a test sees the job when it has ended, there is another one.
func killedExport(t *testing.T, w working) (again working, id string) {
	t.Helper()
	for range 20 {
		export, err := w.api.Jobs.CreateExport(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		j := w.await(t, export.ID, func(j *client.Job) bool { return j.Ended() || j.Progress.Rows > 0 })
		if w.Kill(); !j.Ended() {
			return startWorking(t, w.Data), export.ID
		}
		w = startWorking(t, w.Data)
	}
	t.Fatal("no export was killed: this shows nothing")
	return w, ""
}

// killedJobs kills a server while it imports and while it exports; each job ends as if nothing had
// happened.
func killedJobs(t *testing.T, least, kills int) (w working, rows int) {
	w, id, rows := killedImport(t, least, kills)
	j := w.await(t, id, (*client.Job).Ended)
	if p := j.Progress; j.State != "done" || p.Created != int64(rows) || p.Failed != 0 || p.Rows != int64(rows) {
		t.Errorf("%+v", j)
	}
	lines := w.lines(t, id)
	for i, l := range lines {
		if !strings.HasPrefix(l, fmt.Sprintf(`{"line":%d,"short_code":"`, i+2)) {
			t.Fatalf("result %d is %s", i, l)
		}
	}
	w, export := killedExport(t, w)
	if j := w.await(t, export, (*client.Job).Ended); j.State != "done" || j.Progress.Rows != int64(rows) {
		t.Errorf("%+v", j)
	}
	seen := map[string]bool{}
	for _, l := range w.lines(t, export) {
		var r struct {
			LongURL string `json:"long_url"`
		}
		if err := json.Unmarshal([]byte(l), &r); err != nil || seen[r.LongURL] {
			t.Errorf("%v, or twice: %s", err, l)
		}
		seen[r.LongURL] = true
	}
	if len(seen) != rows || len(lines) != rows {
		t.Errorf("%d links and %d results of %d rows", len(seen), len(lines), rows)
	}
	return w, rows
}

func TestAKilledServerGoesOnWithItsJobs(t *testing.T) { killedJobs(t, 12_000, 1) }

// A hundred thousand rows, many kills, memory that the size of the file says nothing about, and a
// job that is canceled in the middle.
func TestAKilledServerGoesOnWithLargeJobs(t *testing.T) {
	testkit.Faults(t)
	w, rows := killedJobs(t, 100_000, rounds(6, 30))
	const most = 256 << 10 // KiB
	if got := peak(t, w.PID); got > most {
		t.Errorf("the server took %d KiB", got)
	}
	created := rows
	for canceled := false; !canceled; { // a busy machine may let it end before
		id := w.send(t, rows) // every other code is taken
		w.await(t, id, func(j *client.Job) bool { return j.Progress.Rows > 0 })
		_, err := w.api.Jobs.Cancel(t.Context(), id)
		j := w.await(t, id, (*client.Job).Ended)
		p := j.Progress
		if canceled = j.State == "canceled"; canceled && err != nil || !canceled && p.Rows != int64(rows) || len(w.lines(t, id)) != int(p.Rows) || p.Created+p.Failed != p.Rows {
			t.Fatalf("%+v, %v", j, err)
		}
		created += int(p.Created)
	}
	if got := len(w.AllLinks(t)); got != created {
		t.Errorf("%d links, and the jobs created %d", got, created)
	}
	if got := peak(t, w.PID); got > most {
		t.Errorf("the server took %d KiB", got)
	}
}

// peak is the most memory that a process had, in KiB.
func peak(t *testing.T, pid int) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, behind, _ := strings.Cut(string(status), "VmHWM:")
	n, err := strconv.Atoi(strings.Fields(behind)[0])
	if err != nil {
		t.Fatal(err)
	}
	return n
}
