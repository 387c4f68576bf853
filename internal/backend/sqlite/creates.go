package sqlite

import (
	"context"
	"database/sql/driver"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"curt/internal/backend/sqlite/leases"
	"curt/internal/backend/sqlite/linkrow"
	"curt/internal/backend/sqlite/sqlitedb"
	"curt/internal/codegen"
	"curt/internal/link"
)

// createLog is the log of links with counted codes.
type createLog struct {
	db      *sqlitedb.Store
	changes *changeLog // trims this log by the same rules
	counted []int64    // rows created with counted codes; owned by the writer's transactions
}

const (
	sqlInsertCreates = `INSERT INTO creates (rows, at) VALUES (?, ?)`
	sqlTrimCreates   = `DELETE FROM creates WHERE seq <= ?`
	sqlFirstCreates  = `SELECT coalesce(min(seq), 0) FROM creates`
	// As of the change log. The number of a position comes first in it.
	sqlSlowestOfCreates = `SELECT name, CAST(position AS INTEGER) AS seq FROM log_followers WHERE position IS NOT NULL ORDER BY seq LIMIT 1`
	sqlCreatesSize      = `SELECT CAST(coalesce(avg(16 + length(rows)), 16) AS INTEGER) FROM (SELECT rows FROM creates ORDER BY seq DESC LIMIT 1000)`
	sqlCreatesKeptFor   = `SELECT seq FROM creates WHERE seq > ? AND at >= ? ORDER BY seq LIMIT 1`
)

func trimmedCreates() trimmed {
	return trimmed{"creates", sqlSlowestOfCreates, sqlCreatesSize, sqlCreatesKeptFor, sqlFirstCreates, sqlTrimCreates}
}

// logAlias notes the create of the row n: that of a chosen code is in the change log.
func (s *createLog) logAlias(t *sqlitedb.Tx, n int64, l *link.Link) error {
	if l.CodeKind == link.Chosen {
		return s.changes.logWrite(t, l, link.WasCreated, &link.Edit{Principal: l.CreatedBy, Fields: link.CreatedFields(l)})
	}
	s.counted = append(s.counted, n)
	return nil
}

// logCreates appends what a transaction has created, before it commits.
func (s *createLog) logCreates(t *sqlitedb.Tx) error {
	if len(s.counted) == 0 {
		return nil
	}
	rows, before := make([]byte, 0, 2*len(s.counted)+8), int64(0)
	for _, n := range s.counted {
		rows = binary.AppendVarint(rows, n-before)
		before = n
	}
	s.counted = s.counted[:0]
	seq, err := t.Insert(sqlInsertCreates, rows, time.Now().UnixMilli())
	if err == nil && seq%trimEvery == 0 {
		err = s.changes.trim(t, seq, trimmedCreates())
	}
	return err
}

// RowsOf reads the rows of an entry of creates.
func RowsOf(text []byte) (rows []int64, err error) {
	for before := int64(0); len(text) > 0; {
		difference, size := binary.Varint(text)
		if size <= 0 {
			return nil, fmt.Errorf("%w: %w: rows of a transaction", link.ErrUnavailable, sqlitedb.ErrCorrupt)
		}
		before += difference
		rows, text = append(rows, before), text[size:]
	}
	return rows, nil
}

// createsPosition is behind so many rows of the transaction that follows seq.
type createsPosition struct {
	seq  int64
	rows int
}

func parseCreatesPosition(text link.Position) (p createsPosition, err error) {
	if text == "" {
		return p, nil
	}
	seq, rows, _ := strings.Cut(string(text), "/")
	if p.seq, err = strconv.ParseInt(seq, 10, 64); err == nil {
		p.rows, err = strconv.Atoi(rows)
	}
	if err != nil || p.seq < 0 || p.rows < 0 {
		return p, fmt.Errorf("position %q: %w", text, link.ErrInvalid)
	}
	return p, nil
}

// String returns p as a follower keeps it.
func (p createsPosition) String() link.Position {
	return link.Position(fmt.Sprintf("%d/%d", p.seq, p.rows))
}

// Creates implements link.CreateLog.
func (s *createLog) Creates(ctx context.Context, after link.Position, n int) ([]link.Link, link.Position, error) {
	at, err := parseCreatesPosition(after)
	if err != nil {
		return nil, "", err
	}
	var links []link.Link
	err = s.db.ReadMany(ctx, func(t *sqlitedb.Tx) error {
		rows, err := createdRows(t, &at, n)
		if err != nil || len(rows) == 0 {
			return err
		}
		links, err = linksAt(t, rows)
		return err
	})
	if err != nil {
		return nil, "", fmt.Errorf("read creates: %w", err)
	}
	return links, at.String(), nil
}

const (
	sqlLastCreates = `SELECT coalesce(max(seq), 0) FROM creates`
	sqlCreates     = `SELECT seq, rows FROM creates WHERE seq > ? ORDER BY seq LIMIT ?`
)

