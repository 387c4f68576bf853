package sqlite

import (
	"context"
	"database/sql/driver"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"curt/internal/codegen"
	"curt/internal/link"
)

var _ link.CreateLog = (*Links)(nil)

// keptCreates is how many transactions are kept for readers of Creates.
const keptCreates = 1_000_000

// logCreates appends what a transaction has created, before it commits.
func (s *Links) logCreates(t *tx) error {
	if len(s.counted) == 0 {
		return nil
	}
	rows, before := make([]byte, 0, 2*len(s.counted)+8), int64(0)
	for _, n := range s.counted {
		rows = binary.AppendVarint(rows, n-before)
		before = n
	}
	s.counted = s.counted[:0]
	seq, err := t.insert(sqlInsertCreates, rows)
	if err == nil && seq%trimEvery == 0 {
		_, err = t.exec(sqlTrimCreates, seq-keptCreates)
	}
	return err
}

// rowsOf reads what logCreates wrote.
func rowsOf(text []byte) (rows []int64, err error) {
	for before := int64(0); len(text) > 0; {
		difference, size := binary.Varint(text)
		if size <= 0 {
			return nil, fmt.Errorf("%w: %w: rows of a transaction", link.ErrUnavailable, ErrCorrupt)
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

func (p createsPosition) String() link.Position {
	return link.Position(fmt.Sprintf("%d/%d", p.seq, p.rows))
}

// Creates implements link.CreateLog.
func (s *Links) Creates(ctx context.Context, after link.Position, n int) ([]link.Link, link.Position, error) {
	at, err := parseCreatesPosition(after)
	if err != nil {
		return nil, "", err
	}
	var links []link.Link
	err = s.readMany(ctx, func(t *tx) error {
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

// createdRows returns up to n rows after a position, and moves it.
func createdRows(t *tx, at *createsPosition, n int) (rows []int64, err error) {
	from, last := *at, int64(0)
	err = t.each(sqlCreates, func(row []driver.Value) error {
		sc := scanner{row: row}
		seq := sc.int()
		of, err := rowsOf(next[[]byte](&sc))
		if err != nil || sc.bad {
			return fmt.Errorf("transaction %d: %w", seq, ErrCorrupt)
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
	head, _, err := t.number(sqlLastCreates)
	if err == nil && head < from.seq {
		err = fmt.Errorf("creates end at %d: %w", head, link.ErrConflict)
	}
	return nil, err
}

// linksAt reads rows; one that is damaged is passed over.
func linksAt(t *tx, rows []int64) (links []link.Link, err error) {
	for _, n := range rows {
		_, err := t.one(sqlLinkAt, func(row []driver.Value) error {
			_, l, err := scanLink(row)
			if err == nil {
				links = append(links, l)
			}
			return err
		}, n)
		if err != nil && !isDamaged(err) {
			return nil, err
		}
	}
	return links, nil
}

// CreatesHead implements link.CreateLog.
func (s *Links) CreatesHead(ctx context.Context) (link.Position, error) {
	var p createsPosition
	err := s.read(ctx, func(t *tx) (err error) {
		p.seq, _, err = t.number(sqlLastCreates)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("read the head of creates: %w", err)
	}
	return p.String(), nil
}

// adoptCreates appends what a release created that writes no creates: ids that were leased since.
func (s *Links) adoptCreates(ctx context.Context) error {
	for length := codegen.MinLength; length <= codegen.MaxLength; length++ {
		counter := codegen.Counter(codegen.DefaultPrefix, length)
		err := s.writer.write(ctx, 1, func(t *tx) error {
			from, _, err := t.number(sqlCreatesLeased, counter)
			if err != nil {
				return err
			}
			to, _, err := t.number(sqlLeased, counter)
			if err != nil || to <= from {
				return err
			}
			base := int64(length-codegen.MinLength) << 60
			err = t.each(sqlRowsBetween, func(row []driver.Value) error {
				sc := scanner{row: row}
				s.counted = append(s.counted, sc.int())
				return sc.damage()
			}, base+from, base+to)
			if err == nil {
				_, err = t.exec(sqlLeaseCreates, counter, to)
			}
			return err
		})
		if err != nil && !errors.Is(err, link.ErrFull) { // the next start tries again
			return fmt.Errorf("read what the release before created: %w", err)
		}
	}
	return nil
}
