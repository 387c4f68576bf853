package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"curt/internal/backend/sqlite"
	"curt/internal/codegen"
	"curt/internal/link"
	"curt/internal/link/linktest"
)

func alias(n int) link.Link {
	l := linktest.Counted(link.Code(fmt.Sprintf("alias-%06d", n)), uint64(n), linktest.Epoch())
	l.CodeKind = link.Chosen
	return l
}

func mustCreate(t testing.TB, s *sqlite.Links, l link.Link) link.Link {
	t.Helper()
	stored, err := s.Create(t.Context(), l)
	if err != nil {
		t.Fatal(err)
	}
	return stored
}

// hold keeps the writer busy until the returned function is called.
func hold(t testing.TB, s *sqlite.Links) (release func()) {
	t.Helper()
	held, free, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- s.Hold(context.WithoutCancel(t.Context()), func() error { close(held); <-free; return nil })
	}()
	<-held
	return func() {
		close(free)
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// queued waits until n callers wait for the writer.
func queued(s *sqlite.Links, n int) {
	for s.Queued() < n {
		runtime.Gosched()
	}
}

// Callers that share a transaction do not share their failures.
func TestLinksGroupCommitAnswersEachCaller(t *testing.T) {
	s := new(files).fresh(t)
	taken := mustCreate(t, s, alias(0))
	release := hold(t, s)
	const callers = 30
	errs := make([]error, callers)
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			switch i % 3 {
			case 0:
				_, errs[i] = s.Create(t.Context(), alias(i+1))
			case 1:
				rival := alias(i + 1)
				rival.Key = taken.Key
				_, errs[i] = s.Create(t.Context(), rival)
			case 2: // fails inside SQLite
				errs[i] = s.Write(t.Context(), "INSERT INTO links (n) VALUES ('not a number')")
			}
		})
	}
	queued(s, callers)
	release()
	wg.Wait()
	for i, err := range errs {
		switch i % 3 {
		case 0:
			if _, getErr := s.Get(t.Context(), alias(i+1).Key); err != nil || getErr != nil {
				t.Errorf("caller %d: %v; then %v", i, err, getErr)
			}
		case 1:
			if !errors.Is(err, link.ErrExists) {
				t.Errorf("caller %d: %v, want %v", i, err, link.ErrExists)
			}
		case 2:
			if !errors.Is(err, link.ErrUnavailable) {
				t.Errorf("caller %d: %v, want a refusal", i, err)
			}
		}
	}
	if err := s.Healthy(); err != nil {
		t.Errorf("one caller's bad statement broke the store: %v", err)
	}
}

// A caller whose context ends leaves at once, while the writer is still busy.
func TestLinksCallersLeaveABusyWriter(t *testing.T) {
	s := new(files).fresh(t)
	release := hold(t, s)
	reason := errors.New("the caller went home")
	ctx, cancel := context.WithCancelCause(t.Context())
	l, answer := alias(1), make(chan error)
	go func() {
		_, err := s.Create(ctx, l)
		answer <- err
	}()
	queued(s, 1)
	cancel(reason)
	if err := <-answer; !errors.Is(err, reason) || errors.Is(err, link.ErrUnavailable) {
		t.Errorf("left with %v, want %v and no sentinel", err, reason)
	}
	release()
	mustCreate(t, s, l) // whether it happened or not, the same id settles it
}

