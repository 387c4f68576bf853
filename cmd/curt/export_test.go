package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"curt/internal/backend/sqlite"
	"curt/internal/cli"
	"curt/internal/cli/movedata"
	"curt/internal/link"
	"curt/internal/moderation"
)

// fuse is a context that ends when it has been asked so often.
type fuse struct {
	context.Context

	left int
}

func (f *fuse) Err() error {
	if f.left--; f.left < 0 {
		return context.Canceled
	}
	return nil
}

// An export that is interrupted leaves no file of its name, and goes on where it was: the
// file is the same as one that was written at once.
func TestExportGoesOn(t *testing.T) {
	data := manyLinks(t, 2*movedata.ExportRows+100)
	var whole, said bytes.Buffer
	if code := run(t.Context(), []string{"export", "--data", data}, cli.Terminal{Out: &whole, Err: &said}); code != 0 {
		t.Fatal(said.String())
	}
	if n := strings.Count(whole.String(), "\n"); n != 2*movedata.ExportRows+100 {
		t.Fatalf("exported %d links", n)
	}
	name := filepath.Join(t.TempDir(), "links.jsonl")
	export := func(ctx context.Context, flags ...string) int {
		said.Reset()
		return run(ctx, append([]string{"export", "--data", data, "-o", name}, flags...), cli.Terminal{Out: &said, Err: &said})
	}
	if code := export(&fuse{t.Context(), 2}); code != cli.ExitInterrupted || !strings.Contains(said.String(), "--resume") {
		t.Fatalf("exit %d: %s", code, said.String())
	}
	if _, err := os.Stat(name); err == nil {
		t.Error("an interrupted export has its name")
	}
	// What the run wrote after it noted how far it was is written again.
	partial, err := os.OpenFile(name+".partial", os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := partial.WriteString(`{"id":"half of a l`); err != nil || partial.Close() != nil {
		t.Fatal(err)
	}
	if code := export(t.Context(), "--resume"); code != cli.ExitDone {
		t.Fatalf("exit %d: %s", code, said.String())
	}
	text, err := os.ReadFile(name)
	if err != nil || !bytes.Equal(text, whole.Bytes()) {
		t.Errorf("%d bytes in two runs, %d in one: %v", len(text), whole.Len(), err)
	}
	if left, err := filepath.Glob(name + ".*"); len(left) > 0 || err != nil {
		t.Errorf("left: %v %v", left, err)
	}
	if code := export(t.Context(), "--resume"); code != cli.ExitFailed {
		t.Errorf("exit %d when there is a file: %s", code, said.String())
	}
}

// manyLinks makes a data folder.
func manyLinks(t *testing.T, n int) string {
	t.Helper()
	data := t.TempDir()
	s, err := sqlite.OpenLinks(t.Context(), sqlite.LinksConfig{Path: filepath.Join(data, "curt.db")})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	links := make([]link.Link, n)
	for i := range links {
		links[i] = link.Link{
			ID: link.ID{1, byte(i >> 16), byte(i >> 8), byte(i)}, Key: link.Key{Code: link.Code(fmt.Sprintf("code-%d", i))},
			Destination: fmt.Sprintf("https://example.com/%d", i), Workspace: link.WorkspaceDefault, Status: link.Active,
			Safety: link.Clean, Redirect: 302, Created: now, Updated: now, Version: 1,
		}
	}
	if _, err := s.Import(t.Context(), links); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return data
}

// A rotten row costs an export that row, and its exit code.
func TestExportLeavesDamagedRowsOut(t *testing.T) {
	data := manyLinks(t, 20)
	name := filepath.Join(data, "curt.db")
	raw, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	rotten := bytes.Replace(raw, []byte("https://example.com/7"), []byte("https://exbmple.com/7"), 1)
	if err := os.WriteFile(name, rotten, 0o600); err != nil || bytes.Equal(raw, rotten) {
		t.Fatal(err, "nothing was changed")
	}
	code, out, said := curt(t.Context(), "export", "--data", data)
	if code != cli.ExitFailed || strings.Count(out, "\n") != 19 || !strings.Contains(said, `link "/code-7"`) || !strings.Contains(said, "1 damaged rows were left out, 19 links are whole") {
		t.Errorf("exit %d, %d links: %s", code, strings.Count(out, "\n"), said)
	}
}

// An export that begins anew forgets how far the one before it was, so that nothing goes
// on in a file that is shorter.
func TestExportBeginsAnew(t *testing.T) {
	data := manyLinks(t, 20)
	name := filepath.Join(t.TempDir(), "links.jsonl")
	stale := []byte(`{"what":"links","bytes":9999,"rows":5,"cursor":"x"}`)
	for file, text := range map[string][]byte{name + ".partial": nil, name + ".cursor": stale} {
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if code, _, said := curt(t.Context(), "export", "--data", data, "-o", name, "--resume"); code != cli.ExitFailed || !strings.Contains(said, "shorter than") {
		t.Errorf("exit %d: %s", code, said)
	}
	if code, _, said := curt(&fuse{t.Context(), 0}, "export", "--data", data, "-o", name); code != cli.ExitInterrupted {
		t.Errorf("exit %d: %s", code, said)
	}
	if code, _, said := curt(t.Context(), "export", "--data", data, "-o", name, "--resume"); code != cli.ExitFailed || !strings.Contains(said, "run without --resume to start") {
		t.Errorf("exit %d: %s", code, said)
	}
	if code, _, said := curt(t.Context(), "export", "--data", data, "-o", name); code != cli.ExitDone || !strings.Contains(said, "20 links in") {
		t.Errorf("exit %d: %s", code, said)
	}
}

// A deleted link goes through an export and into another folder as what its delete left: without
// its content, and with its code, which nobody gets there either.
func TestTombstonesAreExported(t *testing.T) {
	data := manyLinks(t, 3)
	links := openLinks(t, data)
	key := link.Key{Code: "code-1"}
	dead, err := link.Update(t.Context(), links, key, "tester", func(l *link.Link) error {
		*l = l.Tombstone(l.Updated.Add(time.Hour))
		l.Safety = link.Blocked
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := links.Close(); err != nil {
		t.Fatal(err)
	}
	for _, format := range [][]string{nil, {"--csv"}} {
		_, rows, said := curt(t.Context(), append([]string{"export", "--data", data}, format...)...)
		if strings.Count(rows, "code-") != 3 || strings.Contains(rows, "example.com/1") || !strings.Contains(rows, "deleted") {
			t.Errorf("%v: exported\n%s%s", format, rows, said)
		}
		other := t.TempDir()
		if code, out, said := curt(t.Context(), "import", "--data", other, tempFile(t, "rows.export", rows)); code != cli.ExitDone {
			t.Fatalf("%v: exit %d: %s %s", format, code, out, said)
		}
		if _, again, said := curt(t.Context(), append([]string{"export", "--data", other}, format...)...); again != rows {
			t.Errorf("%v: exported again\n%s%s, want\n%s", format, again, said, rows)
		}
		links := openLinks(t, other)
		got, err := links.Get(t.Context(), key)
		if d := cmp.Diff(dead, got); err != nil || d != "" {
			t.Errorf("%v: %v (-exported +imported):\n%s", format, err, d)
		}
		rival := link.Link{
			ID: link.ID{9}, Key: key, Destination: "https://example.com/", Workspace: link.WorkspaceDefault,
			Status: link.Active, Safety: link.Clean, Redirect: 302, Created: dead.Created, Updated: dead.Created,
		}
		if _, err := links.Create(t.Context(), rival); !errors.Is(err, link.ErrExists) {
			t.Errorf("%v: the code of a deleted link was given away: %v", format, err)
		}
		// What was decided about it needs nobody any more.
		if last, err := moderation.Verify(t.Context(), links.Accounts().Journal(), nil); err != nil || last.Sequence != 0 {
			t.Errorf("%v: the journal ends at %d, %v", format, last.Sequence, err)
		}
		if err := links.Close(); err != nil {
			t.Error(err)
		}
	}
}

func openLinks(t *testing.T, data string) *sqlite.Links {
	t.Helper()
	links, err := sqlite.OpenLinks(t.Context(), sqlite.LinksConfig{Path: filepath.Join(data, "curt.db")})
	if err != nil {
		t.Fatal(err)
	}
	return links
}