// createdRows returns up to n rows after a position, and moves it.
func createdRows(t *sqlitedb.Tx, at *createsPosition, n int) (rows []int64, err error) {
	from, last := *at, int64(0)
	err = t.Each(sqlCreates, func(row []driver.Value) error {
		sc := sqlitedb.Scanner{Row: row}
		seq := sc.Int()
		of, err := RowsOf(sqlitedb.Next[[]byte](&sc))
		if err != nil || sc.Bad {
			return fmt.Errorf("transaction %d: %w", seq, sqlitedb.ErrCorrupt)
		}
		if last == 0 && seq != from.seq+1 {
			return fmt.Errorf("creates up to %d were trimmed: %w", seq-1, link.ErrConflict)
		}
		last = seq
		if seq == from.seq+1 {
			of = of[min(from.rows, len(of)):]
		}
		if room := n - len(rows); len(of) > room {
			read := room
			if seq == from.seq+1 {
				read += from.rows
			}
			rows, *at = append(rows, of[:room]...), createsPosition{seq - 1, read}
			return errEnough
		}
		rows, *at = append(rows, of...), createsPosition{seq: seq}
		return nil
	}, from.seq, int64(n))
	switch {
	case errors.Is(err, errEnough):
		return rows, nil
	case err != nil || last > 0:
		return rows, err
	}
	head, _, err := t.Number(sqlLastCreates)
	if err == nil && head < from.seq {
		err = fmt.Errorf("creates end at %d: %w", head, link.ErrConflict)
	}
	return nil, err
}

// linksAt reads rows; one that is damaged is passed over.
func linksAt(t *sqlitedb.Tx, rows []int64) (links []link.Link, err error) {
	for _, n := range rows {
		_, err := t.One(linkrow.SelectRow, func(row []driver.Value) error {
			_, l, err := linkrow.Scan(row)
			if err == nil {
				links = append(links, l)
			}
			return err
		}, n)
		if err != nil && !linkrow.IsDamaged(err) {
			return nil, err
		}
	}
	return links, nil
}

// By the rows, not by the index of ends, of which most may have passed.
const sqlEndedAt = `SELECT domain, code FROM links WHERE +status = 1 AND +expires <> 0 AND +expires <= ? AND n IN `

// CreatesEnded implements link.CreateLog.
func (s *createLog) CreatesEnded(ctx context.Context, after link.Position, by time.Time, n int) (keys []link.Key, next link.Position, more bool, err error) {
	at, err := parseCreatesPosition(after)
	if err != nil {
		return nil, "", false, err
	}
	err = s.db.ReadMany(ctx, func(t *sqlitedb.Tx) error {
		rows, err := createdRows(t, &at, n)
		more = len(rows) == n
		for chunk := range slices.Chunk(rows, sqlitedb.RowsAtOnce) {
			args := []any{by.UnixMilli()}
			for _, n := range chunk {
				args = append(args, n)
			}
			err = errors.Join(err, t.Each(sqlEndedAt+sqlitedb.Groups(1, len(chunk)), func(row []driver.Value) error {
				sc := sqlitedb.Scanner{Row: row}
				keys = append(keys, link.Key{Domain: link.Domain(sc.Text()), Code: link.Code(sc.Text())})
				return sc.Damage()
			}, args...))
		}
		return err
	})
	if err != nil {
		return nil, "", false, fmt.Errorf("read creates: %w", err)
	}
	return keys, at.String(), more, nil
}

// CreatesHead implements link.CreateLog.
func (s *createLog) CreatesHead(ctx context.Context) (link.Position, error) {
	var p createsPosition
	err := s.db.Read(ctx, func(t *sqlitedb.Tx) (err error) {
		p.seq, _, err = t.Number(sqlLastCreates)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("read the head of creates: %w", err)
	}
	return p.String(), nil
}

const (
	sqlCreatesLeased = `SELECT next FROM creates_leased WHERE counter = ?`
	sqlRowsBetween   = `SELECT n FROM links WHERE n >= ? AND n < ? AND minted = 1`
)

// adoptCreates appends what a release created that writes no creates: ids that were leased since.
func (s *createLog) adoptCreates(ctx context.Context) error {
	for length := codegen.MinLength; length <= codegen.MaxLength; length++ {
		counter := codegen.Counter(codegen.DefaultPrefix, length)
		err := s.db.Write(ctx, 1, func(t *sqlitedb.Tx) error {
			from, _, err := t.Number(sqlCreatesLeased, counter)
			if err != nil {
				return err
			}
			to, _, err := t.Number(leases.SQLLeased, counter)
			if err != nil || to <= from {
				return err
			}
			base := int64(length-codegen.MinLength) << 60
			err = t.Each(sqlRowsBetween, func(row []driver.Value) error {
				sc := sqlitedb.Scanner{Row: row}
				s.counted = append(s.counted, sc.Int())
				return sc.Damage()
			}, base+from, base+to)
			if err == nil {
				_, err = t.Exec(leases.SQLLeaseCreates, counter, to)
			}
			return err
		})
		if err != nil && !errors.Is(err, link.ErrFull) { // the next start tries again
			return fmt.Errorf("read creates of the previous release: %w", err)
		}
	}
	return nil
}
