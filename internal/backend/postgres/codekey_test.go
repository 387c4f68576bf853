package postgres_test

import (
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"curt/internal/backend/postgres"
	"curt/internal/backend/postgres/pgdb"
	"curt/internal/link"
)

// cutCodeKey has codes made by no other key than the whole one: with a part of it, those that
// are given out could be given out again later. A store that is not opened leaves nothing of
// itself at the server.
func cutCodeKey(t *testing.T, d *databases) {
	name := d.server.Copy(t, template)
	url := d.server.URL(name)
	for _, value := range []string{"substr(value, 1, 31)", `value || '\x00'::bytea || value`, "''::bytea"} {
		exec(t, url, "UPDATE settings SET value = "+value+" WHERE name = 'code_key'")
		s, err := postgres.OpenLinks(t.Context(), postgres.LinksConfig{URL: url})
		if err == nil {
			_ = s.Close()
		}
		if !errors.Is(err, pgdb.ErrUnfit) {
			t.Errorf("%s: %v, want ErrUnfit", value, err)
		}
	}
	c, err := pgx.Connect(t.Context(), d.server.URL("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close(t.Context()) }()
	left := 1
	for until := time.Now().Add(3 * time.Minute); left > 0 && time.Now().Before(until); time.Sleep(10 * time.Millisecond) {
		if err := c.QueryRow(t.Context(), "SELECT count(*) FROM pg_stat_activity WHERE datname = $1", name).Scan(&left); err != nil {
			t.Fatal(err)
		}
	}
	if left > 0 {
		t.Errorf("%d connections are left of stores that were not opened", left)
	}
}

// noReaders has a number of connections refused that is none, and not met by the first read.
func noReaders(t *testing.T, d *databases) {
	url := d.server.URL(d.server.Copy(t, template))
	for name, config := range map[string]postgres.LinksConfig{"readers": {Readers: -1}, "writers": {Writers: -1}} {
		config.URL = url
		if s, err := postgres.OpenLinks(t.Context(), config); err == nil {
			t.Errorf("a store without %s is opened", name)
			_ = s.Close()
		}
	}
}

// written asks a database that may have been restored for its newest write, of which servers leave several traces.
func written(t *testing.T, d *databases) {
	url := d.server.URL(d.server.Copy(t, template))
	s := d.open(t, url)
	if at, err := s.Written(t.Context()); err != nil || !at.IsZero() {
		t.Errorf("a new database was written at %v: %v", at, err)
	}
	for _, tt := range []struct {
		statement string
		want      int64 // Unix seconds
	}{
		{"INSERT INTO changes (seq, domain, code, version, at) VALUES (1, '', 'a', 1, 1700000000000)", 1_700_000_000},
		{"INSERT INTO instances (name, kept, progress) VALUES ('a', to_timestamp(1700000020), '{}'), ('b', to_timestamp(1700000010), '{}')", 1_700_000_020},
		{"INSERT INTO job_leases (name, holder, fence, until) VALUES ('a', 'b', 1, 1700000030000)", 1_700_000_030},
		{"INSERT INTO changes (seq, domain, code, version, at) VALUES (2, '', 'b', 1, 1700000040000)", 1_700_000_040},
		{"INSERT INTO changes (seq, domain, code, version) VALUES (3, '', 'b', 2)", 1_700_000_030}, // of an older release
	} {
		exec(t, url, tt.statement)
		if at, err := s.Written(t.Context()); err != nil || !at.Equal(time.Unix(tt.want, 0)) {
			t.Errorf("after %s it was written at %v, want %v: %v", tt.statement, at, time.Unix(tt.want, 0).UTC(), err)
		}
	}
	l := newLink(1, "written")
	l.CodeKind = link.Counted                                                                   // which is in no log: the rows above have taken its first places
	l.Created, l.Updated = time.Unix(1_900_000_000, 0).UTC(), time.Unix(1_900_000_000, 0).UTC() // later than the log's own time
	if _, err := s.Create(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	if at, err := s.Written(t.Context()); err != nil || !at.Equal(l.Created) {
		t.Errorf("after a link it was written at %v, want %v: %v", at, l.Created, err)
	}
}
