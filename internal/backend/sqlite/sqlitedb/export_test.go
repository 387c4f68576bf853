package sqlitedb

import (
	"errors"
)

// ReaderCaches takes all readers, gives back the last and then the first, and returns
// their page caches in the order in which they were lent, and that of the next.
func (s *Store) ReaderCaches() (caches []int64, next int64, err error) {
	size := func(c *Conn) (n int64) {
		err = errors.Join(err, c.Do(func(t *Tx) (err error) {
			n, _, err = t.Number(sqlCacheSize)
			return err
		}))
		return n
	}
	var lent []*Conn
	for range s.config.Readers {
		<-s.readers.free
		lent = append(lent, s.readers.pop())
		caches = append(caches, size(lent[len(lent)-1]))
	}
	s.readers.push(lent[0])
	s.readers.push(lent[len(lent)-1])
	<-s.readers.free
	c := s.readers.pop()
	next = size(c)
	for _, c := range append(lent[1:len(lent)-1], c) {
		s.readers.push(c)
	}
	return caches, next, err
}
