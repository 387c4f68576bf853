package postgres

import (
	"github.com/jackc/pgx/v5/pgtype"

	"curt/internal/link"
)

// createArgs are the arguments of sqlCreate: a column of each field.
func (s *Links) createArgs(links []link.Link, entries []int) []any {
	n := len(entries)
	turn, place := make([]int32, n), make([]int64, n)
	domain, code, id, workspace := make([]string, n), make([]string, n), make([]pgtype.UUID, n), make([]string, n)
	minted, destination, sum := make([]bool, n), make([]string, n), make([]int64, n)
	status, safety, redirect := make([]int16, n), make([]int16, n), make([]int16, n)
	starts, expires, created, updated := make([]int64, n), make([]int64, n), make([]int64, n), make([]int64, n)
	limit, fallback := make([]int64, n), make([]string, n)
	forward, noIndex, cacheable := make([]bool, n), make([]bool, n), make([]bool, n)
	createdBy, title, tags := make([]string, n), make([]string, n), make([]string, n)
	for at, i := range entries {
		l := &links[i]
		turn[at], place[at] = int32(i), s.place(l.Key.Code)
		domain[at], code[at], id[at], workspace[at] = string(l.Key.Domain), string(l.Key.Code), uuid(l.ID), string(l.Workspace)
		minted[at], destination[at], sum[at] = l.Minted, l.Destination, digest(l.Destination)
		status[at], safety[at], redirect[at] = int16(l.Status), int16(l.Safety), int16(l.Redirect)
		starts[at], expires[at] = millis(l.Starts), millis(l.Expires)
		created[at], updated[at] = millis(l.Created), millis(l.Updated)
		limit[at], fallback[at] = int64(l.MaxClicks), l.Fallback
		forward[at], noIndex[at], cacheable[at] = l.ForwardQuery, l.NoIndex, l.Cacheable
		createdBy[at], title[at], tags[at] = l.CreatedBy, l.Title, literal(l.Tags)
	}
	return []any{
		turn, place, domain, code, id, workspace, minted, destination, sum, status, safety, redirect, starts, expires,
		created, updated, limit, fallback, forward, noIndex, cacheable, createdBy, title, tags,
	}
}
