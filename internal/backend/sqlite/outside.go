package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"net/url"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"curt/internal/codegen"
	"curt/internal/link"
	"curt/internal/statefile"
	"curt/internal/walfile"
)

// What is known of curt.db outside of it: the state file, and what its write-ahead log
// looks like before SQLite opens it. See docs/decisions/0036.

// stateSuffix ends the name of the state file of a database. It begins like those of
// SQLite's own files, so that whoever moves curt.db* moves it too.
const stateSuffix = ".state"

// waysOn ends every refusal that --force overrules.
const waysOn = "; bring a backup back with curt restore --force, or go on without what is lost with curt serve --force"

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
var ErrGone = errors.New("its links are gone")

// ErrUnfit means that SQLite found curt.db damaged while it brought in a write-ahead log that
// holds: one of the two is of another time, as where one file was put back alone.
var ErrUnfit = errors.New("curt.db and curt.db-wal do not belong together, or curt.db is damaged; bring a backup back with curt restore --force")

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

// Look looks, and changes nothing. An error that is not ErrGone is one of reading.
func Look(ctx context.Context, path string) (o Outlook, err error) {
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
			return o, fmt.Errorf("%w: %s is missing or empty, and %s beside it has leases of codes; bring a backup back with curt restore --force, or take another folder",
				ErrGone, filepath.Base(path), filepath.Base(name))
		}
		return o, nil
	case err != nil:
		return o, fmt.Errorf("look at %s: %w", path, err)
	}
	log, err := walfile.Examine(path)
	if err == nil {
		o.Lost, o.frames = o.lost(ctx, path, log), log.Frames
	}
	return o, err
}

