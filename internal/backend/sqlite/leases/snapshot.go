package leases

import (
	"database/sql/driver"
	"errors"
	"io/fs"
	"maps"
	"time"

	"curt/internal/backend/sqlite/snapshot"
	"curt/internal/backend/sqlite/sqlitedb"
	"curt/internal/codegen"
	"curt/internal/statefile"
)

// Stored is what a snapshot of curt.db says of leases and keys.
type Stored struct{ db *snapshot.Snapshot }

// StoredIn returns what a snapshot of curt.db says of leases and keys.
func StoredIn(s *snapshot.Snapshot) Stored { return Stored{s} }

// StaleLeases returns the lengths of codes that would be handed out twice, because the
// counter of a curt.db lies at or below a code that a link has.
func (s Stored) StaleLeases() (lengths []int, err error) {
	err = s.db.View("read the leases of", func(t *sqlitedb.Tx) error {
		counted, err := CountedIDs(t)
		for length, ids := range counted {
			if ids == 0 {
				continue
			}
			next, _, err := t.Number(SQLLeased, codegen.Counter(codegen.DefaultPrefix, length))
			if err != nil {
				return err
			}
			if ids > next {
				lengths = append(lengths, length)
			}
		}
		return err
	})
	return lengths, err
}

const sqlKeyDays = `SELECT day FROM day_keys ORDER BY day`

// KeyDays returns the UTC days whose keys of visitor tags a curt.db has.
func (s Stored) KeyDays() (days []time.Time, err error) {
	err = s.db.View("read the day keys of", func(t *sqlitedb.Tx) error {
		return t.Each(sqlKeyDays, func(row []driver.Value) error {
			sc := sqlitedb.Scanner{Row: row}
			days = append(days, time.Unix(sc.Int()*24*60*60, 0).UTC())
			return sc.Damage()
		})
	})
	return days, err
}

// Outdated reports whether a curt.db is older than its state file, where that can be read.
func (s Stored) Outdated() (older bool, err error) {
	state, err := statefile.Read(s.db.Path() + stateSuffix)
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
	err = s.db.View("read the leases of", func(t *sqlitedb.Tx) error {
		for counter, next := range leases {
			stored, _, err := t.Number(SQLLeased, counter)
			if err != nil {
				return err
			}
			older = older || uint64(stored) < next
		}
		return nil
	})
	return older, err
}

const (
	sqlHoldsDays  = `SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = 'day_keys'`
	sqlForgetDays = `DELETE FROM day_keys`
)

// ForgetDayKeys deletes the keys of visitor tags, with which tags could be tied to addresses,
// where a file has such.
func ForgetDayKeys(t *sqlitedb.Tx) error {
	kept, _, err := t.Number(sqlHoldsDays)
	if err == nil && kept > 0 {
		_, err = t.Exec(sqlForgetDays)
	}
	return err
}
