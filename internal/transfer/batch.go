package transfer

import (
	"errors"
	"io"

	"curt/internal/exchange"
	"curt/internal/job"
	"curt/internal/shorten/create"
)

// maxBatchBytes bounds the text of a batch, beside create.MaxMany rows.
const maxBatchBytes = 2 << 20

// Options say how a file is read, and what its links have that the file does not say.
type Options struct {
	Format  string            `json:"format,omitempty"`  // auto, csv or jsonl; "" = auto
	Columns map[string]string `json:"columns,omitempty"` // of CSV: by field of a link; "" = none
	Offset  int64             `json:"offset,omitempty"`  // bytes of the file that are passed over
	Domain  string            `json:"domain,omitempty"`
	Tags    []string          `json:"tags,omitempty"`
	DryRun  bool              `json:"dry_run,omitempty"` // nothing is created
}

// The formats.
const (
	Auto  = "auto"
	CSV   = "csv"
	JSONL = "jsonl"
)

// ErrColumns refuses columns for a file that has none.
var ErrColumns = errors.New("columns are for CSV")

// Batches are the rows of a file in batches. They belong to one goroutine.
type Batches struct {
	// Used and Ignored say how the columns of CSV were understood.
	Used, Ignored []string

	// Columns returns the columns of CSV, with examples once a row was read; nil for JSON Lines.
	Columns func() []exchange.Column

	rows exchange.Reader
	held []exchange.Row // read, and not taken yet
	err  error          // of the file, behind held; io.EOF at its end
}

// Read begins at an offset of a file, which in gives from its start.
func Read(in io.Reader, offset int64, o Options) (b *Batches, err error) {
	format := o.Format
	if format == "" || format == Auto {
		if format, in, err = exchange.Sniff(in); err != nil {
			return nil, err
		}
	}
	b = &Batches{}
	if format == JSONL {
		if len(o.Columns) > 0 {
			return nil, ErrColumns
		}
		b.rows, err = exchange.NewJSON(in, offset)
		return b, err
	}
	c, err := exchange.NewCSV(in, offset, o.Columns)
	if err != nil {
		return nil, err
	}
	header, used := c.Header()
	b.rows, b.Used, b.Ignored, b.Columns = c, used, header.Ignored, c.Columns
	return b, nil
}

// Next returns the next rows, up to most or until they have maxBatchBytes, and none at the end of
// the file. Which rows they are is a function of what was taken before and of most.
func (b *Batches) Next(most int) ([]exchange.Row, error) {
	n, size := 0, 0
	for ; n < most && size < maxBatchBytes; n++ {
		if n == len(b.held) {
			if b.err != nil {
				break
			}
			row, err := b.rows.Next()
			if err != nil {
				b.err = err
				break
			}
			b.held = append(b.held, row)
		}
		r := &b.held[n].Record
		size += len(r.LongURL) + len(r.Fallback) + len(r.Title) + 256
	}
	if n == 0 && !errors.Is(b.err, io.EOF) {
		return nil, b.err
	}
	return b.held[:n], nil
}

// Take is behind n rows that Next returned.
func (b *Batches) Take(n int) { b.held = b.held[n:] }

// Advance counts what became of the rows of a batch.
func Advance(p *job.Progress, rows []exchange.Row, outcomes []Outcome) {
	for _, o := range outcomes {
		switch {
		case o.Error != "":
			p.Failed++
		case o.Skipped != "":
			p.Skipped++
		default:
			p.Created++
		}
	}
	p.Rows += int64(len(rows))
	p.Bytes = rows[len(rows)-1].End
}

// most is how many rows the next batch of a job may have.
func most(p *job.Progress) int {
	if p.Batch == 0 {
		return create.MaxMany
	}
	return p.Batch
}
