// Package leases keeps what curt.db has given away: ids of codes, their key, and keys of visitor
// tags. None is given away twice, whatever file takes the place of another: outlook.go says what the
// state file and the write-ahead log tell before SQLite opens the file, and leases.go, which is to be
// read first, what follows from that. See docs/decisions/0036.
package leases

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"math"
	"slices"

	"golang.org/x/sys/unix"

	"curt/internal/backend/sqlite/sqlitedb"
	"curt/internal/codegen"
	"curt/internal/link"
	"curt/internal/statefile"
)

// Leases are what a store has given away: ids of codes, the key that makes codes of them, and
// keys of visitor tags. None is given away twice, by whatever file is put in the place of another.
// It implements codegen.Leaser.
type Leases struct {
	db      *sqlitedb.Store
	path    string // of curt.db
	loose   bool   // a power cut may take what was confirmed
	log     *slog.Logger
	codeKey [32]byte
	state   *statefile.File // set last; until then leases are not written to it
}

const (
	SQLLeaseCreates = `INSERT INTO creates_leased (counter, next) VALUES (?, ?) ON CONFLICT (counter) DO UPDATE SET next = excluded.next`
	sqlLease        = `INSERT INTO leases (counter, next) VALUES (?, ?) ON CONFLICT (counter) DO UPDATE SET next = excluded.next`
	sqlDayKey       = `SELECT key FROM day_keys WHERE day = ?`
	sqlInsertDay    = `INSERT INTO day_keys (day, key) VALUES (?, ?)`
	sqlOldDay       = `SELECT day FROM day_keys WHERE day < min(?, unixepoch() / 86400) LIMIT 1`
	sqlDropDays     = `DELETE FROM day_keys WHERE day < min(?, unixepoch() / 86400)` // the next may be asked for before midnight
	sqlSetting      = `SELECT value FROM settings WHERE name = ?`
)

// Statements are those that a request runs, by name, for whom their plans interest.
func Statements() map[string]string {
	all := keyStatements()
	maps.Copy(all, map[string]string{
		"lease": sqlLease, "leased": SQLLeased, "lease creates": SQLLeaseCreates, "day key": sqlDayKey, "insert day": sqlInsertDay,
		"old day": sqlOldDay, "drop days": sqlDropDays, "last counted": sqlLastCounted, "setting": sqlSetting,
	})
	return all
}

