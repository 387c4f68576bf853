package sqlitedb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"curt/internal/background"
)

const (
	reviveFirst = 50 * time.Millisecond
	reviveMost  = 30 * time.Second
	sureAfter   = 3 // looks that find the same damage
)

// recoverWrites lets the writer go on after a statement that called the file damaged, once all of it
// can be read and passes SQLite's quick check on a new connection. Where it does not pass,
// though the disk reads it, writes are refused until the next start: nothing may be written
// on top of that.
func (s *Store) recoverWrites() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		select {
		case <-s.closed:
			cancel()
		case <-ctx.Done():
		}
	}()
	for wait, sure := reviveFirst, 0; sure < sureAfter; wait = min(2*wait, reviveMost) {
		err := inspect(ctx, &s.disk, &s.config)
		switch {
		case err == nil && s.writer.resume(ctx, s.handles.Write):
			s.config.Log.InfoContext(ctx, "curt.db is readable again, writes resumed")
			return
		case errors.Is(err, ErrCorrupt):
			sure++
		default:
			sure = 0
		}
		if err != nil {
			s.writer.setCause(err)
		}
		if !background.Sleep(ctx, wait) {
			return
		}
	}
	s.config.Log.ErrorContext(ctx, "curt.db is damaged, refusing writes until it is restored or the server restarts", slog.Any("err", s.writer.failure()))
}

// inspect returns nil for files that can be read, and whose structure is whole.
func inspect(ctx context.Context, disk *Disk, config *StoreConfig) error {
	disk.mu.Lock()
	err := disk.Read(config.Path)
	disk.mu.Unlock()
	if err != nil {
		return err
	}
	db, err := pool(File{Path: config.Path, Synchronous: config.Synchronous}, 1, 1<<10, "1")
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	verdict, err := quickCheckOf(ctx, db)
	switch {
	case IsDamage(err):
		return Classify(err)
	case err != nil:
		return err
	case len(verdict) != 1 || verdict[0] != "ok":
		return fmt.Errorf("%w: %s", ErrCorrupt, strings.Join(verdict, "; "))
	}
	return nil
}

const SQLQuickCheck = `PRAGMA quick_check(10)`

// quickCheckOf returns what SQLite finds in a file: "ok", or a line for each fault.
func quickCheckOf(ctx context.Context, db *sql.DB) (verdict []string, err error) {
	rows, err := db.QueryContext(ctx, SQLQuickCheck)
	if err != nil {
		return nil, fmt.Errorf("check the file: %w", err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			return verdict, fmt.Errorf("check the file: %w", err)
		}
		verdict = append(verdict, line)
	}
	return verdict, rows.Err()
}
