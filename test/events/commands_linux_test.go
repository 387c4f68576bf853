package events_test

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"curt/test/internal/curttest"
)

// curt runs a command with the settings of the workers.
func (p *plant) curt(t *testing.T, env []string, args ...string) (out, complaint string, code int) {
	t.Helper()
	c := exec.CommandContext(t.Context(), curttest.Binary(t), args...)
	c.Env = append(append([]string{"CURT_ROLE=worker", "TZ=UTC"}, p.env...), env...)
	var stdout, stderr bytes.Buffer
	c.Stdout, c.Stderr = &stdout, &stderr
	err := c.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return stdout.String(), stderr.String(), c.ProcessState.ExitCode()
}

// commands compares, corrects and repeats what workers have brought to ClickHouse, as an
// operator does.
func (p *plant) commands(t *testing.T) {
	logged := 0
	for _, all := range p.logged(t) {
		logged += len(all)
	}
	from := time.Now().UTC().Add(-time.Hour).Truncate(time.Hour)
	hours := []string{"--hour=" + from.Format(time.RFC3339), "--hours=2"}
	verify := func(want int) (inKafka, wrong int) {
		t.Helper()
		out, complaint, code := p.curt(t, nil, append([]string{"clicks", "verify", "--csv"}, hours...)...)
		if code != want {
			t.Fatalf("verify ended with %d, want %d: %s%s", code, want, out, complaint)
		}
		lines, err := csv.NewReader(strings.NewReader(out)).ReadAll()
		if err != nil || len(lines) < 8 {
			t.Fatalf("%v:\n%s", err, out)
		}
		for _, line := range lines[1:] {
			if line[1] == "clicks" {
				n, _ := strconv.Atoi(line[3])
				w, _ := strconv.Atoi(line[4])
				inKafka, wrong = inKafka+n, wrong+w
			}
		}
		return inKafka, wrong
	}
	if inKafka, wrong := verify(0); inKafka != logged || wrong != 0 {
		t.Errorf("%d clicks are in Kafka, %d rows are wrong; the click log has %d", inKafka, wrong, logged)
	}
	before := p.clickhouse.Exec(t, "SELECT count(), sum(cityHash64(tuple(*))) FROM "+p.database+".clicks")
	for range 2 {
		_, complaint, code := p.curt(t, nil, "clicks", "replay", "--yes")
		if code != 0 || !strings.Contains(complaint, " 0 inserted") {
			t.Errorf("replay ended with %d: %s", code, complaint)
		}
	}
	if after := p.clickhouse.Exec(t, "SELECT count(), sum(cityHash64(tuple(*))) FROM "+p.database+".clicks"); after != before {
		t.Errorf("clicks after a replay: %s, before: %s", after, before)
	}
	if kept := p.clickhouse.Exec(t, "SELECT workspace, keep_days FROM "+p.database+".clicks GROUP BY ALL ORDER BY workspace FORMAT TSV"); kept != "\t30\ndefault\t90" {
		t.Errorf("for how many days clicks are kept, by workspace:\n%s", kept)
	}
	p.refuse(t)

	p.clickhouse.Exec(t, "INSERT INTO "+p.database+".clicks SELECT * FROM "+p.database+".clicks WHERE outcome = 1 LIMIT 3")
	if _, wrong := verify(1); wrong != 3 {
		t.Errorf("3 rows are there twice: %d are wrong", wrong)
	}
	p.clickhouse.Exec(t, "INSERT INTO "+p.database+".quarters SELECT * FROM "+p.database+".quarters LIMIT 1")
	if out, _, code := p.curt(t, nil, append([]string{"clicks", "verify", "--no-kafka"}, hours...)...); code != 1 || strings.Contains(out, "clicks  ") {
		t.Errorf("a row of quarters is there twice, and verify ended with %d:\n%s", code, out)
	}
}

// refuse runs commands that cannot be meant, or cannot be done: each says so in one line.
func (p *plant) refuse(t *testing.T) {
	t.Helper()
	folder := t.TempDir()
	broken := filepath.Join(folder, "broken")
	if err := os.WriteFile(broken, []byte("{\x1b[31m"), 0o600); err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(folder, "other")
	if err := os.WriteFile(other, fmt.Appendf(nil, `{"topic":"x","from":%q,"to":%q}`, time.Now().UTC().Format("2006-01-02T00:00:00Z"), time.Now().UTC().Add(25*time.Hour).Format("2006-01-02T00:00:00Z")), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		code int
		env  []string
		args []string
	}{
		{2, nil, []string{"verify", "--hour=yesterday"}},
		{2, nil, []string{"verify", "--hour=\x1b[31m"}},
		{2, nil, []string{"verify", "--hours=0"}},
		{2, nil, []string{"verify", "--hours=-1"}},
		{2, nil, []string{"verify", "--hours=745"}},
		{2, nil, []string{"verify", "--hours=1e9"}},
		{2, nil, []string{"verify", "--json", "--csv"}},
		{2, nil, []string{"verify", "--bogus"}},
		{2, nil, []string{"rebuild", "--yes", "--hour=" + time.Now().UTC().Format(time.RFC3339)}},
		{2, nil, []string{"rebuild"}}, // nobody can be asked; of today at most
		{2, nil, []string{"replay"}},
		{2, nil, []string{"replay", "--yes", "--from=tomorrow"}},
		{2, nil, []string{"replay", "--yes", "--from=1970-01-01"}},
		{2, nil, []string{"replay", "--yes", "--from=9999-12-31"}},
		{2, nil, []string{"replay", "--yes", "--to=1970-01-01"}},
		{2, nil, []string{"replay", "--yes", "--partition=-1"}},
		{2, nil, []string{"replay", "--yes", "--partition=12"}},
		{2, nil, []string{"replay", "--yes", "--partition=99999999999999999999"}},
		{2, nil, []string{"replay", "--yes", "--partition=0;DROP"}},
		{2, nil, []string{"replay", "--yes", "--state=" + folder}},
		{2, nil, []string{"replay", "--yes", "--state=" + broken}},
		{2, nil, []string{"replay", "--yes", "--state=" + other}},
		{69, []string{"CURT_EVENTS=kafka://127.0.0.1:1/clicks"}, []string{"verify"}},
		{69, []string{"CURT_ANALYTICS=clickhouse://127.0.0.1:1/x"}, []string{"replay", "--yes"}},
		{78, []string{"CURT_ANALYTICS="}, []string{"verify"}},
		{78, []string{"CURT_EVENTS=ftp://x"}, []string{"replay", "--yes"}},
	} {
		out, complaint, code := p.curt(t, c.env, append([]string{"clicks"}, c.args...)...)
		if code != c.code || strings.Count(complaint, "\n") != 1 || strings.Contains(complaint, "\x1b") || code == 2 && out != "" {
			t.Errorf("%v %v ended with %d, want %d: %q %q", c.env, c.args, code, c.code, out, complaint)
		}
	}
}
