package sqlite

import (
	"bytes"
	"database/sql/driver"
	"errors"
	"fmt"

	"curt/internal/link"
)

// A walk through the index by age must not end, turn in circles or leave links out because
// one key in it is damaged. So each entry is compared with its row, and one that says
// something else is passed over. A damaged key may also lead a search astray, but only to a
// place beside itself: whoever begins between two entries that are as their rows say is where
// he wanted to be. Else this part of the walk reads the rows themselves, sorted.

// fill reads the lane's next chunk when it has no entry ahead.
func (w *listWalk) fill(t *tx, lane *listLane) error {
	if len(lane.ahead) > 0 || lane.drained {
		return nil
	}
	c := chunk{walk: w, lane: lane}
	sound, err := c.begins(t)
	if err == nil && sound {
		sound, err = c.read(t)
	}
	if err != nil && !damaged(err) {
		return err
	}
	if err != nil || !sound {
		c = chunk{walk: w, lane: lane, rows: true}
		if _, err := c.read(t); err != nil {
			return err
		}
	}
	w.read += c.entries
	lane.ahead, lane.last, lane.drained = append(lane.ahead, c.ahead...), c.last, lane.drained || c.end
	return nil
}

// chunk is what a lane reads at a time.
type chunk struct {
	walk *listWalk
	lane *listLane
	rows bool // without the index

	entries int
	good    int
	ahead   []listEntry
	last    link.ID // of the last entry that is good
	end     bool    // there is no further one
}

// begins reports whether the entry before the chunk is as its row says.
func (c *chunk) begins(t *tx) (sound bool, err error) {
	query := sqlNewestPast
	if c.walk.filter.Oldest {
		query = sqlOldestPast
	}
	sound = true
	_, err = t.one(query, func(row []driver.Value) error {
		_, sound = c.scan(row)
		return nil
	}, c.lane.workspace, c.lane.last[:])
	return sound, err
}

// read reads the chunk, and reports whether it begins with an entry that is as its row says.
func (c *chunk) read(t *tx) (sound bool, err error) {
	sound, c.last = true, c.lane.last
	query := map[bool]map[bool]string{
		false: {false: sqlNewest, true: sqlOldest}, true: {false: sqlNewestRows, true: sqlOldestRows},
	}[c.rows][c.walk.filter.Oldest]
	err = t.each(query, func(row []driver.Value) error {
		e, good := c.scan(row)
		switch {
		case good && e.at.workspace != c.lane.workspace:
			c.end = true
			return errEnough
		case good:
			c.good++
			c.take(e)
		case c.entries == 0:
			sound = false
			return errEnough
		}
		c.entries++
		return nil
	}, c.lane.workspace, c.lane.last[:], int64(listChunk))
	if errors.Is(err, errEnough) {
		err = nil
	}
	c.end = c.end || sound && c.entries < listChunk
	return sound && (c.end || c.good > 0), err
}

// scan reads an entry, and reports whether its row says the same.
func (c *chunk) scan(row []driver.Value) (e listEntry, good bool) {
	s := scanner{row: row}
	e = listEntry{n: s.int()}
	e.at.workspace = s.int()
	copy(e.at.id[:], next[[]byte](&s))
	workspace := s.int()
	id := next[[]byte](&s)
	e.status, e.domain = link.Status(s.int()), link.Domain(s.text())
	good = !s.bad && workspace == e.at.workspace && bytes.Equal(id, e.at.id[:])
	if !good {
		c.walk.damages.met(link.Key{}, e.unreadable(errors.New("the index by age says something else of it")))
	}
	return e, good
}

// take keeps an entry that the walk wants.
func (c *chunk) take(e listEntry) {
	c.last = e.at.id
	switch {
	case bytes.Compare(e.at.id[:], c.walk.filter.Since[:]) < 0:
		c.end = true // only newest first comes here
	case c.walk.after == nil || c.walk.before(*c.walk.after, e.at):
		c.ahead = append(c.ahead, e)
	}
}

// unreadable is the error of a row that a walk passes over.
func (e listEntry) unreadable(err error) error {
	return &link.DamagedError{Err: fmt.Errorf("row %d: %w: %w", e.n, ErrCorrupt, err)}
}
