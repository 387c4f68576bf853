package statefile_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"curt/internal/statefile"
)

func begin(t *testing.T, name string, s statefile.State) *statefile.File {
	t.Helper()
	f, err := statefile.Begin(name, s)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func lease(t *testing.T, f *statefile.File, counter string, next uint64) {
	t.Helper()
	if err := f.Update(func(s *statefile.State) { s.Leases[counter] = next }); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, name string) statefile.State {
	t.Helper()
	s, err := statefile.Read(name)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	name := filepath.Join(t.TempDir(), "state")
	if _, err := statefile.Read(name); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a file: %v", err)
	}
	f := begin(t, name, statefile.State{Open: true, Generation: 3, Leases: map[string]uint64{"a": 10}})
	before, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	lease(t, f, "a", 20)
	lease(t, f, "b", 5)
	lease(t, f, "a", 7) // leases never fall
	if err := f.Update(func(s *statefile.State) { s.Open = false }); err != nil {
		t.Fatal(err)
	}
	got := read(t, name)
	if want := map[string]uint64{"a": 20, "b": 5}; got.Open || got.Generation != 3 || !cmp.Equal(got.Leases, want) {
		t.Errorf("read %+v", got)
	}
	after, err := os.Stat(name)
	if err != nil || !os.SameFile(before, after) || after.Mode().Perm() != 0o600 {
		t.Errorf("it is another file, or others may read it: %v, %v", after.Mode(), err)
	}
	here, err := statefile.Here(name)
	if err != nil || !here.Same(got.Identity) {
		t.Errorf("it does not know itself: %+v, %+v, %v", here, got.Identity, err)
	}
	again := begin(t, name, statefile.State{Open: true, Generation: 4, Leases: map[string]uint64{"a": 1}})
	lease(t, again, "b", 6)
	if got := read(t, name); !got.Open || got.Generation != 4 || got.Leases["a"] != 20 || got.Leases["b"] != 6 {
		t.Errorf("after another process began: %+v", got)
	}
}

// A write that is torn, or a bit that flips, leaves the other slot, which is one write old.
func TestOneSlotMayBeDamaged(t *testing.T) {
	name := filepath.Join(t.TempDir(), "state")
	f := begin(t, name, statefile.State{Open: true})
	for n := range uint64(5) {
		lease(t, f, "a", n+1)
	}
	whole, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for at := 0; at < len(whole); at += 7 {
		spoiled := append([]byte(nil), whole...)
		spoiled[at] ^= 4
		if err := os.WriteFile(name, spoiled, 0o600); err != nil {
			t.Fatal(err)
		}
		if got := read(t, name); got.Leases["a"] < 4 || !got.Open {
			t.Fatalf("byte %d: %+v", at, got)
		}
	}
	if err := os.WriteFile(name, whole[:100], 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := statefile.Read(name); !errors.Is(err, statefile.ErrDamaged) {
		t.Errorf("cut: %v", err)
	}
	lease(t, f, "b", 1) // whoever has the store knows what was lost
	if got := read(t, name); got.Leases["a"] != 5 || got.Leases["b"] != 1 || !got.Open {
		t.Errorf("after the file was damaged: %+v", got)
	}
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	lease(t, f, "b", 2)
	if got := read(t, name); got.Leases["a"] != 5 || got.Leases["b"] != 2 {
		t.Errorf("after the file was deleted: %+v", got)
	}
}

// A copy is another file, one that was renamed is the same.
func TestACopyIsElsewhere(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "state")
	begin(t, name, statefile.State{Open: true})
	content, err := os.ReadFile(name)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "copy"), content, 0o600)
	}
	if err == nil {
		err = os.Rename(name, filepath.Join(dir, "renamed"))
	}
	if err != nil {
		t.Fatal(err)
	}
	for file, same := range map[string]bool{"copy": false, "renamed": true} {
		here, err := statefile.Here(filepath.Join(dir, file))
		if err != nil {
			t.Fatal(err)
		}
		if here.Same(read(t, filepath.Join(dir, file)).Identity) != same {
			t.Errorf("%s: same is not %t", file, same)
		}
	}
}

func TestWhatIsCompared(t *testing.T) {
	is := statefile.Identity{Machine: "m", Device: 1, Inode: 2, Born: 3}
	for name, c := range map[string]struct {
		other statefile.Identity
		same  bool
	}{
		"a reboot that gives the disk another number": {statefile.Identity{Machine: "m", Device: 9, Inode: 2, Born: 3}, true},
		"a container without an id":                   {statefile.Identity{Device: 1, Inode: 2, Born: 3}, true},
		"another machine":                             {statefile.Identity{Machine: "n", Device: 1, Inode: 2, Born: 3}, false},
		"another file":                                {statefile.Identity{Machine: "m", Device: 1, Inode: 4, Born: 3}, false},
		"the same inode of another disk":              {statefile.Identity{Machine: "m", Device: 1, Inode: 2, Born: 5}, false},
		"no time of birth, another disk":              {statefile.Identity{Machine: "m", Device: 9, Inode: 2}, false},
		"no time of birth, the same disk":             {statefile.Identity{Machine: "m", Device: 1, Inode: 2}, true},
	} {
		if is.Same(c.other) != c.same || c.other.Same(is) != c.same {
			t.Errorf("%s: same is not %t", name, c.same)
		}
	}
}
