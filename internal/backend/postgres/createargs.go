package postgres

import (
	"github.com/jackc/pgx/v5/pgtype"

	"curt/internal/link"
)

// createArgs are the arguments of sqlInsertCounted: an array each of the places and of createColumns
// with the tags. turns is the last one of sqlCreate.
func (s *Links) createArgs(links []link.Link, entries []int) (args []any, turns []int32) {
	n := len(entries)
	turns = make([]int32, n)
	place, sum, needs, extra := make([]int64, n), make([]int64, n), make([]int64, n), make([]string, n)
	for at, i := range entries {
		l := &links[i]
		turns[at], place[at], sum[at], needs[at] = int32(i), s.place(l.Key.Code), digest(l.Destination), int64(l.Needs())
		extra[at], _ = l.Extra() // storable has seen that it can be written
	}
	args = append(make([]any, 0, 27), place, sum, needs, extra)
	fields := link.Fields()
	for i := range fields {
		if f := &fields[i]; written(f) {
			args = append(args, array(f, links, entries))
		}
	}
	return args, turns
}

// array holds one field of many links.
func array(f *link.Field, links []link.Link, entries []int) any {
	switch value(f, new(link.Link)).(type) {
	case string:
		return arrayOf[string](f, links, entries)
	case bool:
		return arrayOf[bool](f, links, entries)
	case int16:
		return arrayOf[int16](f, links, entries)
	case int64:
		return arrayOf[int64](f, links, entries)
	}
	return arrayOf[pgtype.UUID](f, links, entries)
}

func arrayOf[T any](f *link.Field, links []link.Link, entries []int) []T {
	all := make([]T, len(entries))
	for at, i := range entries {
		all[at], _ = value(f, &links[i]).(T) // each value of a field has one type
	}
	return all
}
