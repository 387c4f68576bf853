package sqlite

import (
	"context"
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"curt/internal/link"
	"curt/internal/moderation"
)

// Journal is the journal of moderation in curt.db, and how much of it has taken effect. It
// shares the group commit of Links and ends with it.
type Journal struct{ links *Links }

// The contracts that Journal keeps.
var (
	_ moderation.Journal       = Journal{}
	_ moderation.ProgressStore = Journal{}
)

// Journal returns the journal beside the links.
func (s *Links) Journal() Journal { return Journal{s} }

// maxEntries bounds one read of entries, whose texts are up to 9 KiB each.
const maxEntries = 1000

// Append implements moderation.Journal. The order of the chain is that of the writer.
func (j Journal) Append(ctx context.Context, entries ...moderation.Entry) ([]moderation.Entry, error) {
	if err := moderation.Appendable(entries); err != nil || len(entries) == 0 {
		return nil, err
	}
	var stored []moderation.Entry // no named result: a write that the caller left may still set it
	err := j.links.writer.write(ctx, len(entries), func(t *tx) (err error) {
		stored, err = appendEntries(t, entries)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("append %d entries to the journal: %w", len(entries), err)
	}
	return stored, nil
}

// appendEntries puts entries behind the last one.
func appendEntries(t *tx, entries []moderation.Entry) ([]moderation.Entry, error) {
	var last moderation.Entry
	_, err := t.one(sqlLastEntry, func(row []driver.Value) (err error) {
		last, err = scanEntry(row)
		return err
	})
	if err != nil {
		return nil, err
	}
	stored := slices.Clone(entries)
	for i := range stored {
		e := &stored[i]
		if e.Sequence = last.Sequence + 1; e.At.Before(last.At) {
			e.At = last.At
		}
		*e = e.Seal(last.Hash)
		if _, err := t.exec(sqlInsertEntry, entryArgs(e)...); err != nil {
			return nil, err
		}
		last = *e
	}
	return stored, nil
}

// Read implements moderation.Journal.
func (j Journal) Read(ctx context.Context, after uint64, n int) ([]moderation.Entry, error) {
	if after > math.MaxInt64 {
		return nil, nil
	}
	return j.entries(ctx, sqlEntries, int64(after), int64(min(n, maxEntries)))
}

// entries runs a query for entries.
func (j Journal) entries(ctx context.Context, query string, args ...any) ([]moderation.Entry, error) {
	var entries []moderation.Entry
	err := j.links.read(ctx, func(t *tx) error { return eachEntry(t, &entries, query, args...) })
	if err != nil {
		return nil, fmt.Errorf("read the journal: %w", err)
	}
	return entries, nil
}

func eachEntry(t *tx, entries *[]moderation.Entry, query string, args ...any) error {
	return t.each(query, func(row []driver.Value) error {
		e, err := scanEntry(row)
		*entries = append(*entries, e)
		return err
	}, args...)
}

// Find implements moderation.Journal.
func (j Journal) Find(ctx context.Context, f moderation.Filter, before uint64, n int) ([]moderation.Entry, error) {
	if before == 0 || before > math.MaxInt64 {
		before = math.MaxInt64
	}
	var entries []moderation.Entry
	err := j.links.readMany(ctx, func(t *tx) error {
		first := int64(0)
		if !f.Since.IsZero() {
			var found bool
			var err error
			if first, found, err = t.number(sqlFirstSince, millisUp(f.Since)); err != nil || !found {
				return err
			}
		}
		query, args := sqlNewestEntries, []any{int64(before), first, int64(min(n, maxEntries))}
		byEntity := []any{string(f.Entity.Kind), f.Entity.Name}
		switch entity := f.Entity != (moderation.Entity{}); {
		case entity && f.Actor != "":
			query, args = sqlEntriesOfBoth, append(append(byEntity, f.Actor), args...)
		case entity:
			query, args = sqlEntriesOf, append(byEntity, args...)
		case f.Actor != "":
			query, args = sqlEntriesBy, append([]any{f.Actor}, args...)
		}
		return eachEntry(t, &entries, query, args...)
	})
	if err != nil {
		return nil, fmt.Errorf("search the journal: %w", err)
	}
	return entries, nil
}

// Standing implements moderation.Journal.
func (j Journal) Standing(ctx context.Context, id link.ID) (moderation.Entry, error) {
	found, err := j.entries(ctx, sqlStanding, id[:])
	if err == nil && len(found) == 0 {
		err = fmt.Errorf("standing decision of link %s: %w", id, moderation.ErrNotFound)
	}
	if err != nil || found[0].Actor != moderation.ActorPolicy {
		return first(found), err
	}
	person, err := j.entries(ctx, sqlStandingPerson, id[:], moderation.ActorPolicy)
	return moderation.Stands(found[0], first(person)), err
}

// first returns the first entry, or the zero one.
func first(entries []moderation.Entry) (e moderation.Entry) {
	if len(entries) > 0 {
		e = entries[0]
	}
	return e
}

// Bans implements moderation.Journal. It reads every ban there ever was.
func (j Journal) Bans(ctx context.Context) ([]moderation.Entry, error) {
	all, err := j.entries(ctx, sqlBans)
	if err != nil {
		return nil, err
	}
	return moderation.StandingBans(all), nil
}

// Erase implements moderation.Journal. Erased texts are overwritten in the file, and cut
// out of the write-ahead log.
func (j Journal) Erase(ctx context.Context, sequence uint64, by moderation.Entry) (moderation.Entry, error) {
	if err := by.Validate(); err != nil {
		return moderation.Entry{}, fmt.Errorf("erase entry %d: %w", sequence, err)
	}
	var said []moderation.Entry
	err := j.links.writer.write(ctx, 2, func(t *tx) error {
		changed, err := t.exec(sqlEraseEntry, int64(min(sequence, math.MaxInt64)))
		if err == nil && changed == 0 {
			err = moderation.ErrNotFound
		}
		if err != nil {
			return err
		}
		said, err = appendEntries(t, []moderation.Entry{by})
		return err
	})
	if err != nil {
		return moderation.Entry{}, fmt.Errorf("erase entry %d: %w", sequence, err)
	}
	j.links.scrub.Store(true)
	_ = j.links.checkpoint(ctx, sqlTruncateWAL) // what fails here, Run and Close do again
	return said[0], nil
}

// Progress implements moderation.ProgressStore.
func (j Journal) Progress(ctx context.Context) (p moderation.Progress, err error) {
	err = j.links.read(ctx, func(t *tx) (err error) {
		p, err = readProgress(t)
		return err
	})
	if err != nil {
		return moderation.Progress{}, fmt.Errorf("read the progress of the journal: %w", err)
	}
	return p, nil
}

func readProgress(t *tx) (p moderation.Progress, err error) {
	_, err = t.one(sqlProgress, func(row []driver.Value) error {
		s := scanner{row: row}
		if text := s.text(); json.Unmarshal([]byte(text), &p) != nil {
			s.bad = true
		}
		return s.damage()
	})
	return p, err
}

// KeepProgress implements moderation.ProgressStore.
func (j Journal) KeepProgress(ctx context.Context, p moderation.Progress) error {
	text, err := json.Marshal(p)
	if err == nil {
		err = j.links.writer.write(ctx, 1, func(t *tx) error {
			_, err := t.exec(sqlKeepProgress, string(text))
			return err
		})
	}
	if err != nil {
		return fmt.Errorf("keep the progress of the journal: %w", err)
	}
	return nil
}
