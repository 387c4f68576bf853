// Package transfer imports links from files and exports them, in jobs of a server and in a data
// folder without one.
//
// Rows of package exchange go to a [Sink] in batches, and each has an [Outcome]. Where a batch
// begins says which rows it has, so that one that is repeated after a kill has the same rows, and
// the same idempotency key. Read batch.go for that, importjob.go and exportjob.go for the jobs of
// a server, and checker.go, folder.go and creator.go for the sinks.
package transfer

import (
	"bufio"
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"

	"curt/internal/exchange"
	"curt/internal/link"
)

// Sink takes rows.
type Sink interface {
	// Put creates the links of rows that can be read and returns an outcome for each row. Rows that
	// are put again under the same key are created once. The error is for all of them; outcomes
	// beside it are those of an earlier Put, after which no other may follow.
	Put(ctx context.Context, rows []exchange.Row, key string) ([]Outcome, error)
}

// Outcome is what became of a row.
type Outcome struct {
	Line     int    `json:"line"`
	Code     string `json:"short_code,omitempty"`
	ShortURL string `json:"short_url,omitempty"`
	Skipped  string `json:"skipped,omitempty"`
	Error    string `json:"error,omitempty"`
}

// OutcomeColumns is the first line of outcomes as CSV.
const OutcomeColumns = "line,short_code,short_url,skipped,error\n"

// Why rows are skipped.
const (
	Deleted = "deleted" // the link was deleted where it comes from
	Exists  = "exists"  // it is in the store already, as it is in the row
)

// Encode returns outcomes as JSON Lines.
func Encode(outcomes []Outcome) ([]byte, error) {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	for i := range outcomes {
		if err := e.Encode(&outcomes[i]); err != nil {
			return nil, fmt.Errorf("encode: %w", err)
		}
	}
	return text.Bytes(), nil
}

// WriteCSV writes JSON Lines of outcomes as CSV, without the first line. failed leaves out all
// but failures.
func WriteCSV(w io.Writer, lines io.Reader, failed bool) error {
	table := csv.NewWriter(w)
	err := outcomes(lines, failed, func(o *Outcome) error {
		return table.Write([]string{strconv.Itoa(o.Line), exchange.Harmless(o.Code), o.ShortURL, o.Skipped, exchange.Harmless(o.Error)})
	})
	if err != nil {
		return err
	}
	table.Flush()
	return table.Error()
}

// WriteFailures copies the JSON Lines of the outcomes that are failures.
func WriteFailures(w io.Writer, lines io.Reader) error {
	out := bufio.NewWriter(w)
	err := outcomes(lines, true, func(o *Outcome) error {
		text, err := Encode([]Outcome{*o})
		if err == nil {
			_, err = out.Write(text)
		}
		return err
	})
	if err != nil {
		return err
	}
	return out.Flush()
}

// outcomes calls f with each outcome of JSON Lines, or each failure.
func outcomes(lines io.Reader, failed bool, f func(*Outcome) error) error {
	for d := json.NewDecoder(bufio.NewReader(lines)); ; {
		var o Outcome
		err := d.Decode(&o)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read outcomes: %w", err)
		}
		if failed && o.Error == "" {
			continue
		}
		if err := f(&o); err != nil {
			return fmt.Errorf("write: %w", err)
		}
	}
}

// Writer writes records of links, a line each.
type Writer struct {
	Out io.Writer
	CSV bool
}

// Header writes the first line of CSV.
func (w *Writer) Header() error {
	if !w.CSV {
		return nil
	}
	return w.cells(exchange.Columns())
}

// Link writes a link.
func (w *Writer) Link(l link.Link) error {
	r := exchange.RecordOf(l)
	if w.CSV {
		return w.cells(r.Cells())
	}
	return w.JSON(r)
}

// JSON writes a record.
func (w *Writer) JSON(v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode: %w", err)
	}
	_, err = w.Out.Write(append(text, '\n'))
	return err
}

func (w *Writer) cells(cells []string) error {
	c := csv.NewWriter(w.Out)
	if err := c.Write(cells); err != nil {
		return err
	}
	c.Flush()
	return c.Error()
}
