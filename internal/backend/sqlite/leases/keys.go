package leases

import (
	"context"
	"crypto/rand"
	"database/sql/driver"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"log/slog"
	"time"

	"curt/internal/backend/sqlite/sqlitedb"
	"curt/internal/codegen"
	"curt/internal/link"
)

const settingCodeKey = "code_key"

// CodeKey returns the key of the permutation, which was made at the first start. It
// is a secret: whoever has it can tell the order of links from their codes.
func (s *Leases) CodeKey(ctx context.Context) ([32]byte, error) {
	if ctx.Err() != nil {
		return [32]byte{}, fmt.Errorf("read the code key: %w", context.Cause(ctx))
	}
	return s.codeKey, nil
}

const sqlAddSetting = `INSERT INTO settings (name, value) VALUES (?, ?)`

// loadCodeKey reads the key, and makes it when there is none. A key with a flipped
// bit would lead every look-up astray, so it carries a checksum.
func (s *Leases) loadCodeKey(ctx context.Context) ([32]byte, error) {
	var key [32]byte // as in DayKey
	err := s.db.Write(ctx, 1, func(t *sqlitedb.Tx) error {
		var stored []byte
		found, err := t.One(sqlSetting, func(row []driver.Value) error {
			stored, _ = row[0].([]byte)
			return nil
		}, settingCodeKey)
		if err != nil {
			return err
		}
		if !found {
			_, _ = rand.Read(key[:]) // never fails: crypto/rand ends the process instead
			_, err := t.Exec(sqlAddSetting, settingCodeKey, sealed(key[:]))
			return err
		}
		if len(stored) != len(key)+crc32.Size || string(sealed(stored[:len(key)])) != string(stored) {
			return fmt.Errorf("code key: %w: %w", link.ErrUnavailable, sqlitedb.ErrCorrupt)
		}
		copy(key[:], stored)
		return nil
	})
	if err != nil {
		return [32]byte{}, err
	}
	return key, nil
}

// sealed returns the key with its CRC-32C behind it.
func sealed(key []byte) []byte {
	sum := crc32.Checksum(key, crc32.MakeTable(crc32.Castagnoli))
	return binary.BigEndian.AppendUint32(append([]byte(nil), key...), sum)
}

// skipStaleLeases moves every counter of codes past the newest link counted from it,
// for a file whose leases are older than its links.
func (s *Leases) skipStaleLeases(ctx context.Context) error {
	counted, err := s.countedIDs(ctx)
	for length, ids := range counted {
		if ids == 0 {
			continue
		}
		skipped, err := codegen.SkipIfStale(ctx, s, codegen.DefaultPrefix, length, uint64(ids-1))
		if err != nil {
			return err
		}
		if skipped {
			s.log.WarnContext(ctx, "code leases older than links, skipped ids", slog.Int("length", length))
		}
	}
	return err
}

// DayKey returns the key of visitor tags for the UTC day that holds day. It makes
// the key when it is asked for first, and destroys the keys of earlier days that are
// over: their bytes are overwritten in the file and cut out of the WAL, so that
// nobody can tie tags of a past day to addresses again. Callers keep the key for
// the day; one who asks for a past day gets a fresh key, never the old one.
func (s *Leases) DayKey(ctx context.Context, day time.Time) ([16]byte, error) {
	var key [16]byte // no named result, and no error of ours in the write: one that we left may still set them
	number := day.UTC().Unix() / int64((24 * time.Hour).Seconds())
	read := func(t *sqlitedb.Tx) (found bool, err error) {
		return t.One(sqlDayKey, func(row []driver.Value) error {
			copy(key[:], sqlitedb.Next[[]byte](&sqlitedb.Scanner{Row: row}))
			return nil
		}, number)
	}
	var found, old bool
	err := s.db.Read(ctx, func(t *sqlitedb.Tx) (err error) {
		if found, err = read(t); err == nil {
			_, old, err = t.Number(sqlOldDay, number)
		}
		return err
	})
	if err != nil || found && !old {
		return key, wrapDayKey(day, err)
	}
	var destroyed int64
	err = s.db.Write(ctx, 1, func(t *sqlitedb.Tx) (err error) {
		found, err := read(t) // another caller may have been first
		if err != nil {
			return err
		}
		if !found {
			_, _ = rand.Read(key[:]) // never fails: crypto/rand ends the process instead
			if _, err := t.Exec(sqlInsertDay, number, key[:]); err != nil {
				return err
			}
		}
		destroyed, err = t.Exec(sqlDropDays, number)
		return err
	})
	if err != nil {
		return [16]byte{}, wrapDayKey(day, err)
	}
	if destroyed > 0 {
		s.db.Scrub(ctx) // the key of today does not wait for the end of the old ones
	}
	return key, nil
}

func wrapDayKey(day time.Time, err error) error {
	if err != nil {
		return fmt.Errorf("key of visitor tags for %s: %w", day.UTC().Format(time.DateOnly), err)
	}
	return nil
}
