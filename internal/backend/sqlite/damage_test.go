package sqlite_test

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"curt/internal/backend/sqlite"
	"curt/internal/codegen"
	"curt/internal/link"
	"curt/internal/link/linktest"
	"curt/internal/testkit"
)

// flips is a store with a row of each kind, whose bits are flipped one at a time.
type flips struct {
	t      *testing.T
	path   string
	intact []byte
	links  map[link.Key]link.Link // by key, all of them
	roots  map[string]int         // pages of tables and indexes
}

func newFlips(t *testing.T) *flips {
	f := &flips{t: t, path: filepath.Join(t.TempDir(), "curt.db"), links: map[link.Key]link.Link{}, roots: map[string]int{}}
	s := f.open()
	code := countedCodes(t)(s)
	for n := range uint64(4) {
		l := linktest.Counted(code(n+1), n+1, linktest.Epoch())
		l.Title, l.Tags, l.Expires = "a title", []string{"one", "two"}, linktest.Epoch().Add(time.Hour)
		f.keep(mustCreate(t, s, l))
		f.keep(mustCreate(t, s, alias(int(n)+10)))
	}
	extended := alias(22)
	extended.Later.Members = `{"x_note":"a note"}`
	f.keep(mustCreate(t, s, extended))
	extended = alias(23)
	extended.Later = link.Later{Needs: 5, Members: `{"x_password":"a hash"}`}
	f.keep(mustCreate(t, s, extended))
	limited := alias(20)
	limited.MaxClicks, limited.Fallback = 9, "https://fallback.example/"
	f.keep(mustCreate(t, s, limited))
	if _, err := s.Spend(t.Context(), limited.Key, 4); err != nil {
		t.Fatal(err)
	}
	limited = f.links[limited.Key]
	limited.Spent = 4
	f.keep(limited)
	gone := mustCreate(t, s, alias(21))
	gone, err := s.Replace(t.Context(), gone.Tombstone(gone.Updated), link.Edit{})
	if err != nil {
		t.Fatal(err)
	}
	f.keep(gone)
	f.others(s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if f.intact, err = os.ReadFile(f.path); err != nil {
		t.Fatal(err)
	}
	f.findRoots()
	return f
}

func (f *flips) keep(l link.Link) { f.links[l.Key] = l }

// others makes a row of each kind that is no link.
func (f *flips) others(s *sqlite.Links) {
	f.t.Helper()
	if _, err := s.DayKey(f.t.Context(), linktest.Epoch()); err != nil {
		f.t.Fatal(err)
	}
	if _, err := s.Lease(f.t.Context(), codegen.Counter(codegen.DefaultPrefix, 7), 1000); err != nil {
		f.t.Fatal(err)
	}
	for _, statement := range []string{
		"INSERT INTO idempotency VALUES ('a caller', 'a key', randomblob(32), randomblob(16), '', 'alias-000010', 0, 0, 1780000000000)",
		"INSERT INTO keys SELECT randomblob(16), n, 'a key', 'links:read', 1780000000000, 'admin', 0, 0 FROM workspaces WHERE name = 'default'",
		"INSERT INTO key_secrets SELECT randomblob(32), id, 0 FROM keys",
		"INSERT INTO shares VALUES ('', 'alias-000011', 'default', randomblob(32))",
		"INSERT INTO journal VALUES (1, 1780000000000, 'link', '/alias-000010', randomblob(16), 'decide', 1, 0, 'admin', '', x'', x'', '', x'', x'', randomblob(32))",
		"INSERT INTO cases (id, link, domain, code, workspace, host, sources, score, opened, due) VALUES (randomblob(16), randomblob(16), '', 'alias-000010', 'default', 'a.example', 1, 50, 1780000000000, 1780000000001)",
		"INSERT INTO appeals VALUES (randomblob(16), randomblob(16), '', 'alias-000010', randomblob(32), 1780000000000, '', 1, 'a reason', 0, 0, '', 1, '', 0)",
	} {
		if err := s.Write(f.t.Context(), statement); err != nil {
			f.t.Fatalf("%s: %v", statement, err)
		}
	}
}

// findRoots finds every table and index that has rows of ours. Settings have the key of codes,
// whose damage refuses the start (TestLinksKeyOfCodes), and migrations are not the server's.
func (f *flips) findRoots() {
	f.t.Helper()
	db, err := sql.Open("sqlite", f.path)
	if err != nil {
		f.t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	rows, err := db.QueryContext(f.t.Context(), `SELECT type || ' ' || name, rootpage FROM sqlite_schema
		WHERE rootpage > 0 AND tbl_name NOT IN ('settings', 'goose_db_version', 'sqlite_sequence')`)
	if err != nil {
		f.t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var name string
		var root int
		if err := rows.Scan(&name, &root); err != nil {
			f.t.Fatal(err)
		}
		f.roots[name] = root
	}
	if err := rows.Err(); err != nil {
		f.t.Fatal(err)
	}
}

func (f *flips) open() *sqlite.Links {
	f.t.Helper()
	// No fsync: thousands of stores, and none that lives through a power cut.
	s, err := sqlite.OpenLinks(f.t.Context(), sqlite.LinksConfig{Path: f.path, Synchronous: "OFF"})
	if err != nil {
		f.t.Fatal(err)
	}
	return s
}

// flip opens the store with one bit of the file flipped, and looks at it.
func (f *flips) flip(at int, name string) {
	what := fmt.Sprintf("%s, byte %d", name, at)
	file := bytes.Clone(f.intact)
	file[at] ^= 1 << (at % 8)
	for _, beside := range []string{"-wal", "-shm"} {
		_ = os.Remove(f.path + beside)
	}
	if err := os.WriteFile(f.path, file, 0o600); err != nil {
		f.t.Fatal(err)
	}
	named := f.named()
	s, err := sqlite.OpenLinks(f.t.Context(), sqlite.LinksConfig{Path: f.path, Synchronous: "OFF"})
	if err != nil {
		f.t.Errorf("%s: it does not open: %v", what, err)
		return
	}
	defer func() { _ = s.Close() }()
	ofLink := strings.HasSuffix(name, " links") || strings.Contains(name, " links_") || strings.Contains(name, "aliases")
	if ofLink && !named {
		f.t.Errorf("%s: doctor's checks find nothing", what)
	}
	hit := f.look(s, what, strings.Contains(name, "workspaces"))
	if len(hit) > 1 && !strings.Contains(name, "workspaces") {
		f.t.Errorf("%s: it costs %d links: %v", what, len(hit), hit)
	}
	if strings.Contains(name, "workspaces") {
		return // its links have no owner that can be told; they are redirected, as was seen
	}
	f.list(s, what, hit)
	f.write(s, what, hit)
}

// named reports whether the checks of doctor --all find something.
func (f *flips) named() bool {
	s, err := sqlite.TakeSnapshot(f.t.Context(), f.path)
	if err != nil {
		return true
	}
	defer func() { _ = s.Close() }()
	damage, err := s.Damage(true)
	rows, failed := s.EachLink(f.t.Context(), func(*link.Link) {})
	return err != nil || failed != nil || len(damage) > 0 || len(rows.Damaged) > 0 || rows.Hidden > 0
}

// look asks for every link, and returns those that are not as they were: each has an error,
// and none another address.
func (f *flips) look(s *sqlite.Links, what string, owners bool) (hit []link.Key) {
	for k, want := range f.links {
		target, err := s.Lookup(f.t.Context(), k)
		if newer, is := errors.AsType[*link.NewerError](err); is && newer.Needs == want.Later.Needs {
			err = nil // as it should
		} else if err == nil && (target != want.Target() || want.Later.Needs != 0) {
			f.t.Errorf("%s: %s leads to %+v, want %+v", what, k, target, want.Target())
		}
		if err != nil && !errors.Is(err, link.ErrUnavailable) && !errors.Is(err, link.ErrNotFound) {
			f.t.Errorf("%s: look up %s: %v", what, k, err)
		}
		l, whole := s.Get(f.t.Context(), k)
		if whole == nil && !cmp.Equal(l, want) && !owners {
			f.t.Errorf("%s: %s is shown as (-want +got):\n%s", what, k, cmp.Diff(want, l))
		}
		if err != nil || whole != nil {
			hit = append(hit, k)
		}
	}
	return hit
}

// list walks through all links, in both orders, in small pages.
func (f *flips) list(s *sqlite.Links, what string, hit []link.Key) {
	for _, oldest := range []bool{true, false} {
		seen := map[link.Key]int{}
		page := link.Slice{}
		for rounds := 0; rounds == 0 || page.Next != ""; rounds++ {
			var err error
			page, err = s.List(f.t.Context(), link.Filter{Oldest: oldest}, link.Page{After: page.Next, Limit: 2})
			if err != nil || rounds > 2*len(f.links) {
				f.t.Errorf("%s: list %d: %v", what, rounds, err)
				break
			}
			for i := range page.Links {
				seen[page.Links[i].Key]++
			}
		}
		missing := 0
		for k, l := range f.links {
			if n := seen[k]; n > 1 || n == 0 && l.Status != link.Deleted && !slices.Contains(hit, k) {
				if missing++; n > 1 || missing > 1 { // an entry of the index alone costs its own link
					f.t.Errorf("%s: %s is listed %d times, oldest first %t", what, k, n, oldest)
				}
			}
		}
		if extra := len(seen) - len(f.links); extra > 0 {
			f.t.Errorf("%s: %d links more than there are", what, extra)
		}
	}
	if _, err := s.GetMany(f.t.Context(), slices.Collect(maps.Keys(f.links))); err != nil {
		f.t.Errorf("%s: get many: %v", what, err)
	}
}

// write creates a link, changes each that is as it was and deletes each that is not.
func (f *flips) write(s *sqlite.Links, what string, hit []link.Key) {
	fresh := alias(99)
	if _, err := s.Create(f.t.Context(), fresh); err != nil {
		f.t.Errorf("%s: create: %v", what, err)
	}
	for k, l := range f.links {
		thief := linktest.Counted(k.Code, 1000, linktest.Epoch())
		thief.CodeKind = link.Chosen
		if got, err := s.Create(f.t.Context(), thief); err == nil {
			f.t.Errorf("%s: a second link got the code %s: %v", what, k, got.Destination)
		}
		if slices.Contains(hit, k) || l.Status == link.Deleted {
			continue
		}
		l.Title, l.Expires = "another title", time.Time{}
		if _, err := s.Replace(f.t.Context(), l, link.Edit{}); err != nil {
			f.t.Errorf("%s: change %s: %v", what, k, err)
		}
	}
	for _, k := range hit {
		_, err := s.Get(f.t.Context(), k)
		lost, damaged := errors.AsType[*link.DamagedError](err)
		if !damaged {
			continue
		}
		_, err = s.Discard(f.t.Context(), k, linktest.Epoch())
		if got, is := errors.AsType[*link.DamagedError](err); is && got.Err.Error() == lost.Err.Error() && strings.Contains(got.Error(), "of another link") {
			continue // its alias is damaged, and nobody knows its row
		}
		if err != nil {
			f.t.Errorf("%s: delete %s: %v", what, k, err)
			continue
		}
		if l, err := s.Get(f.t.Context(), k); err != nil || l.Status != link.Deleted || l.Destination != "" {
			f.t.Errorf("%s: a deleted %s is %+v, %v", what, k, l, err)
		}
	}
	if err := s.Healthy(); err != nil {
		f.t.Errorf("%s: %v", what, err)
	}
}

// run flips a bit of every stride-th byte of the columns of some rows of each kind.
func (f *flips) run(stride int) {
	names := slices.Sorted(maps.Keys(f.roots))
	n, kinds := 0, map[string]int{}
	for _, name := range names {
		all := records(f.t, f.intact, f.roots[name])
		for i, r := range all {
			if i != 0 && i != len(all)/2-1 && i != len(all)/2 && i != len(all)-1 {
				continue
			}
			for _, column := range r.columns {
				for at := column[0]; at < column[0]+column[1]; at++ {
					if n++; n%stride == 0 {
						kinds[name]++
						f.flip(at, name)
					}
				}
			}
		}
	}
	f.t.Logf("flipped, of %d bytes: %v", n, kinds)
	if len(kinds) == 0 || kinds["table links"] == 0 {
		f.t.Error("nothing was flipped")
	}
}

// TestOneBitCostsOneRow flips one bit of many bytes, in every table and index: what is hit is
// refused, and never leads elsewhere; everything else goes on. TestEachByteCostsOneRow does so
// with every byte.
func TestOneBitCostsOneRow(t *testing.T) {
	t.Parallel()
	newFlips(t).run(23)
}

func TestEachByteCostsOneRow(t *testing.T) {
	testkit.Faults(t)
	newFlips(t).run(1)
}
