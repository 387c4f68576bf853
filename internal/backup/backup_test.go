package backup_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"curt/internal/backup"
	"curt/internal/codegen/keypool"
	"curt/internal/link"
	"curt/internal/moderation"
	"curt/internal/moderation/moderationtest"
)

func silent(string, int64, int64) {}

// take backs a folder up or ends the test.
func take(t *testing.T, data string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "backup")
	if _, err := backup.Take(t.Context(), backup.TakeConfig{Data: data, To: to, Version: "test", Progress: silent}); err != nil {
		t.Fatal(err)
	}
	return to
}

func restore(t *testing.T, from, data string, force bool) (backup.Restored, error) {
	t.Helper()
	return backup.Restore(t.Context(), backup.RestoreConfig{From: from, Data: data, Force: force, Now: time.Now(), Progress: silent})
}

// tree returns the files of a folder with their content.
func tree(t *testing.T, folder string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		name, _ := filepath.Rel(folder, path)
		files[name] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// A folder that is restored has every link as it was, the same statistics, and the
// clicks that were not counted yet; the server had everything open.
func TestRestoredFolderIsWhatItWas(t *testing.T) {
	live := newFolder(t)
	from := take(t, live.data)
	data := t.TempDir()
	r, err := restore(t, from, data, false)
	if err != nil {
		t.Fatal(err)
	}
	again := openFolder(t, data)
	keys := slices.SortedFunc(maps.Keys(live.made), func(a, b link.Key) int { return strings.Compare(a.String(), b.String()) })
	if int(r.Links) != len(keys) {
		t.Errorf("restored %d links, want %d", r.Links, len(keys))
	}
	for _, k := range keys {
		got, err := again.links.Get(t.Context(), k)
		if d := cmp.Diff(live.made[k], got); d != "" || err != nil {
			t.Errorf("%s: %v\n%s", k, err, d)
		}
	}
	want, generation, err := live.rollups.Totals(t.Context(), keys)
	if err != nil {
		t.Fatal(err)
	}
	got, sameGeneration, err := again.rollups.Totals(t.Context(), keys)
	if d := cmp.Diff(want, got); d != "" || err != nil || generation != sameGeneration {
		t.Errorf("totals of generation %d and %d: %v\n%s", generation, sameGeneration, err, d)
	}
	again.fold(t)
	if n := again.counted(t); n != live.clicked {
		t.Errorf("%d clicks after the log was counted to its end, want %d", n, live.clicked)
	}
}

// The journal of moderation is whole in a backup, and goes on behind its last entry.
func TestRestoredJournalVerifiesAndGoesOn(t *testing.T) {
	live := newFolder(t)
	for n := range 3 {
		if _, err := live.links.Accounts().Journal().Append(t.Context(), moderationtest.Decision(t, n, link.Warn)); err != nil {
			t.Fatal(err)
		}
	}
	want, err := moderation.Verify(t.Context(), live.links.Accounts().Journal(), nil)
	if err != nil {
		t.Fatal(err)
	}
	data := t.TempDir()
	if _, err := restore(t, take(t, live.data), data, false); err != nil {
		t.Fatal(err)
	}
	again := openFolder(t, data).links.Accounts().Journal()
	if got, err := moderation.Verify(t.Context(), again, nil); err != nil || got.Hash != want.Hash || got.Sequence != 3 {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := again.Append(t.Context(), moderationtest.Decision(t, 3, link.Warn)); err != nil {
		t.Error(err)
	}
	if got, err := moderation.Verify(t.Context(), again, nil); err != nil || got.Sequence != 4 {
		t.Errorf("%+v, %v", got, err)
	}
}

// What is to be destroyed after its day is in no backup: the key of visitor tags.
func TestBackupHoldsNoKeyOfVisitors(t *testing.T) {
	live := newFolder(t)
	key, err := live.links.DayKey(t.Context(), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(filepath.Join(live.data, "curt.db-wal"))
	if err != nil || !bytes.Contains(raw, key[:]) {
		t.Fatalf("the key is not where this test looks for it: %v", err)
	}
	for name, text := range tree(t, take(t, live.data)) {
		if strings.Contains(text, string(key[:])) {
			t.Errorf("%s holds today's key", name)
		}
	}
}

// No code that a server gave away after the backup is given away again.
func TestRestoreSkipsCodes(t *testing.T) {
	live := newFolder(t)
	from := take(t, live.data)
	gone := map[link.Code]bool{}
	for range 500 {
		gone[live.mint(t).Key.Code] = true
	}
	data := t.TempDir()
	if _, err := restore(t, from, data, false); err != nil {
		t.Fatal(err)
	}
	again := openFolder(t, data)
	for range 2000 {
		if code := again.mint(t).Key.Code; gone[code] {
			t.Fatalf("%s was given away after the backup, and again", code)
		}
	}
}

// No key that a server took out of the pool after the backup is handed out again.
func TestRestoreDropsUnusedKeys(t *testing.T) {
	live := newFolder(t)
	keys := []link.Code{"aaaaaaa", "bbbbbbb"}
	if err := live.links.Keys().Put(t.Context(), "codes-7", keys); err != nil {
		t.Fatal(err)
	}
	from := take(t, live.data)
	if _, err := live.links.Keys().Take(t.Context(), "codes-7", "server"); err != nil {
		t.Fatal(err)
	}
	data := t.TempDir()
	if _, err := restore(t, from, data, false); err != nil {
		t.Fatal(err)
	}
	if b, err := openFolder(t, data).links.Keys().Take(t.Context(), "codes-7", "server"); !errors.Is(err, keypool.ErrEmpty) {
		t.Errorf("took %+v, %v from a restored folder", b, err)
	}
}

// A backup with one byte changed, a file missing, or half of itself is refused, and
// what is in the data folder stays as it is.
func TestDamagedBackupIsRefused(t *testing.T) {
	from := take(t, newFolder(t).data)
	data := newFolder(t).close(t)
	before := tree(t, data)
	for name, text := range tree(t, from) {
		path := filepath.Join(from, name)
		step := max(len(text)/25, 1)
		if len(text) < 3000 {
			step = 7 // the two texts, densely
		}
		for at := 0; at < len(text); at += step {
			damaged := []byte(text)
			damaged[at] ^= 1 << (at % 8)
			put(t, path, damaged)
			if _, err := backup.Verify(t.Context(), from, silent); !errors.Is(err, backup.ErrDamaged) || strings.Contains(err.Error(), "\n") {
				t.Fatalf("%s with byte %d changed: %v", name, at, err)
			}
			if at == 0 {
				refused(t, from, data)
			}
		}
		for _, cut := range []int{0, len(text) / 2, len(text) - 1} {
			put(t, path, []byte(text)[:cut])
			refused(t, from, data)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		refused(t, from, data)
		put(t, path, []byte(text))
	}
	if d := cmp.Diff(slices.Sorted(maps.Keys(before)), slices.Sorted(maps.Keys(tree(t, data)))); d != "" {
		t.Errorf("refused restores left the folder changed:\n%s", d)
	}
	if !maps.Equal(before, tree(t, data)) {
		t.Error("refused restores changed files")
	}
	if _, err := restore(t, from, data, true); err != nil {
		t.Errorf("the whole backup: %v", err)
	}
}

func put(t *testing.T, path string, text []byte) {
	t.Helper()
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

func refused(t *testing.T, from, data string) {
	t.Helper()
	if _, err := restore(t, from, data, true); !errors.Is(err, backup.ErrDamaged) {
		t.Fatalf("restore: %v", err)
	}
}

// A restore takes no folder with data in it unless it is told to, and then puts aside
// what is there. Whatever else lies there stays.
func TestRestoreReplacesOnlyByForce(t *testing.T) {
	from := take(t, newFolder(t).data)
	old := newFolder(t).close(t)
	put(t, filepath.Join(old, "of-somebody-else"), nil)
	before := tree(t, old)
	if _, err := restore(t, from, old, false); !errors.Is(err, backup.ErrNotEmpty) || !maps.Equal(before, tree(t, old)) {
		t.Fatalf("restore over data without force: %v", err)
	}
	r, err := restore(t, from, old, true)
	if err != nil {
		t.Fatal(err)
	}
	aside := tree(t, r.MovedTo)
	aside["of-somebody-else"] = ""
	if d := cmp.Diff(before, aside, cmp.Comparer(func(a, b string) bool { return len(a) == len(b) })); d != "" {
		t.Errorf("what was put aside is not what was there:\n%s", d)
	}
	if err := backup.Unfinished(old); err != nil {
		t.Error(err)
	}
}

// A backup is made where none is, of what is a data folder, and not by two at once.
func TestTakeRefuses(t *testing.T) {
	live, folder := newFolder(t), t.TempDir()
	config := backup.TakeConfig{Data: live.data, To: folder, Progress: silent}
	if _, err := backup.Take(t.Context(), config); err == nil {
		t.Error("a backup replaced a folder")
	}
	config.Data, config.To = folder, filepath.Join(folder, "to")
	if _, err := backup.Take(t.Context(), config); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("backup of an empty folder: %v", err)
	}
	config.Data = live.data
	config.Progress = func(string, int64, int64) {
		config.Progress = silent
		if _, err := backup.Take(t.Context(), config); err == nil || !strings.Contains(err.Error(), "another backup") {
			t.Errorf("a second backup to the same name: %v", err)
		}
	}
	if _, err := backup.Take(t.Context(), backup.TakeConfig{Data: config.Data, To: config.To, Progress: func(a string, b, c int64) { config.Progress(a, b, c) }}); err != nil {
		t.Error(err)
	}
}

// Wherever a backup or a restore is interrupted, nothing is left of it.
func TestInterruptedLeavesNothing(t *testing.T) {
	live := newFolder(t)
	from, data, to := take(t, live.data), newFolder(t).close(t), t.TempDir()
	before := tree(t, data)
	interrupted(t, func(ctx context.Context, told backup.ProgressFunc) error {
		_, err := backup.Take(ctx, backup.TakeConfig{Data: live.data, To: filepath.Join(to, "backup"), Progress: told})
		if left := tree(t, to); err != nil && len(left) > 0 {
			t.Fatalf("%d files of a backup were left", len(left))
		}
		return err
	})
	interrupted(t, func(ctx context.Context, told backup.ProgressFunc) error {
		_, err := backup.Restore(ctx, backup.RestoreConfig{From: from, Data: data, Force: true, Now: time.Now(), Progress: told})
		if err != nil && !maps.Equal(before, tree(t, data)) {
			t.Fatal("the data folder has changed")
		}
		return err
	})
}

// interrupted runs work again and again, each time interrupted one step later, until it
// is done.
func interrupted(t *testing.T, work func(context.Context, backup.ProgressFunc) error) {
	t.Helper()
	for stop := 1; ; stop++ {
		ctx, cancel := context.WithCancel(t.Context())
		seen := 0
		err := work(ctx, func(string, int64, int64) {
			if seen++; seen == stop {
				cancel()
			}
		})
		cancel()
		if err == nil {
			return
		}
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("stop %d: %v", stop, err)
		}
	}
}

// A manifest that signs itself still names no file outside.
func TestHostileManifestIsRefused(t *testing.T) {
	for _, name := range []string{"../../etc/passwd", "/etc/passwd", "clicks/../../x", "clicks/1.clicks", "lock", "clicks/", ""} {
		from := t.TempDir()
		put(t, filepath.Join(from, "curt.db"), nil)
		put(t, filepath.Join(from, "clicks.db"), nil)
		backup.Sign(t, from, "curt.db", "clicks.db", name)
		if _, err := backup.Verify(t.Context(), from, silent); !errors.Is(err, backup.ErrDamaged) {
			t.Errorf("a manifest that names %q: %v", name, err)
		}
	}
}

// One byte of a link that rotted in the data folder is in its copy, too: Take says so and
// keeps the copy, and Verify and Restore refuse it alike.
func TestRottenLinkIsNotWhole(t *testing.T) {
	data := newFolder(t).close(t)
	name := filepath.Join(data, "curt.db")
	raw, err := os.ReadFile(name)
	at := bytes.Index(raw, []byte("https://example.com/"))
	if err != nil || at < 0 {
		t.Fatal(err)
	}
	raw[at+len("https://e")] ^= 1
	put(t, name, raw)
	to := filepath.Join(t.TempDir(), "backup")
	_, err = backup.Take(t.Context(), backup.TakeConfig{Data: data, To: to, Progress: silent})
	if !errors.Is(err, backup.ErrRows) || !strings.Contains(err.Error(), "row ") || !strings.Contains(err.Error(), "link ") {
		t.Fatalf("backup of a rotten row: %v", err)
	}
	if _, err := backup.Verify(t.Context(), to, silent); !errors.Is(err, backup.ErrRows) {
		t.Errorf("check: %v", err)
	}
	into := t.TempDir()
	if _, err := restore(t, to, into, false); !errors.Is(err, backup.ErrRows) || len(tree(t, into)) > 0 {
		t.Errorf("restore: %v", err)
	}
}

// A backup and a data folder of which one lies in the other are refused, by any of their
// names, and nothing has changed.
func TestOneInTheOtherIsRefused(t *testing.T) {
	from, data := take(t, newFolder(t).data), newFolder(t).close(t)
	other := filepath.Join(t.TempDir(), "other")
	if err := os.Symlink(from, other); err != nil {
		t.Fatal(err)
	}
	before := tree(t, from)
	for _, into := range []string{from, other, filepath.Join(from, "clicks"), filepath.Join(other, "not/there"), filepath.Dir(from)} {
		if _, err := restore(t, from, into, true); err == nil || !strings.Contains(err.Error(), "must not contain each other") {
			t.Errorf("restore into %s: %v", into, err)
		}
	}
	if !maps.Equal(before, tree(t, from)) {
		t.Error("the backup has changed")
	}
	to := filepath.Join(data, "inner")
	if _, err := backup.Take(t.Context(), backup.TakeConfig{Data: data, To: to, Progress: silent}); err == nil || !strings.Contains(err.Error(), "must not contain") {
		t.Errorf("backup into the data folder: %v", err)
	}
}
