package postgres_test

import (
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"curt/internal/backend/postgres"
	"curt/internal/backend/postgres/pgdb"
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
	for until := time.Now().Add(time.Minute); left > 0 && time.Now().Before(until); time.Sleep(10 * time.Millisecond) {
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
