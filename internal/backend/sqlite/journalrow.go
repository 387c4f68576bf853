package sqlite

import (
	"database/sql/driver"
	"fmt"
	"time"

	"curt/internal/link"
	"curt/internal/moderation"
)

const (
	entryColumns = `sequence, at, kind, name, link, action, safety, score, actor,
	reason, reason_salt, reason_hash, evidence, evidence_salt, evidence_hash, hash`

	sqlInsertEntry = `INSERT INTO journal (` + entryColumns + `) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
	sqlLastEntry   = `SELECT ` + entryColumns + ` FROM journal WHERE sequence = (SELECT max(sequence) FROM journal)`
	sqlEntries     = `SELECT ` + entryColumns + ` FROM journal WHERE sequence > ? ORDER BY sequence LIMIT ?`

	newestEntries    = ` sequence < ? AND sequence >= ? ORDER BY sequence DESC LIMIT ?`
	sqlNewestEntries = `SELECT ` + entryColumns + ` FROM journal WHERE` + newestEntries
	sqlEntriesOf     = `SELECT ` + entryColumns + ` FROM journal WHERE kind = ? AND name = ? AND` + newestEntries
	sqlEntriesBy     = `SELECT ` + entryColumns + ` FROM journal WHERE actor = ? AND` + newestEntries
	sqlEntriesOfBoth = `SELECT ` + entryColumns + ` FROM journal INDEXED BY journal_by_entity
	WHERE kind = ? AND name = ? AND actor = ? AND` + newestEntries
	sqlFirstSince = `SELECT sequence FROM journal WHERE at >= ? ORDER BY at, sequence LIMIT 1`

	sqlStanding = `SELECT ` + entryColumns + ` FROM journal
	WHERE link = ? AND action IN ('decide', 'answer') ORDER BY sequence DESC LIMIT 1`
	sqlStandingPerson = `SELECT ` + entryColumns + ` FROM journal
	WHERE link = ? AND action IN ('decide', 'answer') AND actor <> ? ORDER BY sequence DESC LIMIT 1`
	sqlBans = `SELECT ` + entryColumns + ` FROM journal INDEXED BY journal_bans
	WHERE action IN ('ban', 'lift') ORDER BY sequence`

	sqlEraseEntry = `UPDATE journal SET reason = '', reason_salt = x'', evidence = '', evidence_salt = x'' WHERE sequence = ?`

	sqlProgress     = `SELECT progress FROM journal_progress WHERE n = 1`
	sqlKeepProgress = `INSERT OR REPLACE INTO journal_progress (n, progress) VALUES (1, ?)`
)

func entryArgs(e *moderation.Entry) []any {
	id := []byte{}
	if !e.Link.IsZero() {
		id = e.Link[:]
	}
	args := []any{
		int64(e.Sequence), e.At.UnixMilli(), string(e.Entity.Kind), e.Entity.Name, id, string(e.Action),
		int64(e.Safety), int64(e.Score), e.Actor,
	}
	args = append(args, textArgs(&e.Reason)...)
	args = append(args, textArgs(&e.Evidence)...)
	return append(args, e.Hash[:])
}

func textArgs(t *moderation.Text) []any {
	switch {
	case *t == moderation.Text{}:
		return []any{"", []byte{}, []byte{}}
	case t.Erased:
		return []any{"", []byte{}, t.Commitment[:]}
	}
	return []any{t.Body, t.Salt[:], t.Commitment[:]}
}

// scanEntry reads entryColumns. What an entry says is not checked here but by
// moderation.Verify.
func scanEntry(row []driver.Value) (moderation.Entry, error) {
	s := scanner{row: row}
	e := moderation.Entry{Sequence: uint64(s.int()), At: time.UnixMilli(s.int()).UTC()} // 0 is the epoch
	e.Entity = moderation.Entity{Kind: moderation.Kind(s.text()), Name: s.text()}
	s.fill(e.Link[:], true)
	e.Action = moderation.Action(s.text())
	e.Safety, e.Score, e.Actor = link.Safety(s.int()), int(s.int()), s.text()
	e.Reason, e.Evidence = s.committed(), s.committed()
	s.fill(e.Hash[:], false)
	if err := s.damage(); err != nil {
		return moderation.Entry{}, fmt.Errorf("entry %d of the journal: %w", e.Sequence, err)
	}
	return e, nil
}

// committed reads the three columns of a text.
func (s *scanner) committed() moderation.Text {
	t := moderation.Text{Body: s.text()}
	salted := s.fill(t.Salt[:], true)
	t.Erased = s.fill(t.Commitment[:], true) && !salted
	return t
}

// fill reads a blob of exactly the size of b, or, where it may be missing, an empty one.
func (s *scanner) fill(b []byte, optional bool) (filled bool) {
	v := next[[]byte](s)
	if len(v) == 0 && optional {
		return false
	}
	s.bad = s.bad || len(v) != len(b)
	copy(b, v)
	return true
}

// millisUp rounds up: what is of this millisecond is not before t.
func millisUp(t time.Time) int64 { return t.Add(time.Millisecond - 1).UnixMilli() }
