package queued_test

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"curt/internal/testkit"
	"curt/test/internal/curttest"
)

// typed runs the built binary, in a folder without data.
func typed(t *testing.T, env []string, args ...string) (code int, out, errs string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), curttest.Binary(t), args...)
	command.Env = append([]string{"CURT_DATA=" + filepath.Join(t.TempDir(), "none"), "CURT_LISTEN=127.0.0.1:0", "CURT_ADMIN_LISTEN="}, env...)
	var printed, complained strings.Builder
	command.Stdout, command.Stderr = &printed, &complained
	err := command.Run()
	if command.ProcessState == nil {
		t.Fatalf("curt %s: %v", strings.Join(args, " "), err)
	}
	return command.ProcessState.ExitCode(), printed.String(), complained.String()
}

// commandSays runs the built binary, and looks for its exit code and a part of what it prints.
func commandSays(t *testing.T, env []string, want int, says string, args ...string) {
	t.Helper()
	if code, out, errs := typed(t, env, args...); code != want || !strings.Contains(out, says) {
		t.Errorf("curt %s: exit %d, want %d:\n%s%swant\n%s", strings.Join(args, " "), code, want, out, errs, says)
	}
}

// TestAQueueSharesNoTopicWithClicks: a topic that clicks, their dead letters or created links use is refused in one line, by the check and by
// the start, and so is one whose dead letters would be among the clicks.
func TestAQueueSharesNoTopicWithClicks(t *testing.T) {
	testkit.Faults(t)
	t.Parallel()
	kafka, links := testkit.StartKafka(t, 1), database(t)
	for _, c := range []struct{ clicks, queue, shared string }{
		{"clicks", "clicks", "clicks"}, {"clicks", "clicks.dead", "clicks.dead"}, {"clicks", "clicks.links.created", "clicks.links.created"}, {"queue.dead", "queue", "queue.dead"},
	} {
		queue := kafka.URL(c.queue)
		env := []string{
			"CURT_LINKS=" + links, "CURT_ANALYTICS=clickhouse://127.0.0.1:1/curt", "CURT_EVENTS=" + kafka.URL(c.clicks),
			"CURT_WRITES=queued", "CURT_WRITES_KAFKA=" + queue,
		}
		want := "CURT_WRITES_KAFKA=" + queue + ": expected another topic than " + c.queue + ": CURT_EVENTS uses the topic " + c.shared + ", too"
		code, out, _ := typed(t, env, "config", "check")
		told := slices.DeleteFunc(strings.Split(out, "\n"), func(line string) bool { return !strings.Contains(line, "CURT_WRITES") })
		if code != 78 || len(told) != 1 || told[0] != "wrong "+want {
			t.Errorf("clicks in %s, queue in %s: config check exits with %d:\n%swant\nwrong %s", c.clicks, c.queue, code, out, want)
		}
		for _, command := range []string{"serve", "migrate"} {
			code, _, errs := typed(t, env, command)
			if code != 78 || !strings.Contains(errs, want) || strings.Count(errs, "\n") != 1 {
				t.Errorf("clicks in %s, queue in %s: %s exits with %d:\n%swant\n%s", c.clicks, c.queue, command, code, errs, want)
			}
		}
	}
}

// TestCommandsAboutAPendingLink: what cannot be done before a link is written says so in one line, with when to try again, and works afterwards.
func TestCommandsAboutAPendingLink(t *testing.T) {
	testkit.Faults(t)
	t.Parallel()
	p := build(t, 1, database(t))
	s := p.start(t, "redirect,api", t.TempDir())
	made := call(t, s, "POST", "/api/v1/links", `{"long_url":"https://example.com/waits"}`)
	if made.Status != 202 {
		t.Fatalf("create: %d %q", made.Status, made.Body)
	}
	env, code := []string{"CURT_SERVER=http://" + s.Addr, "CURT_API_KEY=" + curttest.Key}, made.Link.Code
	commands := [][]string{
		{"links", "safety", code, "blocked", "--reason=test"},
		{"ban", "add", "link:" + code, "--reason=test", "--yes"},
		{"links", "update", code, "--title=x"},
		{"links", "delete", code, "--yes"},
	}
	for _, args := range commands {
		exit, out, errs := typed(t, env, args...)
		if exit != 1 || out != "" || strings.Count(errs, "\n") != 1 || !strings.Contains(errs, "the link was accepted and is not written yet") || !strings.Contains(errs, "; retry in ") {
			t.Errorf("curt %s: exit %d: %s%s", strings.Join(args, " "), exit, out, errs)
		}
	}
	if exit, out, errs := typed(t, env, "links", "safety", code); exit != 0 || !strings.Contains(out+errs, "clean") {
		t.Errorf("curt links safety %s: exit %d: %s%s", code, exit, out, errs)
	}
	if entries := journal(t, s); len(entries) != 0 {
		t.Errorf("the journal has %+v, want nothing about what was refused", entries)
	}
	p.start(t, "writer", t.TempDir())
	drained(t, s)
	for _, args := range commands {
		if exit, out, errs := typed(t, env, args...); exit != 0 {
			t.Errorf("written: curt %s: exit %d: %s%s", strings.Join(args, " "), exit, out, errs)
		}
	}
}
