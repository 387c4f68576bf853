package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"curt/internal/exchange"
)

// format is how a command prints; embedded in those that leave the choice.
type format struct {
	JSON bool `name:"json" xor:"format" help:"Print JSON; lists have an object on each line."`
	CSV  bool `name:"csv" xor:"format" help:"Print CSV with a line of names; a cell that a spreadsheet would run begins with an apostrophe."`
}

// column is a column of the table that people see.
type column[T any] struct {
	name string
	text func(*T) string
}

// sheet prints records as they come: as a table of some columns, or whole, as JSON
// Lines or CSV. It belongs to one goroutine.
type sheet[T any] struct {
	format  format
	columns []column[T]
	out     io.Writer
	csv     *csv.Writer
	table   *tabwriter.Writer
	begun   bool  // the line of names has been written
	widths  []int // of the cells so far, by column
}

func newSheet[T any](t terminal, f format, columns []column[T]) *sheet[T] {
	return &sheet[T]{format: f, columns: columns, out: t.out, csv: csv.NewWriter(t.out), table: newTable(t.out)}
}

func newTable(out io.Writer) *tabwriter.Writer { return tabwriter.NewWriter(out, 0, 0, 2, ' ', 0) }

// print writes records. A table is aligned with what was printed before, unless something is
// longer than all of that.
func (s *sheet[T]) print(records []T) error {
	if s.format.JSON {
		for i := range records {
			if err := printJSON(s.out, &records[i]); err != nil {
				return err
			}
		}
		return nil
	}
	s.names()
	for i := range records {
		if s.format.CSV {
			_, cells := fields(&records[i])
			for j := range cells {
				cells[j] = exchange.Harmless(cells[j])
			}
			_ = s.csv.Write(cells) // Flush keeps the error
			continue
		}
		cells := make([]string, len(s.columns))
		for j, c := range s.columns {
			cells[j] = plain(c.text(&records[i]))
		}
		s.row(cells)
	}
	s.csv.Flush()
	if err := s.csv.Error(); err != nil {
		return err
	}
	return s.table.Flush()
}

// names writes the line of names once, also above an empty list.
func (s *sheet[T]) names() {
	if s.begun {
		return
	}
	s.begun = true
	if s.format.CSV {
		names, _ := fields(new(T))
		_ = s.csv.Write(names)
		return
	}
	names := make([]string, len(s.columns))
	for i, c := range s.columns {
		names[i] = c.name
	}
	s.row(names)
}

func (s *sheet[T]) row(cells []string) {
	if s.widths == nil {
		s.widths = make([]int, len(cells))
	}
	for i, cell := range cells[:len(cells)-1] {
		s.widths[i] = max(s.widths[i], utf8.RuneCountInString(cell))
		cells[i] += strings.Repeat(" ", s.widths[i]-utf8.RuneCountInString(cell))
	}
	_, _ = fmt.Fprintln(s.table, strings.Join(cells, "\t")) // Flush reports what failed
}

// printJSON writes v on one line. Characters that a terminal would obey are escaped,
// which changes no value.
func printJSON(w io.Writer, v any) error {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return fmt.Errorf("encode: %w", err)
	}
	_, err := fmt.Fprintln(w, plain(strings.TrimSuffix(text.String(), "\n")))
	return err
}

// fields returns the names of a struct's fields, as in its JSON, and their values as
// text that a terminal may have.
func fields(record any) (names, cells []string) {
	v := reflect.ValueOf(record).Elem()
	for i := range v.NumField() {
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		names, cells = append(names, name), append(cells, plain(cell(v.Field(i))))
	}
	return names, cells
}

func cell(v reflect.Value) string {
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return ""
		}
		v = v.Elem()
	}
	switch value := v.Interface().(type) {
	case time.Time:
		return value.Format(time.RFC3339Nano)
	case []string:
		return strings.Join(value, ",")
	default:
		return fmt.Sprint(value)
	}
}
