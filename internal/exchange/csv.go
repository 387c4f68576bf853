package exchange

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// CSV reads comma-separated values: RFC 4180 with commas, semicolons or tabs.
//
// encoding/csv would take a quote that is never closed for a field that goes on to the
// end of the file. So where rows end is decided here: at the first end of a line at
// which the quotes are even, at most MaxRow further on. When that is no row, the first
// line alone is the error, and reading goes on with the second.
type CSV struct {
	lines  *lines
	comma  rune
	header Header
	names  []string
	sample []string // the cells of the first row
}

// NewCSV returns a Reader of CSV. r begins at the start of the file, of which the first
// line is read; then what lies before the offset is passed over. chosen maps fields of a
// link to the names of their columns, where those are not understood by themselves.
func NewCSV(r io.Reader, offset int64, chosen map[string]string) (*CSV, error) {
	c := &CSV{lines: newLines(r)}
	err := c.lines.begin()
	if errors.Is(err, io.EOF) {
		return nil, errors.New("the file is empty")
	}
	if err != nil {
		return nil, err
	}
	first, err := c.lines.look(0)
	if err != nil {
		return nil, err
	}
	if first.returns {
		return nil, errors.New("lines end in carriage returns only (classic Mac OS): save the file with line feeds")
	}
	c.comma = delimiter(first.text)
	cells, n, err := c.cells()
	if err != nil {
		return nil, fmt.Errorf("line 1: %w", err)
	}
	c.names = cells
	c.header, err = readHeader(cells, chosen)
	if none, ok := errors.AsType[*NoURLError](err); ok && !c.header.Data {
		c.lines.take(n)
		sample, _, _ := c.cells() // a row that cannot be read is no example
		none.Columns = c.header.columns(c.names, sample)
	}
	if err != nil {
		return nil, err
	}
	if !c.header.Data {
		c.lines.take(n)
	}
	return c, c.lines.skip(offset)
}

// Header returns how the columns were understood, and for people the names.
func (c *CSV) Header() (h Header, used []string) { return c.header, c.header.Used(c.names) }

// Columns returns the columns, with examples once a row was read.
func (c *CSV) Columns() []Column { return c.header.columns(c.names, c.sample) }

// delimiter is the sign that the first line has most of.
func delimiter(text []byte) rune {
	best, most := ',', bytes.Count(text, []byte(","))
	for _, r := range ";\t" {
		if n := bytes.Count(text, []byte(string(r))); n > most {
			best, most = r, n
		}
	}
	return best
}

// cells returns the next row and how many lines it has; the lines are not taken yet.
// When it is no row, n is 1.
func (c *CSV) cells() (cells []string, n int, err error) {
	var text []byte
	quotes := 0
	for {
		next, err := c.lines.look(n)
		switch {
		case errors.Is(err, io.EOF) && n > 0:
			return nil, 1, errors.New("a quote is not closed")
		case err != nil:
			return nil, 0, err
		case next.long, len(text)+len(next.text) > MaxRow:
			if n == 0 {
				return nil, 1, errLong
			}
			return nil, 1, errors.New("a quote is not closed")
		}
		text = append(text, next.text...)
		quotes += bytes.Count(next.text, []byte{'"'})
		n++
		if quotes%2 == 0 {
			break
		}
	}
	if err := checkText(text); err != nil {
		return nil, 1, err
	}
	r := csv.NewReader(bytes.NewReader(text))
	r.Comma, r.FieldsPerRecord = c.comma, -1
	cells, err = r.Read()
	if errors.Is(err, io.EOF) {
		return nil, n, nil // an empty line
	}
	if parse, ok := errors.AsType[*csv.ParseError](err); ok {
		err = parse.Err
	}
	if err != nil {
		return nil, 1, err
	}
	return cells, n, nil
}

// Next implements Reader. Empty lines are passed over.
func (c *CSV) Next() (Row, error) {
	for {
		cells, n, err := c.cells()
		if n == 0 {
			return Row{}, err
		}
		first := c.lines.number + 1
		c.lines.take(n)
		row := c.lines.row(first)
		switch {
		case err != nil:
			row.Err = err
		case strings.TrimSpace(strings.Join(cells, "")) == "":
			continue
		default:
			row.Record, row.Err = c.record(cells)
		}
		return row, nil
	}
}

func (c *CSV) record(cells []string) (Record, error) {
	if len(cells) > len(c.header.Fields) {
		return Record{}, fmt.Errorf("%d columns, the first line has %d", len(cells), len(c.header.Fields))
	}
	for i, cell := range cells {
		cells[i] = harmful(strings.TrimSpace(cell))
	}
	if c.sample == nil {
		c.sample = slices.Clone(cells)
	}
	return c.header.record(cells)
}
