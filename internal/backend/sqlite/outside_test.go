package sqlite_test

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"curt/internal/backend/sqlite"
	"curt/internal/backend/sqlite/leases"
	"curt/internal/codegen"
	"curt/internal/link"
	"curt/internal/link/linktest"
	"curt/internal/statefile"
	"curt/internal/testkit"
)

// dead is what a process that was killed leaves: the bytes of its files by suffix.
type dead map[string][]byte

// kill returns what is there while the store is open.
func kill(t *testing.T, path string) dead {
	t.Helper()
	d := dead{}
	for _, suffix := range []string{"", "-wal", "-shm", ".state"} {
		content, err := os.ReadFile(path + suffix)
		if err != nil {
			t.Fatal(err)
		}
		d[suffix] = content
	}
	return d
}

// in puts the files into a folder, as if the process had lived there. What is nil is left out.
func (d dead) in(t *testing.T, dir string) (path string) {
	t.Helper()
	path = filepath.Join(dir, "curt.db")
	for suffix, content := range d {
		if err := os.Remove(path + suffix); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		if content == nil {
			continue
		}
		if err := os.WriteFile(path+suffix, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	state, err := statefile.Read(path + ".state")
	if err != nil {
		return path // none, or a damaged one: the test means it
	}
	if err := os.Remove(path + ".state"); err != nil {
		t.Fatal(err)
	}
	if _, err := statefile.Begin(path+".state", state); err != nil {
		t.Fatal(err)
	}
	return path
}

// with returns a copy with another file.
func (d dead) with(suffix string, content []byte) dead {
	d = maps.Clone(d)
	d[suffix] = content
	return d
}

// lost is what Look says is lost; nil = nothing.
func lost(t *testing.T, path string) *leases.LostError {
	t.Helper()
	o, err := leases.Inspect(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	return o.Lost
}

// filledStore is an open store with some links, each of which was a transaction, and a lease.
func filledStore(t *testing.T, config sqlite.LinksConfig) (s *sqlite.Links, stored []link.Link) {
	t.Helper()
	s, err := sqlite.OpenLinks(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	if _, err := s.Lease(t.Context(), codegen.Counter(codegen.DefaultPrefix, 7), 10_000); err != nil {
		t.Fatal(err)
	}
	code := countedCodes(t)(s)
	for n := range uint64(20) {
		stored = append(stored, mustCreate(t, s, linktest.Counted(code(n), n, linktest.Epoch())))
	}
	return s, stored
}

// killed is what a store leaves that was killed after some links.
func killed(t *testing.T) (dead, []link.Link) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "curt.db")
	_, stored := filledStore(t, sqlite.LinksConfig{Path: path})
	return kill(t, path), stored
}

func missing(t *testing.T, s *sqlite.Links, stored []link.Link) (n int) {
	t.Helper()
	for _, l := range stored {
		if got, err := s.Get(t.Context(), l.Key); errors.Is(err, link.ErrNotFound) {
			n++
		} else if err != nil || got.ID != l.ID {
			t.Errorf("%s: %v, %v", l.Key, got.ID, err)
		}
	}
	return n
}

func openAt(t *testing.T, config sqlite.LinksConfig) (s *sqlite.Links, said string) {
	t.Helper()
	var log bytes.Buffer
	config.Log = slog.New(slog.NewTextHandler(&log, nil))
	s, err := sqlite.OpenLinks(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s, log.String()
}

// A kill after a commit loses nothing, and neither does a log that somebody brought into the
// file in order.
func TestAKilledStoreIsWhole(t *testing.T) {
	d, stored := killed(t)
	path := d.in(t, t.TempDir())
	if l := lost(t, path); l != nil {
		t.Errorf("after a kill: %v", l)
	}
	db, err := sql.Open("sqlite", path) // as the program sqlite3 would
	if err == nil {
		err = errors.Join(db.QueryRowContext(t.Context(), "SELECT count(*) FROM links").Scan(new(int)), db.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path + "-wal"); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("the log is still there, so nothing is tried: %v", err)
	}
	if l := lost(t, path); l != nil {
		t.Errorf("after another program used the file: %v", l)
	}
	s, said := openAt(t, sqlite.LinksConfig{Path: path})
	if n := missing(t, s, stored); n > 0 || said != "" {
		t.Errorf("%d links are missing; said %q", n, said)
	}
}

// The end of a log may be torn anywhere in the transaction that was under way.
func TestEveryTornEndIsNormal(t *testing.T) {
	testkit.Faults(t)
	tornEnds(t, 1)
}

// TestTornEndsAreNormal has some of them, other ones each time.
func TestTornEndsAreNormal(t *testing.T) {
	tornEnds(t, 7)
}

// tornEnds tears the log at each of so many bytes.
func tornEnds(t *testing.T, step int) {
	t.Helper()
	from := filepath.Join(t.TempDir(), "curt.db")
	s, stored := filledStore(t, sqlite.LinksConfig{Path: from})
	if err := s.Checkpoint(t.Context()); err != nil { // a short log is looked at sooner
		t.Fatal(err)
	}
	code := countedCodes(t)(s)
	stored = append(stored, mustCreate(t, s, linktest.Counted(code(20), 20, linktest.Epoch())))
	before := kill(t, from)
	mustCreate(t, s, linktest.Counted(code(21), 21, linktest.Epoch()))
	after := kill(t, from)["-wal"]
	end := 32 // of what was written since the checkpoint: behind it stands what was there before
	for n := 32; n < len(after) && bytes.Equal(after[n+8:n+16], after[16:24]); n += 24 + 4096 {
		end = n + 24 + 4096
	}
	begin := 0
	for begin < end && after[begin] == before["-wal"][begin] {
		begin++
	}
	after = after[:end]
	path := before.with("-wal", after).in(t, t.TempDir())
	for size := end - 1 - rand.IntN(step); size >= begin; size -= step {
		if err := os.Truncate(path+"-wal", int64(size)); err != nil {
			t.Fatal(err)
		}
		if l := lost(t, path); l != nil {
			t.Fatalf("torn %d bytes before its end: %v", len(after)-size, l)
		}
	}
	for range 10 {
		size := begin + rand.IntN(end-begin)
		again, said := openAt(t, sqlite.LinksConfig{Path: before.with("-wal", after[:size]).in(t, t.TempDir())})
		if n := missing(t, again, stored); n > 0 || said != "" {
			t.Errorf("torn %d bytes before its end: %d links are missing; said %q", len(after)-size, n, said)
		}
	}
	// After a power cut the index may be old, and the frames there in any order.
	for _, index := range [][]byte{nil, before["-shm"], make([]byte, len(before["-shm"]))} {
		torn := bytes.Clone(after)
		clear(torn[begin : begin+4096])
		if l := lost(t, before.with("-wal", torn).with("-shm", index).in(t, t.TempDir())); l != nil {
			t.Errorf("the first block of the last transaction is missing: %v", l)
		}
	}
}

// A bit that flips anywhere in the log, in the last transaction too, is found.
func TestEveryFlippedBitOfTheLogIsFound(t *testing.T) {
	d, _ := killed(t)
	path := d.in(t, t.TempDir())
	log := d["-wal"]
	const slot = 24 + 4096
	try := func(bit int) {
		t.Helper()
		now := bytes.Clone(log)
		now[bit/8] ^= 1 << (bit % 8)
		if err := os.WriteFile(path+"-wal", now, 0o600); err != nil {
			t.Fatal(err)
		}
		if lost(t, path) == nil {
			t.Errorf("bit %d of frame %d flipped: not found", (bit/8-32)%slot*8+bit%8, (bit/8-32)/slot+1)
		}
	}
	for bit := range 32 * 8 {
		try(bit)
	}
	for frame := 32; frame < len(log); frame += slot {
		for range 3 {
			try((frame+rand.IntN(24))*8 + rand.IntN(8))
			try((frame+rand.IntN(slot))*8 + rand.IntN(8))
		}
	}
}

// What is lost is refused, and given up only by force; no code is made again by then.
func TestALogThatIsGoneIsRefused(t *testing.T) {
	d, stored := killed(t)
	flipped := bytes.Clone(d["-wal"])
	flipped[32+24+100] ^= 4
	for name, c := range map[string]struct {
		dead dead
		says string
	}{
		"a bit of the first frame": {d.with("-wal", flipped), "the checksum of frame 1 is wrong"},
		"deleted":                  {d.with("-wal", nil), "curt.db-wal is missing"},
		"deleted with its index":   {d.with("-wal", nil).with("-shm", nil), "curt.db-wal is missing"},
		"emptied":                  {d.with("-wal", []byte{}).with("-shm", nil), "curt.db-wal is empty"},
		"cut in half":              {d.with("-wal", d["-wal"][:len(d["-wal"])/2]), "confirmed frames only"},
		"cut to its header":        {d.with("-wal", d["-wal"][:32]).with("-shm", nil), "curt.db-wal is empty"},
	} {
		path := c.dead.in(t, t.TempDir())
		_, err := sqlite.OpenLinks(t.Context(), sqlite.LinksConfig{Path: path})
		var refused *leases.LostError
		if !errors.As(err, &refused) || !strings.Contains(refused.Error(), c.says) || strings.Contains(refused.Error(), "\n") {
			t.Errorf("%s: %v, want one line with %q", name, err, c.says)
			continue
		}
		for suffix, content := range c.dead {
			if now, err := os.ReadFile(path + suffix); suffix != ".state" && !bytes.Equal(now, content) {
				t.Errorf("%s: %s was changed: %v", name, suffix, err)
			}
		}
		s, said := openAt(t, sqlite.LinksConfig{Path: path, Force: true})
		if missing(t, s, stored) == 0 || !strings.Contains(said, "without the lost transactions") || !strings.Contains(said, "links_at_most") {
			t.Errorf("%s: nothing is lost, or nothing is said of it: %q", name, said)
		}
		if next, err := s.Lease(t.Context(), codegen.Counter(codegen.DefaultPrefix, 7), 10_000); err != nil || next < 10_000 {
			t.Errorf("%s: the next lease begins at %d, before the end of the one that was given: %v", name, next, err)
		}
	}
}

// The generation is renewed when the log was brought into the file, so that its absence is
// noticed from then on, too.
func TestALogThatIsGoneAfterACheckpointIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "curt.db")
	s, _ := filledStore(t, sqlite.LinksConfig{Path: path})
	if err := s.Checkpoint(t.Context()); err != nil {
		t.Fatal(err)
	}
	mustCreate(t, s, alias(7))
	d := kill(t, path)
	if l := lost(t, d.in(t, t.TempDir())); l != nil {
		t.Errorf("a whole folder: %v", l)
	}
	if lost(t, d.with("-wal", nil).with("-shm", nil).in(t, t.TempDir())) == nil {
		t.Error("the log is gone, and nobody notices")
	}
}

// A store that ended in order needs no log, one that does not sync has none to be held to, and
// neither has one from before there was a state file.
func TestWhatIsNotRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "curt.db")
	s, _ := filledStore(t, sqlite.LinksConfig{Path: path})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if l := lost(t, path); l != nil {
		t.Errorf("after an end in order: %v", l)
	}
	loose := filepath.Join(t.TempDir(), "curt.db")
	filledStore(t, sqlite.LinksConfig{Path: loose, Synchronous: "NORMAL"})
	d := kill(t, loose)
	d["-wal"][32+24+100] ^= 4
	if l := lost(t, d.in(t, t.TempDir())); l != nil {
		t.Errorf("of a store that does not sync: %v", l)
	}
	d, _ = killed(t)
	d["-wal"][32+24+100] ^= 4
	old := d.with(".state", nil).in(t, t.TempDir())
	again, said := openAt(t, sqlite.LinksConfig{Path: old})
	if !strings.Contains(said, "without the lost transactions") {
		t.Errorf("of a folder from before, nothing is said: %q", said)
	}
	if next, err := again.Leased(t.Context(), codegen.Counter(codegen.DefaultPrefix, 7)); err != nil || next < 10_000_000 {
		t.Errorf("its next lease begins at %d: %v", next, err)
	}
}

