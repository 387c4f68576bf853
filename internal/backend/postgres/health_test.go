package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"curt/internal/backend/postgres"
	"curt/internal/backend/postgres/pgdb"
	"curt/internal/link"
	"curt/internal/testkit"
)

// humble makes a user that owns nothing but a new database, and returns its name and its URL.
func humble(t *testing.T, server *testkit.Postgres) (name, url string) {
	t.Helper()
	name = server.Copy(t, "template1")
	server.Exec(t, "CREATE ROLE humble LOGIN")
	server.Exec(t, fmt.Sprintf("ALTER DATABASE %s OWNER TO humble", name))
	return name, strings.Replace(server.URL(name), "//curt@", "//humble@", 1)
}

// opened opens a store that is closed with the test, and that nobody looks after.
func opened(t *testing.T, config postgres.LinksConfig) *postgres.Links {
	t.Helper()
	s, err := postgres.OpenLinks(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// missing takes from a database, step by step, what its users need.
func missing(t *testing.T, d *databases) {
	server := d.server
	name, url := humble(t, server)
	writer, reader := opened(t, postgres.LinksConfig{URL: url}), opened(t, postgres.LinksConfig{URL: url, ReadOnly: true})
	const both = "REVOKE ALL ON links, changes FROM humble"
	for _, tt := range []struct{ take, give, writer, reader string }{
		{"REVOKE SELECT ON links FROM humble", "GRANT SELECT ON links TO humble", "missing: SELECT on links", "missing: SELECT on links"},
		{"REVOKE INSERT ON links FROM humble", "GRANT INSERT ON links TO humble", "missing: INSERT on links", ""},
		{"REVOKE UPDATE ON links FROM humble", "GRANT UPDATE ON links TO humble", "missing: UPDATE on links", ""},
		{both, "GRANT ALL ON links, changes TO humble", "missing: SELECT on links, INSERT on links, UPDATE on links, SELECT on changes, INSERT on changes", "missing: SELECT on links, SELECT on changes"},
		{"REVOKE ALL ON settings FROM humble", "GRANT ALL ON settings TO humble", "", ""},
		{"ALTER TABLE links RENAME TO gone", "ALTER TABLE gone RENAME TO links", "missing: the table links", "missing: the table links"},
		{"ALTER SCHEMA public RENAME TO gone", "ALTER SCHEMA gone RENAME TO public", "missing: the table links, the table changes, the table change_head, the table leases", "missing: the table links, the table changes, the table change_head"},
		{"UPDATE settings SET value = sha256(value)", "", "not the database of the start: its code key differs", "not the database of the start: its code key differs"},
	} {
		server.ExecIn(t, name, tt.take)
		saysOf(t, tt.take, writer, tt.writer)
		saysOf(t, tt.take, reader, tt.reader)
		if tt.give != "" {
			server.ExecIn(t, name, tt.give)
			saysOf(t, tt.give, writer, "")
			saysOf(t, tt.give, reader, "")
		}
	}
	// What another database does not know says nothing of ours, and it is told nothing.
	if _, err := reader.Lookup(t.Context(), link.Key{Code: "unknown"}); !errors.Is(err, link.ErrUnavailable) || errors.Is(err, link.ErrNotFound) {
		t.Errorf("look up in another database: %v", err)
	}
	if _, err := writer.Create(t.Context(), newLink(2, "elsewhere")); !errors.Is(err, link.ErrUnavailable) {
		t.Errorf("create in another database: %v", err)
	}
	if _, _, err := writer.Changes(t.Context(), "", 10); !errors.Is(err, link.ErrUnavailable) {
		t.Errorf("read the changes of another database: %v", err)
	}
}

// saysOf looks at the tables and compares what is said of them, "" for nothing. A look that a busy machine did not finish in
// time says what the one before did.
func saysOf(t *testing.T, after string, s *postgres.Links, want string) {
	t.Helper()
	await(t, fmt.Sprintf("after %s: %q", after, want), func() bool {
		s.CheckHealth(t.Context())
		got := ""
		if unfit, ok := errors.AsType[*pgdb.UnfitTables](s.Tables()); ok {
			got = unfit.PublicMessage()
		}
		if got != want {
			t.Logf("after %s: %q, want %q", after, got, want)
		}
		return got == want && s.Healthy() == nil
	})
}

// locked takes the lock on links that creates wait for, and then the one that look-ups do, too.
func locked(t *testing.T, d *databases) {
	url := d.server.URL(d.server.Copy(t, template))
	writer, reader := opened(t, postgres.LinksConfig{URL: url}), opened(t, postgres.LinksConfig{URL: url, ReadOnly: true})
	for _, tt := range []struct {
		mode           string
		writer, reader bool // is told that the table is locked
	}{
		{"ROW EXCLUSIVE", false, false}, // what creates take
		{"SHARE", true, false},
		{"ACCESS EXCLUSIVE", true, true},
	} {
		c, err := pgx.Connect(t.Context(), url)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Exec(t.Context(), "BEGIN; LOCK TABLE links IN "+tt.mode+" MODE", pgx.QueryExecModeSimpleProtocol); err != nil {
			t.Fatal(err)
		}
		saysLocked(t, tt.mode+", a writer", writer, tt.writer)
		saysLocked(t, tt.mode+", a reader", reader, tt.reader)
		if err := c.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Fatal(err)
		}
		// The server ends the transaction when it gets to it.
		saysLocked(t, tt.mode+" released, a writer", writer, false)
		saysLocked(t, tt.mode+" released, a reader", reader, false)
	}
}

// saysLocked looks until the table is said to be locked or not, and nothing else.
func saysLocked(t *testing.T, when string, s *postgres.Links, want bool) {
	t.Helper()
	await(t, fmt.Sprintf("%s: locked %v", when, want), func() bool {
		s.CheckHealth(t.Context())
		got := ""
		if told, ok := errors.AsType[interface {
			error
			PublicMessage() string
		}](s.Healthy()); ok {
			got = told.PublicMessage()
		}
		err := s.Healthy()
		right := (err != nil) == want && (!want || got == "the table links is locked") && s.Tables() == nil
		if !right {
			t.Logf("%s: %v, says %q, tables: %v; locked %v", when, err, got, s.Tables(), want)
		}
		return right
	})
}
