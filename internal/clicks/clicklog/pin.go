package clicklog

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Pins hold the segments of a click log open, so that they can be read to their end
// although the process that writes the log trims them meanwhile. A backup that goes
// with roll-ups pins the log first, then fixes the roll-ups and with them the
// position P up to which they have counted, and then calls Extend: every segment that
// holds clicks behind P was either there at the first look or came after it, and is
// pinned in both cases.
type Pins struct {
	dir  string
	pins []Pin
}

// Pin is one segment. File is open for reading; Size is that of its whole blocks.
type Pin struct {
	Name string
	File *os.File
	Size int64

	number uint64
}

// PinDir opens every segment of a folder. A folder that is not there has none.
func PinDir(dir string) (*Pins, error) {
	p := &Pins{dir: dir}
	if err := p.open(); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

func (p *Pins) open() error {
	found, err := listSegments(p.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("pin click log: %w", err)
	}
	for _, s := range found {
		if n := len(p.pins); n > 0 && s.Number <= p.pins[n-1].number {
			continue
		}
		name := SegmentName(s.Number)
		f, err := os.Open(filepath.Join(p.dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue // trimmed between two looks: its clicks were counted, or lost before
		}
		if err != nil {
			return fmt.Errorf("pin click log: %w", err)
		}
		p.pins = append(p.pins, Pin{Name: name, File: f, number: s.Number})
	}
	return nil
}

// Extend pins the segments that came since, and fixes the sizes: the clicks up to now,
// without a block that is being written.
func (p *Pins) Extend() error {
	if err := p.open(); err != nil {
		return err
	}
	for i := range p.pins {
		pin := &p.pins[i]
		info, err := pin.File.Stat()
		if err != nil {
			return fmt.Errorf("pin click log: %w", err)
		}
		pin.Size = info.Size()
		if i < len(p.pins)-1 {
			continue
		}
		if pin.Size, _, err = segmentEnd(pin.File, pin.Name, pin.Size, 0); err != nil {
			return fmt.Errorf("pin click log: %w", err)
		}
	}
	return nil
}

// Segments are the pinned segments, oldest first.
func (p *Pins) Segments() []Pin { return p.pins }

// End returns where the pinned log ends; the zero Position when there is none.
func (p *Pins) End() Position {
	if len(p.pins) == 0 {
		return Position{}
	}
	last := p.pins[len(p.pins)-1]
	return Position{Segment: last.number, Offset: last.Size}
}

// Close lets the segments go.
func (p *Pins) Close() error {
	var errs []error
	for _, pin := range p.pins {
		errs = append(errs, pin.File.Close())
	}
	p.pins = nil
	return errors.Join(errs...)
}
