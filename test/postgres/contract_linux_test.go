package postgres_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/jackc/pgx/v5"

	"curt/internal/backend/postgres/pgdb"
	"curt/test/internal/curttest"
)

// planted is a folder with one contract migration, which creates the table planted_N instead of
// removing one.
func planted(n int) fstest.MapFS {
	return fstest.MapFS{fmt.Sprintf("contracts/%05d_planted.sql", n): {Data: fmt.Appendf(nil, "-- +goose Up\nCREATE TABLE planted_%d ();\n", n)}}
}

// TestContractMigrationsWait: what an older server needs is removed when none is left, and none
// starts from then on.
func TestContractMigrationsWait(t *testing.T) {
	t.Parallel()
	known := newestMigration(t)
	url := database(t)
	newer := begin(t, 1, url)[0]
	older := begin(t, 1, url+separator(url)+"application_name=curt/3")[0]
	db, err := pgx.Connect(t.Context(), url+separator(url)+"application_name=curt%20migrate") // which does not count
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close(t.Context()) }()
	// contract runs the planted migration, and fails the test unless these sessions prevent it.
	contract := func(n int, sessions ...string) {
		t.Helper()
		err := pgdb.Contract(t.Context(), url, planted(n))
		for end := time.Now().Add(3 * time.Minute); len(sessions) == 0 && errors.As(err, new(*pgdb.OlderServersError)) && time.Now().Before(end); {
			time.Sleep(10 * time.Millisecond) // PostgreSQL shows sessions until it has noticed that their client is gone
			err = pgdb.Contract(t.Context(), url, planted(n))
		}
		early, refused := errors.AsType[*pgdb.OlderServersError](err)
		if refused != (len(sessions) > 0) || !refused && err != nil || refused && !slices.Equal(early.Found, sessions) {
			t.Fatalf("contract migration %d: %v, want it to wait for %v", n, err, sessions)
		}
		var there bool
		if err := db.QueryRow(t.Context(), "SELECT to_regclass($1) IS NOT NULL", fmt.Sprintf("planted_%d", n)).Scan(&there); err != nil {
			t.Fatal(err)
		}
		if there == refused {
			t.Fatalf("contract migration %d ran: %v", n, there)
		}
	}

	contract(known, `"curt/3"`)
	begin(t, 1, url)[0].Terminate(t) // it left nothing behind
	older.Terminate(t)
	contract(known)
	contract(known)
	newer.MustCreate(t, 1)

	contract(known+1, fmt.Sprintf(`"curt/%d"`, known))
	newer.Terminate(t)
	begin(t, 1, url)[0].Terminate(t)
	contract(known + 1)
	_, err = curttest.Launch(t, curttest.Options{Env: []string{"CURT_LINKS=" + url}})
	if want := fmt.Sprintf("needs schema %d, this one knows %d", known+1, known); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("a server that is too old: %v, want %q", err, want)
	}
}

// newestMigration is the number of the last migration of this program.
func newestMigration(t *testing.T) (n int) {
	t.Helper()
	names, err := filepath.Glob("../../internal/backend/postgres/pgdb/migrations/*.sql")
	if err == nil && len(names) > 0 {
		_, err = fmt.Sscanf(filepath.Base(names[len(names)-1]), "%d_", &n)
	}
	if err != nil || n == 0 {
		t.Fatalf("no migrations: %v", err)
	}
	return n
}

// separator is what comes before another parameter of a URL.
func separator(url string) string {
	if strings.Contains(url, "?") {
		return "&"
	}
	return "?"
}
