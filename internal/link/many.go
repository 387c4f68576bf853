package link

import (
	"context"
	"errors"
	"slices"
)

// GetMany reads any number of links, in as few questions as the store can be asked in. The
// zero Link stands for one that is not there, and for one that is damaged.
func GetMany(ctx context.Context, s Store, keys []Key) ([]Link, error) {
	links := make([]Link, 0, len(keys))
	many, ok := s.(ManyGetter)
	if !ok {
		for _, k := range keys {
			l, err := s.Get(ctx, k)
			if err != nil && !Absent(err) {
				return nil, err
			}
			links = append(links, l)
		}
		return links, nil
	}
	for chunk := range slices.Chunk(keys, MaxPage) {
		some, err := many.GetMany(ctx, chunk)
		if err != nil {
			return nil, err
		}
		links = append(links, some...)
	}
	return links, nil
}

// Absent reports whether an error of Get means this one link alone: it is not there, or it is
// damaged.
func Absent(err error) bool {
	_, damaged := errors.AsType[*DamagedError](err)
	return damaged || errors.Is(err, ErrNotFound)
}
