package sqlite_test

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"curt/internal/backend/sqlite"
	"curt/internal/backend/sqlite/sqlitedb"
	"curt/internal/link"
	"curt/internal/link/linktest"
)

// A bit that flips on the disk never leads a visitor elsewhere: the link is there as
// it was, or it is gone, or the store says that it cannot tell.
func TestLinksFlippedBits(t *testing.T) {
	path := filepath.Join(t.TempDir(), "curt.db")
	s, err := sqlite.OpenLinks(t.Context(), sqlite.LinksConfig{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	code := countedCodes(t)(s)
	var stored []link.Link
	for n := range uint64(40) {
		stored = append(stored, mustCreate(t, s, linktest.Counted(code(n), n, linktest.Epoch())), mustCreate(t, s, alias(int(n))))
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	intact, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	detected := 0
	for range 300 {
		damaged := bytes.Clone(intact)
		damaged[random.IntN(len(damaged))] ^= 1 << random.IntN(8)
		if err := os.WriteFile(path, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		if !rightOrRefused(t, path, stored) {
			detected++
		}
		for _, suffix := range []string{"-wal", "-shm"} {
			if err := os.Remove(path + suffix); err != nil && !errors.Is(err, os.ErrNotExist) {
				t.Fatal(err)
			}
		}
	}
	if detected == 0 {
		t.Error("no damage was detected, so nothing was tried")
	}
}

// rightOrRefused reports whether every look-up succeeded; a wrong target fails t.
func rightOrRefused(t *testing.T, path string, stored []link.Link) (whole bool) {
	s, err := sqlite.OpenLinks(t.Context(), sqlite.LinksConfig{Path: path, Synchronous: "NORMAL", Readers: 1})
	if err != nil {
		return false
	}
	defer func() { _ = s.Close() }()
	whole = true
	for _, l := range stored {
		got, err := s.Lookup(t.Context(), l.Key)
		switch {
		case err == nil && got != l.Target():
			t.Errorf("%s leads to %+v, want %+v", l.Key, got, l.Target())
		case err != nil && !errors.Is(err, link.ErrUnavailable) && !errors.Is(err, link.ErrNotFound):
			t.Errorf("look up %s: %v", l.Key, err)
		}
		whole = whole && err == nil
	}
	return whole
}

// Damage in a row that no redirect needs is found by Integrity's structure check or
// not at all; damage in what a redirect uses is always found.
func TestLinksIntegrity(t *testing.T) {
	s := new(files).fresh(t)
	for n := range 30 {
		mustCreate(t, s, alias(n))
	}
	if err := s.Integrity(t.Context()); err != nil {
		t.Fatalf("a sound file: %v", err)
	}
	if err := s.Write(t.Context(), "UPDATE links SET destination = 'https://evil.example/' WHERE code = 'alias-000007'"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Lookup(t.Context(), alias(7).Key); !errors.Is(err, sqlitedb.ErrCorrupt) || !errors.Is(err, link.ErrUnavailable) {
		t.Errorf("look up a changed row: %v, want %v", err, sqlitedb.ErrCorrupt)
	}
	if err := s.Integrity(t.Context()); !errors.Is(err, sqlitedb.ErrCorrupt) {
		t.Errorf("a changed row: %v, want %v", err, sqlitedb.ErrCorrupt)
	}
}

// Who says nothing gets links that survive a power cut, as the import into a folder does.
func TestLinksAreDurableUnlessAskedOtherwise(t *testing.T) {
	for asked, want := range map[string]int64{"": 2, "FULL": 2, "NORMAL": 1} {
		s, err := sqlite.OpenLinks(t.Context(), sqlite.LinksConfig{Path: filepath.Join(t.TempDir(), "curt.db"), Synchronous: asked})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := s.Synchronous(t.Context()); err != nil || got != want {
			t.Errorf("asked for %q: synchronous is %d, %v; want %d", asked, got, err, want)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// The key of codes is made once; a damaged one stops the start.
func TestLinksCodeKey(t *testing.T) {
	f, path := new(files), filepath.Join(t.TempDir(), "curt.db")
	s := f.open(t, path)
	key, err := s.CodeKey(t.Context())
	if err != nil || key == [32]byte{} {
		t.Fatalf("key %x, %v", key, err)
	}
	if again, err := f.open(t, path).CodeKey(t.Context()); err != nil || again != key {
		t.Errorf("another start has another key, %v", err)
	}
	if err := s.Write(t.Context(), "UPDATE settings SET value = zeroblob(36) WHERE name = 'code_key'"); err != nil {
		t.Fatal(err)
	}
	if _, err := sqlite.OpenLinks(t.Context(), sqlite.LinksConfig{Path: path}); !errors.Is(err, sqlitedb.ErrCorrupt) {
		t.Errorf("a start with a damaged key: %v, want %v", err, sqlitedb.ErrCorrupt)
	}
}

// The key of a past day is gone from every byte of the files.
func TestLinksDayKeysAreDestroyed(t *testing.T) {
	f, path := new(files), filepath.Join(t.TempDir(), "curt.db")
	s := f.open(t, path)
	day := linktest.Epoch()
	first, err := s.DayKey(t.Context(), day)
	if err != nil {
		t.Fatal(err)
	}
	late := day.Truncate(24 * time.Hour).Add(24*time.Hour - time.Millisecond)
	if again, err := f.open(t, path).DayKey(t.Context(), late); err != nil || again != first {
		t.Errorf("another process has another key for the day, %v", err)
	}
	if !holds(t, path, first[:]) {
		t.Error("the key of today is nowhere in the files, so the search below proves nothing")
	}
	next, err := s.DayKey(t.Context(), late.Add(time.Millisecond))
	if err != nil || next == first {
		t.Fatalf("the next day has the same key, %v", err)
	}
	if holds(t, path, first[:]) {
		t.Error("the key of a past day is still in the files")
	}
	if fresh, err := s.DayKey(t.Context(), day); err != nil || fresh == first {
		t.Errorf("the past day got its old key back, %v", err)
	}
}

// A key that is asked for before its day begins ends none of a day that is not over; those of
// days that are go when a key that is there is asked for, too.
func TestLinksDayKeysAheadOfTime(t *testing.T) {
	if day := 24 * time.Hour; time.Since(time.Now().Truncate(day)) > day-3*time.Minute {
		time.Sleep(time.Until(time.Now().Truncate(day).Add(day))) // or today is over in the middle of the test
	}
	f, path := new(files), filepath.Join(t.TempDir(), "curt.db")
	s, now := f.open(t, path), time.Now()
	var keys [3][16]byte
	for i, day := range []time.Time{now, now.Add(24 * time.Hour), now} {
		var err error
		if keys[i], err = s.DayKey(t.Context(), day); err != nil {
			t.Fatal(err)
		}
	}
	if keys[0] == keys[1] || keys[0] != keys[2] {
		t.Error("whoever asks for the key of the next day ends that of today")
	}
	past, err := s.DayKey(t.Context(), linktest.Epoch())
	if err != nil {
		t.Fatal(err)
	}
	if again, err := s.DayKey(t.Context(), now); err != nil || again != keys[0] || holds(t, path, past[:]) {
		t.Errorf("the key of a past day is still in the files, or that of today is not: %v", err)
	}
}

func holds(t *testing.T, path string, key []byte) bool {
	t.Helper()
	found := false
	for _, suffix := range []string{"", "-wal", "-shm"} {
		content, err := os.ReadFile(path + suffix)
		if err != nil {
			t.Fatal(err)
		}
		found = found || bytes.Contains(content, key)
	}
	return found
}

// Under writes without a pause the WAL is brought into the file again and again
// instead of growing with what is written.
func TestLinksRunBoundsTheWAL(t *testing.T) {
	path := filepath.Join(t.TempDir(), "curt.db")
	s, err := sqlite.OpenLinks(t.Context(), sqlite.LinksConfig{Path: path, CheckpointMiB: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	// The file of the WAL never shrinks, so the database file tells: it grows only by
	// checkpoints.
	code, n := countedCodes(t)(s), uint64(0)
	grown := 0
	for last := int64(0); grown < 3; n += 1000 {
		linktest.Fill(t, s, code, n, n+1000)
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if info.Size() > last {
			last = info.Size()
			grown++
		}
		if n > 1_000_000 {
			t.Fatalf("a million links brought %d checkpoints", grown)
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Errorf("run: %v", err)
	}
}

// A store that was closed is one file with everything in it.
func TestLinksCloseLeavesOneFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "curt.db")
	s, err := sqlite.OpenLinks(t.Context(), sqlite.LinksConfig{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	l := mustCreate(t, s, alias(1))
	for range 2 {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if info, err := os.Stat(path + "-wal"); err == nil && info.Size() > 0 {
		t.Errorf("%d bytes are left in the WAL", info.Size())
	}
	if got, err := new(files).open(t, path).Get(t.Context(), l.Key); err != nil || !cmp.Equal(got, l) {
		t.Errorf("after opening it again: %v", err)
	}
}
