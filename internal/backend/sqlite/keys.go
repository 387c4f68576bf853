package sqlite

import (
	"context"
	"crypto/rand"
	"database/sql/driver"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"log/slog"
	"time"

	"curt/internal/codegen"
	"curt/internal/link"
)

const settingCodeKey = "code_key"

// CodeKey returns the key of the permutation, which was made at the first start. It
// is a secret: whoever has it can tell the order of links from their codes.
func (s *Links) CodeKey(ctx context.Context) ([32]byte, error) {
	if ctx.Err() != nil {
		return [32]byte{}, fmt.Errorf("read the key of codes: %w", context.Cause(ctx))
	}
	return s.codeKey, nil
}

// loadCodeKey reads the key, and makes it when there is none. A key with a flipped
// bit would lead every look-up astray, so it carries a checksum.
func (s *Links) loadCodeKey(ctx context.Context) ([32]byte, error) {
	var key [32]byte // as in DayKey
	err := s.writer.write(ctx, 1, func(t *tx) error {
		var stored []byte
		found, err := t.one(sqlSetting, func(row []driver.Value) error {
			stored, _ = row[0].([]byte)
			return nil
		}, settingCodeKey)
		if err != nil {
			return err
		}
		if !found {
			_, _ = rand.Read(key[:]) // never fails: crypto/rand ends the process instead
			_, err := t.exec(sqlAddSetting, settingCodeKey, sealed(key[:]))
			return err
		}
		if len(stored) != len(key)+crc32.Size || string(sealed(stored[:len(key)])) != string(stored) {
			return fmt.Errorf("key of codes: %w: %w", link.ErrUnavailable, ErrCorrupt)
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
func (s *Links) skipStaleLeases(ctx context.Context) error {
	for length := codegen.MinLength; length <= codegen.MaxLength; length++ {
		lowest := codegen.FirstPlace(length)
		var last int64
		var found bool
		err := s.read(ctx, func(t *tx) (err error) {
			last, found, err = t.number(sqlLastCounted, lowest, codegen.FirstPlace(length+1))
			return err
		})
		if err != nil {
			return fmt.Errorf("find the newest code of length %d: %w", length, err)
		}
		if !found {
			continue
		}
		skipped, err := codegen.SkipIfStale(ctx, s, codegen.DefaultPrefix, length, uint64(last-lowest))
		if err != nil {
			return err
		}
		if skipped {
			s.config.Log.WarnContext(ctx, "leases of codes were older than the links; ids were skipped", slog.Int("length", length))
		}
	}
	return nil
}

// DayKey returns the key of visitor tags for the UTC day that holds day. It makes
// the key when it is asked for first, and destroys the keys of earlier days that are
// over: their bytes are overwritten in the file and cut out of the WAL, so that
// nobody can tie tags of a past day to addresses again. Callers keep the key for
// the day; one who asks for a past day gets a fresh key, never the old one.
func (s *Links) DayKey(ctx context.Context, day time.Time) ([16]byte, error) {
	var key [16]byte // no named result, and no error of ours in the write: one that we left may still set them
	number := day.UTC().Unix() / int64((24 * time.Hour).Seconds())
	read := func(t *tx) (found bool, err error) {
		return t.one(sqlDayKey, func(row []driver.Value) error {
			copy(key[:], next[[]byte](&scanner{row: row}))
			return nil
		}, number)
	}
	var found, old bool
	err := s.read(ctx, func(t *tx) (err error) {
		if found, err = read(t); err == nil {
			_, old, err = t.number(sqlOldDay, number)
		}
		return err
	})
	if err != nil || found && !old {
		return key, wrapDayKey(day, err)
	}
	var destroyed int64
	err = s.writer.write(ctx, 1, func(t *tx) (err error) {
		found, err := read(t) // another caller may have been first
		if err != nil {
			return err
		}
		if !found {
			_, _ = rand.Read(key[:]) // never fails: crypto/rand ends the process instead
			if _, err := t.exec(sqlInsertDay, number, key[:]); err != nil {
				return err
			}
		}
		destroyed, err = t.exec(sqlDropDays, number)
		return err
	})
	if err != nil {
		return [16]byte{}, wrapDayKey(day, err)
	}
	if destroyed > 0 {
		// The key of today does not wait for the end of the old ones: what fails
		// here, Run and Close do again.
		s.scrub.Store(true)
		_ = s.checkpoint(ctx, sqlTruncateWAL)
	}
	return key, nil
}

func wrapDayKey(day time.Time, err error) error {
	if err != nil {
		return fmt.Errorf("key of visitor tags for %s: %w", day.UTC().Format(time.DateOnly), err)
	}
	return nil
}
