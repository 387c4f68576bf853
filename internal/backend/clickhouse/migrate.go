package clickhouse

import (
	"context"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
)

// migrate runs the migrations that the database has not seen, in the order of their
// numbers. It takes no lock: statements may run again, so that several processes which
// start at once come to the same. One that ends in between is gone on with by the next.
func (s *Store) migrate(ctx context.Context) error {
	if err := s.conn.Exec(ctx, versionTable(s.config.Replicas)); err != nil {
		return fmt.Errorf("make the table of migrations: %w", err)
	}
	var done uint32
	if err := s.conn.QueryRow(ctx, "SELECT max(version) FROM migrations").Scan(&done); err != nil {
		return fmt.Errorf("read the table of migrations: %w", err)
	}
	files, err := fs.Glob(migrationFiles, "migrations/*.sql")
	if err != nil {
		return fmt.Errorf("list migrations: %w", err)
	}
	for _, file := range files { // sorted by name
		name := strings.TrimPrefix(file, "migrations/")
		number, err := strconv.ParseUint(name[:5], 10, 32)
		if err != nil {
			return fmt.Errorf("migration %s has no number: %w", name, err)
		}
		if number <= uint64(done) {
			continue
		}
		if err := s.run(ctx, name); err != nil {
			return err
		}
		if err := s.conn.Exec(ctx, "INSERT INTO migrations SELECT toUInt32($1), now()", number); err != nil {
			return fmt.Errorf("note migration %s: %w", name, err)
		}
	}
	return nil
}

func (s *Store) run(ctx context.Context, name string) error {
	all, err := statements(name, s.config.Replicas)
	if err != nil {
		return err
	}
	for _, statement := range all {
		if err := s.conn.Exec(ctx, statement); err != nil {
			return fmt.Errorf("migration %s: %w", name, err)
		}
	}
	return nil
}
