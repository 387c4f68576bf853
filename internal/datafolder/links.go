package datafolder

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"curt/internal/backend/sqlite"
	"curt/internal/backend/sqlite/leases"
	"curt/internal/backup"
	"curt/internal/clicks/clicklog"
	"curt/internal/config"
	"curt/internal/handover"
)

// Startable returns why no server with these settings starts on a folder that is there.
func Startable(ctx context.Context, cfg config.Config) error {
	if err := backup.Unfinished(cfg.Data); err != nil {
		return err
	}
	if err := CheckLinks(cfg); err != nil || cfg.Links != config.SQLite {
		return err
	}
	return Whole(ctx, cfg.Data)
}

// CheckLinks refuses a folder that does not go with CURT_LINKS: one whose links were lost or are
// in a database, and one that has links of its own beside a database.
func CheckLinks(cfg config.Config) error {
	moved, err := handover.Moved(cfg.Data)
	switch {
	case err != nil:
		return err
	case moved != nil && (cfg.Links == config.SQLite || !moved.Ended):
		return Moved(cfg.Data, *moved)
	case cfg.Links == config.SQLite:
		return noLostLinks(cfg)
	}
	return noOwnLinks(cfg)
}

// Moved says where the links of a folder are, and what is to be done.
func Moved(folder string, m handover.Mark) error {
	want := "its links were moved to " + m.To + " on " + m.At.UTC().Format(time.DateOnly) + "; set CURT_LINKS to that database"
	if !m.Ended {
		want += ", after curt move has brought its last clicks there"
	}
	return &config.Error{Setting: "CURT_DATA", Value: folder, Want: want}
}

// noLostLinks refuses a folder whose links are in a database, and one that has clicks and no
// links: a server on it would answer 404 for links that are elsewhere, were lost or not
// restored, and could give their codes to others. The store of links is the first that a new
// folder gets.
func noLostLinks(cfg config.Config) error {
	info, err := os.Stat(filepath.Join(cfg.Data, "curt.db"))
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("check for links: %w", err)
	case err == nil && info.Size() > 0:
		return nil
	}
	if Elsewhere(cfg.Data) != nil {
		return &config.Error{
			Setting: "CURT_DATA", Value: cfg.Data,
			Want: "its links are in a database, but CURT_LINKS is not set; set it, or use another folder",
		}
	}
	beside, err := leftBehind(cfg.Data)
	if err != nil || beside == "" {
		return err
	}
	return &config.Error{
		Setting: "CURT_DATA", Value: cfg.Data,
		Want: "its links are missing: curt.db is missing or empty, but " + beside + "; restore a backup with curt restore --force, or use another folder",
	}
}

// Damaged makes a wrong setting of a folder whose links, or some of them, are gone.
func Damaged(folder string, err error) error {
	if lost, ok := errors.AsType[*leases.LostError](err); ok {
		return &config.Error{Setting: "CURT_DATA", Value: folder, Want: lost.Error()}
	}
	if errors.Is(err, leases.ErrUnfit) {
		return &config.Error{Setting: "CURT_DATA", Value: folder, Want: leases.ErrUnfit.Error()}
	}
	if errors.Is(err, leases.ErrGone) {
		return &config.Error{Setting: "CURT_DATA", Value: folder, Want: err.Error()}
	}
	return err
}

// Whole returns an error for a data folder that no server uses and whose write-ahead log
// lost confirmed links: whatever reads the links by SQLite would not see them, and leave less
// for others to notice it by. A folder that a server uses is whole.
func Whole(ctx context.Context, folder string) error {
	if held, err := Held(folder); held || err != nil {
		return err
	}
	o, err := leases.Inspect(ctx, filepath.Join(folder, "curt.db"))
	if err == nil && o.Lost != nil && !o.New {
		err = o.Lost
	}
	return Damaged(folder, err)
}

