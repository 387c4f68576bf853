package postgres

import (
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"curt/internal/link"
	"curt/internal/moderation"
)

const entryColumns = `sequence, at, kind, name, link, action, safety, score, actor,
	reason, reason_salt, reason_hash, evidence, evidence_salt, evidence_hash, hash`

func entryArgs(e *moderation.Entry) []any {
	args := []any{
		int64(e.Sequence), e.At.UnixMilli(), string(e.Entity.Kind), e.Entity.Name,
		pgtype.UUID{Bytes: e.Link, Valid: !e.Link.IsZero()},
		string(e.Action), int16(e.Safety), int16(e.Score), e.Actor,
	}
	for _, t := range []*moderation.Text{&e.Reason, &e.Evidence} {
		salt, commitment := t.Salt[:], t.Commitment[:]
		if t.Erased || *t == (moderation.Text{}) {
			salt = []byte{}
		}
		if *t == (moderation.Text{}) {
			commitment = []byte{}
		}
		args = append(args, []byte(t.Body), salt, commitment)
	}
	return append(args, e.Hash[:])
}

// scanEntry reads entryColumns. What an entry says is not checked here but by
// moderation.Verify.
func scanEntry(row pgx.Row) (moderation.Entry, error) {
	var e moderation.Entry
	var sequence, at int64
	var id pgtype.UUID
	var safety, score int16
	var hash []byte
	var texts [2]struct {
		body, salt, commitment []byte
	}
	err := row.Scan(&sequence, &at, (*string)(&e.Entity.Kind), &e.Entity.Name, &id, (*string)(&e.Action), &safety, &score, &e.Actor,
		&texts[0].body, &texts[0].salt, &texts[0].commitment, &texts[1].body, &texts[1].salt, &texts[1].commitment, &hash)
	if err != nil {
		return moderation.Entry{}, err
	}
	e.Sequence, e.At, e.Link = uint64(sequence), time.UnixMilli(at).UTC(), id.Bytes // 0 is the epoch
	e.Safety, e.Score = link.Safety(safety), int(score)
	for i, t := range []*moderation.Text{&e.Reason, &e.Evidence} {
		t.Body = string(texts[i].body)
		copy(t.Salt[:], texts[i].salt)
		copy(t.Commitment[:], texts[i].commitment)
		t.Erased = len(texts[i].commitment) > 0 && len(texts[i].salt) == 0
	}
	if copy(e.Hash[:], hash) != len(e.Hash) {
		return moderation.Entry{}, fmt.Errorf("entry %d of the journal has a hash of %d bytes", sequence, len(hash))
	}
	return e, nil
}
