package coldcopy_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	_ "modernc.org/sqlite" // to fill tables

	"curt/internal/backend/coldsql"
	"curt/internal/backend/coldsql/coldcopy"
	"curt/internal/backend/postgres/movein"
	"curt/internal/backend/sqlite"
	"curt/internal/backend/sqlite/moveout"
	"curt/internal/testkit"
)

// folder is a curt.db with rows that the test chooses.
type folder struct {
	db     *sql.DB
	source *moveout.Source
}

func newFolder(t *testing.T) *folder {
	t.Helper()
	path := filepath.Join(t.TempDir(), "curt.db")
	l, err := sqlite.OpenLinks(t.Context(), sqlite.LinksConfig{Path: path})
	if err == nil {
		err = l.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	f := &folder{}
	if f.db, err = sql.Open("sqlite", path); err != nil {
		t.Fatal(err)
	}
	if f.source, err = moveout.Open(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(f.source.Close(), f.db.Close()); err != nil {
			t.Error(err)
		}
	})
	return f
}

// fill has every table have the rows from one number to another, with a version of each.
func (f *folder) fill(t *testing.T, from, to int, version func(n int) int) {
	t.Helper()
	tx, err := f.db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	exec := func(statement string, args ...any) {
		t.Helper()
		if _, err := tx.ExecContext(t.Context(), statement, args...); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	for _, name := range coldcopy.Names() {
		if !coldcopy.Seeded(name) {
			exec("DELETE FROM " + name)
		}
		columns := coldcopy.Columns(name)
		statement := fmt.Sprintf("INSERT OR REPLACE INTO %s (%s) VALUES (?%s)", name, strings.Join(columns, ", "), strings.Repeat(", ?", len(columns)-1))
		for n := from; n <= to; n++ {
			exec(statement, coldcopy.Specimen(name, n, version(n))...)
		}
	}
	if err := errors.Join(tx.Commit(), f.source.Renew()); err != nil {
		t.Fatal(err)
	}
}

// TestEveryColumnArrives: rows of every table come, change and go; each sync writes what differs, and
// both sides are compared by other reads. A row that is lost in the database is found.
func TestEveryColumnArrives(t *testing.T) {
	t.Parallel()
	f := newFolder(t)
	target, err := movein.Open(t.Context(), testkit.StartPostgres(t, testkit.PostgresConfig{}).Database(t), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := target.Close(); err != nil {
			t.Error(err)
		}
	})
	if _, err := target.Begin(t.Context(), f.source.CodeKey(), false, "name", time.Now()); err != nil {
		t.Fatal(err)
	}
	c := coldcopy.SmallPages(coldcopy.New(f.source, target.Cold()))
	sync := func(what string, c *coldcopy.Copier, want bool) {
		t.Helper()
		n, err := c.Sync(t.Context())
		if err != nil || (n > 0) != want {
			t.Fatalf("%s: %d rows, %v", what, n, err)
		}
		if _, err := c.Verify(t.Context()); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	f.fill(t, 1, 45, func(int) int { return 0 }) // more than a page
	sync("first", c, true)
	sync("nothing changed", c, false)
	f.fill(t, 5, 50, func(n int) int { return n % 2 })
	if _, err := c.Verify(t.Context()); !errors.Is(err, coldcopy.ErrDiffers) {
		t.Errorf("before what changed was copied: %v", err)
	}
	sync("some changed, some came, some went", c, true)
	for _, name := range coldcopy.Names() {
		lose(t, target.Cold(), name)
		if _, err := c.Verify(t.Context()); !errors.Is(err, coldcopy.ErrDiffers) {
			t.Errorf("a row of %s is lost: %v", name, err)
		}
		c = coldcopy.SmallPages(coldcopy.New(f.source, target.Cold())) // as a move that is begun again
		if err := c.Learn(t.Context()); err != nil {
			t.Fatal(err)
		}
		sync("after a row of "+name+" was lost", c, true)
	}
}

// lose deletes a row.
func lose(t *testing.T, db coldsql.DB, name string) {
	t.Helper()
	err := db.Write(context.WithoutCancel(t.Context()), 1, func(tx coldsql.Tx) error {
		where := ""
		if name == "workspaces" {
			where = " WHERE name LIKE 'w%'" // keys refer to the other ones
		}
		n, err := tx.Exec("DELETE FROM " + name + " WHERE ctid = (SELECT min(ctid) FROM " + name + where + ")")
		if err == nil && n != 1 {
			err = fmt.Errorf("%d rows", n)
		}
		return err
	})
	if err != nil {
		t.Fatalf("lose a row of %s: %v", name, err)
	}
}