// leftBehind says what shows that a folder had links once; "" = nothing does. Each of these
// is made after the store of links. What is empty shows nothing: a first start that was
// killed leaves files that it had not filled yet.
func leftBehind(folder string) (what string, err error) {
	counts, err := os.Stat(filepath.Join(folder, "clicks.db"))
	switch {
	case err == nil && counts.Size() > 0:
		return "clicks.db has counts", nil
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("check for counts: %w", err)
	}
	segments, err := os.ReadDir(filepath.Join(folder, "clicks"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("check for the click log: %w", err)
	}
	if slices.ContainsFunc(segments, func(e fs.DirEntry) bool { return clicklog.IsSegment(e.Name()) }) {
		return "the click log has clicks", nil
	}
	key, err := os.Stat(filepath.Join(folder, "admin.key"))
	switch {
	case err == nil && key.Size() > 0:
		return "admin.key shows that a server ran here", nil
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("check for the admin key: %w", err)
	}
	return "", nil
}

// noOwnLinks refuses a folder with links of its own, which would not be served any more.
func noOwnLinks(cfg config.Config) error {
	_, err := os.Stat(filepath.Join(cfg.Data, "curt.db"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return &config.Error{
		Setting: "CURT_DATA", Value: cfg.Data,
		Want: "CURT_LINKS is a database, but this folder has a link store of its own, curt.db; use another folder (curt move moves its links)",
	}
}

// OwnCounts refuses a folder with statistics of its own.
func OwnCounts(cfg config.Config) error {
	return &config.Error{
		Setting: "CURT_DATA", Value: cfg.Data,
		Want: "CURT_ANALYTICS is a database, but this folder has statistics in clicks.db, which would not be shown; " +
			"move that file away: clicks still in the click log are recounted in the database",
	}
}

// instanceFile is in the folders of servers whose links are in a database.
const instanceFile = "instance"

// AccountsElsewhere reports whether the accounts of the links in a data folder are in a database.
func AccountsElsewhere(ctx context.Context, folder string) (apart bool, err error) {
	s, err := sqlite.TakeSnapshot(ctx, filepath.Join(folder, "curt.db"))
	if err != nil {
		return false, err
	}
	apart, err = s.AccountsApart()
	return apart, errors.Join(err, s.Close())
}

// Elsewhere returns an error for a data folder whose links are in a database: the commands
// that work on the folder have nothing to say about those.
func Elsewhere(folder string) error {
	_, err := os.Stat(filepath.Join(folder, instanceFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return fmt.Errorf("the links of %s are in the database of CURT_LINKS: back it up with its own tools, such as pg_dump or AWS Backup; curt export --from and curt import --to work on it", folder)
}

// CountsElsewhere returns an error for a data folder whose statistics are in a database.
func CountsElsewhere(folder string) error {
	_, err := os.Stat(filepath.Join(folder, "clicks.db"))
	if Elsewhere(folder) == nil || !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return fmt.Errorf("the statistics of %s are in the database of CURT_ANALYTICS, or missing; use its own tools", folder)
}

// Used reports whether a server has used a data folder.
func Used(folder string) bool {
	for _, name := range []string{"curt.db", "clicks.db", instanceFile} {
		if _, err := os.Stat(filepath.Join(folder, name)); err == nil {
			return true
		}
	}
	return false
}

// Rename gives a folder whose links were moved the name under which its clicks are counted in the
// database, for Instance.
func Rename(folder, name string) error {
	if err := os.WriteFile(filepath.Join(folder, instanceFile), []byte(name), 0o600); err != nil {
		return fmt.Errorf("store the name of this instance: %w", err)
	}
	return nil
}

// Instance names this folder's server to others, for good: it is made at the first start.
// A server that starts on the same folder comes after the one of before, as the folder's
// lock sees to.
func Instance(folder string) (string, error) {
	name := filepath.Join(folder, instanceFile)
	text, err := os.ReadFile(name)
	if err == nil && len(text) > 0 {
		return string(text), nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("read the name of this instance: %w", err)
	}
	made := rand.Text()
	if err := os.WriteFile(name, []byte(made), 0o600); err != nil {
		return "", fmt.Errorf("store the name of this instance: %w", err)
	}
	return made, nil
}