// unfit says of an error of opening what it means where there was a log.
func (o *Outlook) unfit(err error) error {
	if o.frames > 0 && resultCode(err)&0xff == codeCorrupt && !errors.Is(err, ErrUnreadable) {
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
		what := fmt.Sprintf("frame %d does not hold", log.Bad)
		if log.Bad == 0 {
			what = "its header does not hold"
		}
		return &LostError{
			What: fmt.Sprintf("%s is damaged: %s, and SQLite would drop %d frames (%d transactions) that were confirmed, or stand behind what was, without a word",
				name, what, log.DroppedFrames, log.DroppedTransactions),
			Frames: log.DroppedFrames, Transactions: log.DroppedTransactions,
		}
	case known && !o.Elsewhere && log.Confirmed > log.Frames: // a copy's files may be of different moments
		return &LostError{
			What: fmt.Sprintf("%s is damaged: %d frames of it were confirmed, and only the first %d hold; SQLite would drop the others without a word",
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
		return &LostError{What: fmt.Sprintf("%s %s, and the server did not end in order: what was confirmed last stood there alone", name, what)}
	}
	return nil
}

// refuses reports whether the store must not be opened. A folder from before there was a
// state file may have been written by anything, so that nothing is held against it.
func (o *Outlook) refuses() bool { return o.Lost != nil && !o.New }

// generationCounter is the name of the counter, beside those of codes, that goes with State.Generation: a number
// in curt.db that is on the disk before the state file has it. So where the file of the
// database, without its log, has the number of the state file, all that the log had when
// that was written has been brought into the file by SQLite, whoever deleted the log since.
const generationCounter = "generation"

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
	err = db.QueryRowContext(ctx, sqlLeased, generationCounter).Scan(&n)
	return n, err == nil || errors.Is(err, sql.ErrNoRows)
}

// settle does what the look asks for, says so, and has the state file tell that a process
// has the store. It comes last: until then leases are not written to the state file.
func (s *Links) settle(ctx context.Context, o Outlook) error {
	stored, _, err := s.readNumber(ctx, sqlLeased, generationCounter)
	if err != nil {
		return fmt.Errorf("read the generation: %w", err)
	}
	// Only a store that had a state file has a generation.
	o.Missing = o.New && stored > 0
	unknown, err := s.unknownIDs(ctx, o.state.Leases)
	if err != nil {
		return err
	}
	skipped, err := s.skipTaken(ctx, o)
	if err != nil {
		return err
	}
	s.tellOutlook(ctx, o, stored < o.state.Generation, unknown, skipped)
	next := max(stored, o.state.Generation) + 1
	switch err := s.storeGeneration(ctx, next); {
	case errors.Is(err, link.ErrFull):
		next = stored // a full disk is no reason not to start
	case err != nil:
		return fmt.Errorf("write the generation: %w", err)
	}
	leases, err := s.allLeased(ctx)
	if err != nil {
		return err
	}
	s.state, err = statefile.Begin(s.config.Path+stateSuffix, statefile.State{
		Open: true, Loose: s.config.Synchronous != "FULL" || !s.handles.renewed, Generation: next, Leases: leases,
	})
	if err != nil && !errors.Is(err, unix.ENOSPC) { // the first lease tries again, and needs it
		return err
	}
	return nil
}

// skipTaken moves counters past the ids that the state file says were leased, and those of
// a copy, or of a store of which nobody knows what was leased, to a place of their own. It
// returns how many ids of each counter were skipped.
func (s *Links) skipTaken(ctx context.Context, o Outlook) (skipped map[string]uint64, err error) {
	skipped = map[string]uint64{}
	apart := o.Elsewhere || o.Spoiled || o.Missing || o.New && o.Lost != nil
	for length := codegen.MinLength; length <= codegen.MaxLength; length++ {
		counter := codegen.Counter(codegen.DefaultPrefix, length)
		ids, err := codegen.SkipPast(ctx, s, codegen.DefaultPrefix, length, o.state.Leases[counter])
		if err == nil && ids == 0 && apart {
			ids, err = codegen.SkipApart(ctx, s, codegen.DefaultPrefix, length)
		}
		if err != nil {
			return nil, err
		}
		if ids > 0 {
			skipped[counter] = ids
		}
	}
	return skipped, nil
}

// tellOutlook has one line for each thing that the operator should know.
func (s *Links) tellOutlook(ctx context.Context, o Outlook, older bool, unknown int64, skipped map[string]uint64) {
	log, ids := s.config.Log, slog.Any("ids_skipped", skipped)
	if o.Lost != nil {
		log.ErrorContext(ctx, "the write-ahead log of curt.db was damaged; what it lost is given up", slog.String("damage", o.Lost.What),
			slog.Int("frames", o.Lost.Frames), slog.Int("transactions", o.Lost.Transactions), slog.Int64("links_at_most", unknown), ids)
	}
	if o.Elsewhere {
		log.WarnContext(ctx, "this data folder is a copy, or was moved to another disk or machine; ids were skipped, so that both give away other codes", ids)
	}
	if o.Spoiled {
		log.WarnContext(ctx, "the state file of curt.db was damaged and is made anew; ids were skipped, so that no code is given away twice", ids)
	}
	if o.Missing {
		log.WarnContext(ctx, "the state file of curt.db is missing and is made anew; ids were skipped, so that no code is given away twice", ids)
	}
	if o.Lost == nil && (older || len(skipped) > 0 && !o.Elsewhere && !o.Spoiled && !o.Missing) {
		log.WarnContext(ctx, "curt.db is older than what its folder knows of it; links made since are gone, and no code of theirs is given away again",
			slog.Int64("links_at_most", unknown), ids)
	}
}

// unknownIDs returns how many ids were leased, as the state file says, and are behind every
// link that the store has: links that are gone had codes of these.
func (s *Links) unknownIDs(ctx context.Context, leased map[string]uint64) (n int64, err error) {
	for length := codegen.MinLength; length <= codegen.MaxLength; length++ {
		lowest := codegen.FirstPlace(length)
		last, found, err := s.readNumber(ctx, sqlLastCounted, lowest, codegen.FirstPlace(length+1))
		if err != nil {
			return 0, fmt.Errorf("find the newest code of length %d: %w", length, err)
		}
		if found {
			last -= lowest - 1
		}
		n += max(0, int64(leased[codegen.Counter(codegen.DefaultPrefix, length)])-last)
	}
	return n, nil
}

func (s *Links) readNumber(ctx context.Context, query string, args ...any) (n int64, found bool, err error) {
	err = s.read(ctx, func(t *tx) (err error) {
		n, found, err = t.number(query, args...)
		return err
	})
	return n, found, err
}

// allLeased returns the marks of the counters that codes come from.
func (s *Links) allLeased(ctx context.Context) (map[string]uint64, error) {
	leases := map[string]uint64{}
	for length := codegen.MinLength; length <= codegen.MaxLength; length++ {
		counter := codegen.Counter(codegen.DefaultPrefix, length)
		mark, err := s.Leased(ctx, counter)
		if err != nil {
			return nil, err
		}
		if mark > 0 {
			leases[counter] = mark
		}
	}
	return leases, nil
}

func (s *Links) storeGeneration(ctx context.Context, n int64) error {
	return s.writer.write(ctx, 1, func(t *tx) error {
		_, err := t.exec(sqlLease, generationCounter, n)
		return err
	})
}

// renewGeneration is called when all of the log is in the file: from now on its absence
// would be noticed again.
func (s *Links) renewGeneration(ctx context.Context) error {
	stored, _, err := s.readNumber(ctx, sqlLeased, generationCounter)
	if err == nil {
		err = s.storeGeneration(ctx, stored+1)
	}
	if err == nil {
		err = s.state.Update(func(now *statefile.State) { now.Generation = max(now.Generation, stored+1) })
	}
	if err != nil && !errors.Is(err, link.ErrFull) && !errors.Is(err, unix.ENOSPC) {
		return fmt.Errorf("renew the generation: %w", err)
	}
	return nil
}

// keepLease has the state file know of a lease before anybody uses it. A disk that fails ends
// all writes, as when it fails under the log.
func (s *Links) keepLease(counter string, next uint64) error {
	if s.state == nil || !isCodeCounter(counter) {
		return nil
	}
	if err := s.state.Update(func(now *statefile.State) { now.Leases[counter] = next }); err != nil {
		if errors.Is(err, unix.EIO) {
			s.writer.stop(err)
		}
		return fmt.Errorf("keep the lease of %s: %w: %w", counter, link.ErrUnavailable, err)
	}
	return nil
}

func isCodeCounter(counter string) bool {
	for length := codegen.MinLength; length <= codegen.MaxLength; length++ {
		if counter == codegen.Counter(codegen.DefaultPrefix, length) {
			return true
		}
	}
	return false
}

// Behind reports whether a curt.db is older than its state file, where that can be read.
func (s *Snapshot) Behind() (older bool, err error) {
	state, err := statefile.Read(s.path + stateSuffix)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, statefile.ErrDamaged) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	leases := maps.Clone(state.Leases)
	if leases == nil {
		leases = map[string]uint64{}
	}
	leases[generationCounter] = uint64(state.Generation)
	err = s.conn.do(func(t *tx) error {
		for counter, next := range leases {
			stored, _, err := t.number(sqlLeased, counter)
			if err != nil {
				return err
			}
			older = older || uint64(stored) < next
		}
		return nil
	})
	if err != nil {
		return false, fmt.Errorf("read the leases of %s: %w", s.path, undone(err))
	}
	return older, nil
}

// SkipLeased moves the counters of codes past what was leased from the store whose state
// file that is, for a store that takes its place; without a file that can be read nothing
// is skipped.
func (s *Links) SkipLeased(ctx context.Context, path string) error {
	state, err := statefile.Read(path + stateSuffix)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, statefile.ErrDamaged) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = s.skipTaken(ctx, Outlook{state: state})
	return err
}
