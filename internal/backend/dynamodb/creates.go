package dynamodb

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"strings"
	"time"

	"curt/internal/backend/dynamodb/ddb"
	"curt/internal/backend/dynamodb/linkitem"
	"curt/internal/backend/dynamodb/tables"
	"curt/internal/link"
)

// The log of creates is read from the index of all links by age, up to a time before which no create
// is under way and the index shows all: Config.CreatesDelay ago. A create whose id is not of its time, as
// of an import or of a retry after minutes, is in an index by its own time instead.
const (
	// An id may be as far from the clock as this part of Config.CreatesDelay.
	onTime = 3
	// creates are not looked for beyond this many items in one call.
	mostCreatesLooked = 4000
)

// late puts a create into the index of late ones, if it is one when it is sent.
func (s *creator) late(item ddb.Item, l *link.Link, now time.Time) {
	if l.CodeKind == link.Chosen || l.Status == link.Deleted || now.Sub(l.ID.Time()).Abs() <= s.delay/onTime {
		return
	}
	item[linkitem.OfLate] = ddb.Text(linkitem.Shard(linkitem.ShardOf(l.Key, linkitem.Shards)))
	item[linkitem.Late] = ddb.Bytes(linkitem.TimedKey(now.UnixMilli(), l.Key))
}

// createsPosition is behind a place in each of both indexes, of some tables.
type createsPosition struct {
	tables    string
	age, late []byte
}

// String returns p as a follower keeps it.
func (p createsPosition) String() link.Position {
	return link.Position(p.tables + "/" + base64.RawURLEncoding.EncodeToString(p.age) + "/" + base64.RawURLEncoding.EncodeToString(p.late))
}

func (s *linkReader) parseCreates(text link.Position) (p createsPosition, err error) {
	p = createsPosition{s.identity, []byte{0}, []byte{0}}
	if text == "" {
		return p, nil
	}
	parts := strings.Split(string(text), "/")
	if len(parts) != 3 {
		return p, fmt.Errorf("position %q of creates: %w", text, link.ErrInvalid)
	}
	age, bad := base64.RawURLEncoding.DecodeString(parts[1])
	late, worse := base64.RawURLEncoding.DecodeString(parts[2])
	switch {
	case bad != nil || worse != nil || len(age) == 0 || len(late) == 0:
		return p, fmt.Errorf("position %q of creates: %w", text, link.ErrInvalid)
	case parts[0] != s.identity:
		return p, fmt.Errorf("position %q of creates is of other tables: %w", text, link.ErrConflict)
	}
	return createsPosition{s.identity, age, late}, nil
}

// agedAt is the first place by age of ids of a time.
func agedAt(t time.Time) []byte {
	return binary.BigEndian.AppendUint64(nil, uint64(max(0, t.UnixMilli()))<<16)[:6]
}

// CreatesHead implements link.CreateLog.
func (s *linkReader) CreatesHead(ctx context.Context) (link.Position, error) {
	if err := s.db.Ready(ctx); err != nil {
		return "", fmt.Errorf("read the head of creates: %w", err)
	}
	until := time.Now().Add(-s.delay)
	return createsPosition{s.identity, agedAt(until), ddb.Sortable(until.UnixMilli())}.String(), nil
}

// Creates implements link.CreateLog.
func (s *linkReader) Creates(ctx context.Context, after link.Position, n int) (links []link.Link, next link.Position, err error) {
	next, _, err = s.createsAfter(ctx, after, n, func(l *link.Link) { links = append(links, *l) })
	return links, next, err
}

// CreatesEnded implements link.CreateLog.
func (s *linkReader) CreatesEnded(ctx context.Context, after link.Position, by time.Time, n int) (keys []link.Key, next link.Position, more bool, err error) {
	next, more, err = s.createsAfter(ctx, after, n, func(l *link.Link) {
		if l.Ended(by) {
			keys = append(keys, l.Key)
		}
	})
	return keys, next, more, err
}

// createsAfter gives up to n creates behind a position to take, and returns the position behind them.
// more: the end was not reached.
func (s *linkReader) createsAfter(ctx context.Context, after link.Position, n int, take func(*link.Link)) (next link.Position, more bool, err error) {
	at, err := s.parseCreates(after)
	if err != nil {
		return "", false, err
	}
	page := createsPage{at: at, n: n, until: time.Now().Add(-s.delay), take: take}
	err = s.db.ReadMany(ctx, func(ctx context.Context) error {
		if err := s.createsOf(ctx, &page, tables.ByAge); err != nil {
			return err
		}
		return s.createsOf(ctx, &page, tables.ByLate)
	})
	if err != nil {
		return "", false, fmt.Errorf("read creates: %w", err)
	}
	return page.at.String(), page.full, nil
}

// createsPage is what one call has read.
type createsPage struct {
	at    createsPosition
	n     int
	until time.Time
	take  func(*link.Link)

	took, looked int
	full         bool // the end was not reached
}

// createsOf reads one of both indexes on.
func (s *linkReader) createsOf(ctx context.Context, p *createsPage, index string) error {
	w, at := walk{index: index, hash: linkitem.OfAll, sort: linkitem.Age, hi: agedAt(p.until), forward: true}, &p.at.age
	if index == tables.ByLate {
		w.hash, w.sort, w.hi, at = linkitem.OfLate, linkitem.Late, ddb.Sortable(p.until.UnixMilli()), &p.at.late
	}
	w.lo = append(bytes.Clone(*at), 0)
	m := s.merge(w, allShards(), p.n/linkitem.Shards+8)
	for {
		if p.full = p.took == p.n || p.looked == mostCreatesLooked; p.full {
			return nil
		}
		item, there, err := m.next(ctx)
		if err != nil || !there {
			return err
		}
		p.looked++
		*at = ddb.BytesOf(item, w.sort)
		l, err := linkitem.Unmarshal(item)
		if _, late := item[linkitem.OfLate]; err == nil && l.CodeKind != link.Chosen && late == (index == tables.ByLate) {
			p.took++
			p.take(&l)
		}
	}
}