// Lease implements codegen.Leaser.
func (s *Leases) Lease(ctx context.Context, counter string, n uint64) (uint64, error) {
	var first uint64
	err := s.db.Write(ctx, 1, func(t *sqlitedb.Tx) error {
		next, _, err := t.Number(SQLLeased, counter)
		if err != nil {
			return err
		}
		if n == 0 || n > math.MaxInt64-uint64(next) {
			return fmt.Errorf("%d ids from %d: %w", n, next, link.ErrInvalid)
		}
		first = uint64(next)
		if _, err = t.Exec(sqlLease, counter, next+int64(n)); err == nil {
			_, err = t.Exec(SQLLeaseCreates, counter, next+int64(n))
		}
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("lease from %s: %w", counter, err)
	}
	if err := s.keepLease(counter, first+n); err != nil {
		return 0, err
	}
	return first, nil
}

// Leased implements codegen.Leaser.
func (s *Leases) Leased(ctx context.Context, counter string) (uint64, error) {
	var next int64
	err := s.db.Read(ctx, func(t *sqlitedb.Tx) (err error) {
		next, _, err = t.Number(SQLLeased, counter)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("read the high-water mark of %s: %w", counter, err)
	}
	return uint64(next), nil
}

// Skip implements codegen.Leaser.
func (s *Leases) Skip(ctx context.Context, counter string, n uint64) error {
	_, err := s.Lease(ctx, counter, n)
	return err
}

// Raise implements codegen.Leaser.
func (s *Leases) Raise(ctx context.Context, counter string, from, to uint64) error {
	if to <= from || to > math.MaxInt64 {
		return fmt.Errorf("raise %s to %d: %w", counter, to, link.ErrInvalid)
	}
	err := s.db.Write(ctx, 1, func(t *sqlitedb.Tx) error {
		next, _, err := t.Number(SQLLeased, counter)
		if err == nil && uint64(next) != from {
			err = fmt.Errorf("it is at %d, not at %d: %w", next, from, link.ErrConflict)
		}
		if err == nil {
			_, err = t.Exec(sqlLease, counter, int64(to))
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("raise %s: %w", counter, err)
	}
	return s.keepLease(counter, to)
}

// New returns those of the curt.db at path, for Begin.
func New(path, synchronous string, log *slog.Logger) *Leases {
	return &Leases{path: path, loose: synchronous != "FULL", log: log}
}

// Begin makes the key of codes at the first start, moves counters past ids that may have been given
// away, and has the state file tell that a process has the store.
func (s *Leases) Begin(ctx context.Context, db *sqlitedb.Store, o Outlook) (codes *codegen.Permutation, err error) {
	s.db = db
	if s.codeKey, err = s.loadCodeKey(ctx); err == nil {
		err = s.skipStaleLeases(ctx)
	}
	if err == nil {
		err = s.begin(ctx, o)
	}
	return codegen.NewPermutation(s.codeKey), err
}

// begin does what the outlook asks for, logs it, and writes the state file. It comes last: until
// then leases are not written to it.
func (s *Leases) begin(ctx context.Context, o Outlook) error {
	stored, err := s.readNumber(ctx, SQLLeased, generationCounter)
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
	older := stored < o.state.Generation
	s.tellOutlook(ctx, o, older, unknown, skipped)
	if err := s.dropStale(ctx, o, older || len(skipped) > 0 || o.Lost != nil); err != nil {
		return err
	}
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
	s.state, err = statefile.Begin(s.path+stateSuffix, statefile.State{
		Open: true, Loose: s.loose || !s.db.Renewed(), Generation: next, Leases: leases,
	})
	if err != nil && !errors.Is(err, unix.ENOSPC) { // the first lease tries again, and needs it
		return err
	}
	return nil
}

// skipTaken moves counters past the ids that the state file says were leased, and those of
// a copy, or of a store of which nobody knows what was leased, to a place of their own. It
// returns how many ids of each counter were skipped.
func (s *Leases) skipTaken(ctx context.Context, o Outlook) (skipped map[string]uint64, err error) {
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
func (s *Leases) tellOutlook(ctx context.Context, o Outlook, older bool, unknown int64, skipped map[string]uint64) {
	log, ids := s.log, slog.Any("ids_skipped", skipped)
	if o.Lost != nil {
		log.ErrorContext(ctx, "write-ahead log of curt.db was damaged, continuing without the lost transactions", slog.String("damage", o.Lost.What),
			slog.Int("frames", o.Lost.Frames), slog.Int("transactions", o.Lost.Transactions), slog.Int64("links_at_most", unknown), ids)
	}
	if o.Elsewhere {
		log.WarnContext(ctx, "data folder was copied or moved, skipped ids so that no two copies generate the same code", ids)
	}
	if o.Spoiled {
		log.WarnContext(ctx, "state file of curt.db was damaged, recreated it and skipped ids so that no code repeats", ids)
	}
	if o.Missing {
		log.WarnContext(ctx, "state file of curt.db is missing, recreated it and skipped ids so that no code repeats", ids)
	}
	if o.Lost == nil && (older || len(skipped) > 0 && !o.Elsewhere && !o.Spoiled && !o.Missing) {
		log.WarnContext(ctx, "curt.db is older than its state file, newer links are lost and their codes will not be reused",
			slog.Int64("links_at_most", unknown), ids)
	}
}

// unknownIDs returns how many ids were leased, as the state file says, and are behind every
// link that the store has: links that are gone had codes of these.
func (s *Leases) unknownIDs(ctx context.Context, leased map[string]uint64) (n int64, err error) {
	counted, err := s.countedIDs(ctx)
	for length, ids := range counted {
		n += max(0, int64(leased[codegen.Counter(codegen.DefaultPrefix, length)])-ids)
	}
	return n, err
}

func (s *Leases) countedIDs(ctx context.Context) (ids [codegen.MaxLength + 1]int64, err error) {
	err = s.db.Read(ctx, func(t *sqlitedb.Tx) (err error) {
		ids, err = CountedIDs(t)
		return err
	})
	if err != nil {
		return ids, fmt.Errorf("find the newest codes: %w", err)
	}
	return ids, nil
}

const sqlLastCounted = `SELECT max(n) FROM links WHERE n >= ? AND n < ?`

// CountedIDs returns, by the length of codes, how many ids there are up to that of the newest link.
func CountedIDs(t *sqlitedb.Tx) (ids [codegen.MaxLength + 1]int64, err error) {
	for length := codegen.MinLength; length <= codegen.MaxLength; length++ {
		lowest := codegen.FirstPosition(length)
		last, found, err := t.Number(sqlLastCounted, lowest, codegen.FirstPosition(length+1))
		if err != nil {
			return ids, err
		}
		if found {
			ids[length] = last - lowest + 1
		}
	}
	return ids, nil
}

func (s *Leases) readNumber(ctx context.Context, query string, args ...any) (n int64, err error) {
	err = s.db.Read(ctx, func(t *sqlitedb.Tx) (err error) {
		n, _, err = t.Number(query, args...)
		return err
	})
	return n, err
}

// codeCounters are those that the state file has.
func codeCounters() []string {
	all := []string{takenCounter}
	for length := codegen.MinLength; length <= codegen.MaxLength; length++ {
		all = append(all, codegen.Counter(codegen.DefaultPrefix, length))
	}
	return all
}

// allLeased returns the marks of the counters that codes come from.
func (s *Leases) allLeased(ctx context.Context) (map[string]uint64, error) {
	leases := map[string]uint64{}
	for _, counter := range codeCounters() {
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

func (s *Leases) storeGeneration(ctx context.Context, n int64) error {
	return s.db.Write(ctx, 1, func(t *sqlitedb.Tx) error {
		_, err := t.Exec(sqlLease, generationCounter, n)
		return err
	})
}

// Emptied says in the state file, before the last connection deletes the WAL, that all of it is
// in the file.
func (s *Leases) Emptied() error {
	return s.state.Update(func(now *statefile.State) { now.Open = false })
}

// Checkpointed renews the generation when all of the log is in the file: from now on its absence
// would be noticed again.
func (s *Leases) Checkpointed(ctx context.Context) error {
	stored, err := s.readNumber(ctx, SQLLeased, generationCounter)
	if err == nil {
		err = s.storeGeneration(ctx, stored+1)
	}
	if err == nil {
		err = s.state.Update(func(now *statefile.State) { now.Generation = max(now.Generation, stored+1) })
	}
	if err != nil && !errors.Is(err, link.ErrFull) && !errors.Is(err, unix.ENOSPC) {
		return fmt.Errorf("update the generation: %w", err)
	}
	return nil
}

// keepLease has the state file know of a lease before anybody uses it. A disk that fails ends
// all writes, as when it fails under the log.
func (s *Leases) keepLease(counter string, next uint64) error {
	if s.state == nil || !slices.Contains(codeCounters(), counter) {
		return nil
	}
	if err := s.state.Update(func(now *statefile.State) { now.Leases[counter] = next }); err != nil {
		if errors.Is(err, unix.EIO) {
			s.db.Stop(err)
		}
		return fmt.Errorf("store the lease of %s: %w: %w", counter, link.ErrUnavailable, err)
	}
	return nil
}

// SkipLeased moves the counters of codes past what was leased from the store whose state
// file that is, for a store that takes its place; without a file that can be read nothing
// is skipped.
func (s *Leases) SkipLeased(ctx context.Context, path string) error {
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
