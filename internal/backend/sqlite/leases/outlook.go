package leases

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"

	"curt/internal/backend/sqlite/sqlitedb"
	"curt/internal/statefile"
	"curt/internal/walfile"
)

// What is known of curt.db outside of it: the state file, and what its write-ahead log
// looks like before SQLite opens it. See docs/decisions/0036.

// stateSuffix ends the name of the state file of a database. It begins like those of
// SQLite's own files, so that whoever moves curt.db* moves it too.
const stateSuffix = ".state"

// waysOn ends every refusal that --force overrules.
const waysOn = "; restore a backup with curt restore --force, or continue without the lost data with curt serve --force"

// LostError says that confirmed commits are missing from the write-ahead log, and that
// opening the database would drop them, with what is behind them, without a word.
type LostError struct {
	What         string // what is damaged, and what would be dropped
	Frames       int    // that are dropped; 0 = nobody knows
	Transactions int    // that are dropped, as far as they can be counted
}

// Error returns one line.
func (e *LostError) Error() string { return e.What + waysOn }

// ErrGone means that the state file tells of a store, and there is none. A new one would
// make the same codes again.
var ErrGone = errors.New("its links are missing")

// ErrUnfit means that SQLite found curt.db damaged while it brought in a write-ahead log that
// holds: one of the two is of another time, as where one file was put back alone.
var ErrUnfit = errors.New("curt.db and curt.db-wal do not match, or curt.db is damaged; restore a backup with curt restore --force")

// Outlook is what a look at a curt.db that nobody has open finds, without SQLite.
type Outlook struct {
	Lost      *LostError // nil = nothing that was confirmed is known to be missing
	New       bool       // there is no state file: the folder is new, or from before there was one
	Spoiled   bool       // the state file is damaged
	Missing   bool       // New, and there was a state file once: only the opened store tells
	Elsewhere bool       // this is not the folder that the state file was written in

	state  statefile.State // zero where New or Spoiled
	frames int             // of the log, which SQLite will use
}

// Inspect looks, and changes nothing. An error that is not ErrGone is one of reading.
func Inspect(ctx context.Context, path string) (o Outlook, err error) {
	name := path + stateSuffix
	o.state, err = statefile.Read(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		o.New = true
	case errors.Is(err, statefile.ErrDamaged):
		o.Spoiled = true
	case err == nil:
		here, err := statefile.Here(name)
		if err != nil {
			return o, err
		}
		o.Elsewhere = !here.Same(o.state.Identity)
	default:
		return o, err
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && info.Size() == 0:
		if !o.New {
			return o, fmt.Errorf("%w: %s is missing or empty, but %s has code leases; restore a backup with curt restore --force, or use another folder",
				ErrGone, filepath.Base(path), filepath.Base(name))
		}
		return o, nil
	case err != nil:
		return o, fmt.Errorf("check %s: %w", path, err)
	}
	log, err := walfile.Examine(path)
	if err == nil {
		o.Lost, o.frames = o.lost(ctx, path, log), log.Frames
	}
	return o, err
}

// Unfit says of an error of opening what it means where there was a log.
func (o *Outlook) Unfit(err error) error {
	if o.frames > 0 && sqlitedb.ResultCode(err)&0xff == sqlitedb.CodeCorrupt && !errors.Is(err, sqlitedb.ErrUnreadable) {
		return fmt.Errorf("%w: %w", ErrUnfit, err)
	}
	return err
}

// lost says what the log lacks that was confirmed.
func (o *Outlook) lost(ctx context.Context, path string, log walfile.Report) *LostError {
	name := filepath.Base(path) + "-wal"
	known := !o.New && !o.Spoiled
	switch {
	case known && o.state.Loose:
		return nil // its end may look like anything
	case log.Damaged:
		what := fmt.Sprintf("the checksum of frame %d is wrong", log.Bad)
		if log.Bad == 0 {
			what = "the checksum of its header is wrong"
		}
		return &LostError{
			What: fmt.Sprintf("%s is damaged: %s; SQLite would silently drop %d frames (%d transactions) that were confirmed or follow confirmed ones",
				name, what, log.DroppedFrames, log.DroppedTransactions),
			Frames: log.DroppedFrames, Transactions: log.DroppedTransactions,
		}
	case known && !o.Elsewhere && log.Confirmed > log.Frames: // a copy's files may be of different moments
		return &LostError{
			What: fmt.Sprintf("%s is damaged: of %d confirmed frames only the first %d are valid; SQLite would silently drop the others",
				name, log.Confirmed, log.Frames),
			Frames: log.Confirmed - log.Frames, Transactions: log.DroppedTransactions,
		}
	case known && o.state.Open && log.Frames == 0:
		generation, ok := fileGeneration(ctx, path)
		if !ok || generation >= o.state.Generation {
			return nil // all of it is in the file
		}
		what := "is empty"
		if _, err := os.Stat(path + "-wal"); errors.Is(err, fs.ErrNotExist) {
			what = "is missing"
		}
		return &LostError{What: fmt.Sprintf("%s %s after an unclean shutdown: it held the last confirmed transactions", name, what)}
	}
	return nil
}

// Refuses reports whether the store must not be opened. A folder from before there was a
// state file may have been written by anything, so that nothing is held against it.
func (o *Outlook) Refuses() bool { return o.Lost != nil && !o.New }

// generationCounter is the name of the counter, beside those of codes, that goes with State.Generation: a number
// in curt.db that is on the disk before the state file has it. So where the file of the
// database, without its log, has the number of the state file, all that the log had when
// that was written has been brought into the file by SQLite, whoever deleted the log since.
const generationCounter = "generation"

const (
	SQLLeased    = `SELECT next FROM leases WHERE counter = ?`
	sqlHasLeases = `SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = 'leases'`
)

// fileGeneration reads the generation from the database's file alone, without its log; ok
// = it can be read.
func fileGeneration(ctx context.Context, path string) (n int64, ok bool) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return 0, false
	}
	q := url.Values{"mode": {"ro"}, "immutable": {"1"}}
	db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Path: abs, RawQuery: q.Encode()}).String())
	if err != nil {
		return 0, false
	}
	defer db.Close() //nolint:errcheck // only read
	var tables int
	if err := db.QueryRowContext(ctx, sqlHasLeases).Scan(&tables); err != nil || tables == 0 {
		return 0, err == nil
	}
	err = db.QueryRowContext(ctx, SQLLeased, generationCounter).Scan(&n)
	return n, err == nil || errors.Is(err, sql.ErrNoRows)
}