// A full disk refuses writes and nothing else, and heals by itself.
func TestLinksFullDisk(t *testing.T) {
	s := new(files).fresh(t)
	first := mustCreate(t, s, alias(0))
	if err := s.Exec(t.Context(), "PRAGMA max_page_count = 1"); err != nil { // = as many as there are
		t.Fatal(err)
	}
	created := 0
	var full error
	for i := 1; full == nil && i < 10_000; i++ {
		if _, full = s.Create(t.Context(), alias(i)); full == nil {
			created++
		}
	}
	if !errors.Is(full, link.ErrFull) || !errors.Is(full, link.ErrUnavailable) {
		t.Fatalf("after %d creates: %v, want %v", created, full, link.ErrFull)
	}
	if _, err := s.CreateMany(t.Context(), linktest.Epoch(), linktest.Entries(alias(20_000), alias(20_001))); !errors.Is(err, link.ErrFull) {
		t.Errorf("a batch: %v, want %v", err, link.ErrFull)
	}
	if got, err := s.Get(t.Context(), first.Key); err != nil || !cmp.Equal(got, first) {
		t.Errorf("reads while full: %v", err)
	}
	if _, err := s.Get(t.Context(), alias(created+1).Key); !errors.Is(err, link.ErrNotFound) {
		t.Errorf("the refused link: %v, want %v", err, link.ErrNotFound)
	}
	if err := s.Exec(t.Context(), "PRAGMA max_page_count = 1000000"); err != nil {
		t.Fatal(err)
	}
	mustCreate(t, s, alias(created+1))
	if err := s.Integrity(t.Context()); err != nil {
		t.Error(err)
	}
}

// A start whose leases are older than its links skips what may have been leased.
func TestLinksSkipStaleLeases(t *testing.T) {
	f, path := new(files), filepath.Join(t.TempDir(), "curt.db")
	s := f.open(t, path)
	code := countedCodes(t)(s)
	counter := codegen.Counter(codegen.DefaultPrefix, 7)
	if _, err := s.Lease(t.Context(), counter, 10_000); err != nil {
		t.Fatal(err)
	}
	mustCreate(t, s, linktest.Counted(code(9_999), 1, linktest.Epoch()))
	mark := func(s *sqlite.Links) uint64 {
		got, err := s.Leased(t.Context(), counter)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	if got := mark(f.open(t, path)); got != 10_000 {
		t.Errorf("a start with fresh leases moved the mark to %d", got)
	}
	mustCreate(t, s, linktest.Counted(code(10_000), 2, linktest.Epoch()))
	if got := mark(f.open(t, path)); got < 10_010_001 || got > 20_010_001 {
		t.Errorf("a start with stale leases moved the mark to %d, want 10,010,001 to 20,010,001", got)
	}
}

// The change log keeps its newest entries, and tells a reader what it trimmed.
func TestLinksTrimChanges(t *testing.T) {
	s, err := sqlite.OpenLinks(t.Context(), sqlite.LinksConfig{Path: filepath.Join(t.TempDir(), "curt.db"), ChangeLog: 100})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	batch := make([]link.Link, 1000)
	for i := range batch {
		batch[i] = alias(i)
	}
	if _, err := s.CreateMany(t.Context(), linktest.Epoch(), linktest.Entries(batch...)); err != nil {
		t.Fatal(err)
	}
	if head, err := s.Head(t.Context()); err != nil || head != "1000" {
		t.Fatalf("head %s, %v", head, err)
	}
	if _, _, err := s.Changes(t.Context(), "10", 10); !errors.Is(err, link.ErrConflict) {
		t.Errorf("changes after a trimmed position: %v, want %v", err, link.ErrConflict)
	}
	if got, _, err := s.Changes(t.Context(), "900", 200); err != nil || len(got) != 100 || got[0].Sequence != 901 {
		t.Errorf("the newest 100: %d from %v, %v", len(got), got[:min(1, len(got))], err)
	}
}

// A filter that matches one link at the far end gets there by short pages, none of
// which reads more than its share.
func TestLinksListInShortPages(t *testing.T) {
	s := new(files).fresh(t)
	needle := alias(1)
	needle.Status = link.Disabled
	mustCreate(t, s, needle)
	linktest.Fill(t, s, countedCodes(t)(s), 0, 22_000)
	p, pages, found := link.Page{Limit: 10}, 0, 0
	for {
		got, err := s.List(t.Context(), link.Filter{Status: link.Disabled}, p)
		if err != nil {
			t.Fatal(err)
		}
		pages, found = pages+1, found+len(got.Links)
		if p.After = got.Next; p.After == "" {
			break
		}
	}
	if pages != 6 || found != 1 {
		t.Errorf("%d links on %d pages, want 1 on 6", found, pages)
	}
}