// No code of a store is made again when an older curt.db takes its place, when it is copied,
// or when nobody knows what was leased; and none is skipped otherwise.
func TestLeasesAreKeptOutside(t *testing.T) {
	counter := codegen.Counter(codegen.DefaultPrefix, 7)
	path := filepath.Join(t.TempDir(), "curt.db")
	s, _ := filledStore(t, sqlite.LinksConfig{Path: path})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	older := dead{"": nil, "-wal": nil, "-shm": nil}
	var err error
	if older[""], err = os.ReadFile(path); err != nil {
		t.Fatal(err)
	}
	s, said := openAt(t, sqlite.LinksConfig{Path: path})
	if first, err := s.Lease(t.Context(), counter, 50_000); err != nil || first != 10_000 || said != "" {
		t.Fatalf("the second lease begins at %d: %v; said %q", first, err, said)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	state, err := os.ReadFile(path + ".state")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		state []byte
		home  bool
		says  string
		least uint64
	}{
		"an older curt.db":     {state, true, "curt.db is older", 10_060_000},
		"a damaged state file": {state[:50], true, "was damaged, recreated it", 10_010_000},
		"a copy":               {state, false, "was copied or moved", 10_060_000},
		"no state file":        {nil, true, "is missing, recreated it", 10_010_000},
	} {
		dir := t.TempDir()
		d := older.with(".state", c.state)
		at := d.in(t, dir)
		if !c.home {
			if err := os.WriteFile(at+".state", c.state, 0o600); err != nil { // with the identity of the other
				t.Fatal(err)
			}
		}
		var met []uint64
		for n := range 2 {
			s, said := openAt(t, sqlite.LinksConfig{Path: at})
			first, err := s.Lease(t.Context(), counter, 10_000)
			if err != nil || first < c.least {
				t.Errorf("%s: lease %d begins at %d, want %d: %v", name, n, first, c.least, err)
			}
			if said != "" && n == 1 || !strings.Contains(said, c.says) && n == 0 || strings.Count(said, "\n") > 2 {
				t.Errorf("%s: start %d says %q, want %q at the first", name, n, said, c.says)
			}
			met = append(met, first)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if met[1] != met[0]+10_000 {
			t.Errorf("%s: leases begin at %d: ids are skipped at each start", name, met)
		}
	}
}

// A store that is gone is not made anew: it would have another key of codes.
func TestAStoreThatIsGoneIsRefused(t *testing.T) {
	d, _ := killed(t)
	for _, content := range [][]byte{nil, {}} {
		path := d.with("", content).with("-wal", nil).with("-shm", nil).in(t, t.TempDir())
		for _, force := range []bool{false, true} {
			_, err := sqlite.OpenLinks(t.Context(), sqlite.LinksConfig{Path: path, Force: force})
			if !errors.Is(err, leases.ErrGone) {
				t.Errorf("without curt.db, force %t: %v", force, err)
			}
		}
	}
}

// A lease that the state file cannot keep is given to nobody.
func TestALeaseThatCannotBeKeptFails(t *testing.T) {
	path := filepath.Join(t.TempDir(), "curt.db")
	s, _ := filledStore(t, sqlite.LinksConfig{Path: path})
	if err := errors.Join(os.Remove(path+".state"), os.Mkdir(path+".state", 0o700)); err != nil {
		t.Fatal(err)
	}
	counter := codegen.Counter(codegen.DefaultPrefix, 7)
	if first, err := s.Lease(t.Context(), counter, 10_000); !errors.Is(err, link.ErrUnavailable) {
		t.Errorf("lease from %d: %v, want it refused", first, err)
	}
	if err := os.Remove(path + ".state"); err != nil {
		t.Fatal(err)
	}
	first, err := s.Lease(t.Context(), counter, 10_000)
	state, readErr := statefile.Read(path + ".state")
	if err != nil || readErr != nil || state.Leases[counter] != first+10_000 {
		t.Errorf("lease from %d: %v; kept %s: %v", first, err, fmt.Sprint(state.Leases), readErr)
	}
}
