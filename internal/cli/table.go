package cli

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"curt/internal/exchange"
)

// Format is the output format; embedded in the commands with more than one.
type Format struct {
	JSON bool `name:"json" xor:"format" help:"Print JSON; lists have one object per line."`
	CSV  bool `name:"csv" xor:"format" help:"Print CSV with a header; cells that a spreadsheet would run start with an apostrophe."`
}

// Column is a column of the table for people.
type Column[T any] struct {
	Name string
	Text func(*T) string
}

// Table prints records as they come: some columns of them aligned, or all fields as JSON
// Lines or CSV. It belongs to one goroutine.
type Table[T any] struct {
	format  Format
	columns []Column[T]
	out     io.Writer
	csv     *csv.Writer
	table   *tabwriter.Writer
	begun   bool  // the line of names has been written
	widths  []int // of the cells so far, by column
}

// NewTable returns a table on the output of t.
func NewTable[T any](t Terminal, f Format, columns []Column[T]) *Table[T] {
	return &Table[T]{format: f, columns: columns, out: t.Out, csv: csv.NewWriter(t.Out), table: NewTabwriter(t.Out)}
}

// NewTabwriter aligns cells that tabs separate.
func NewTabwriter(out io.Writer) *tabwriter.Writer { return tabwriter.NewWriter(out, 0, 0, 2, ' ', 0) }

// Print writes records, aligned with the earlier ones unless a cell is longer than all of these.
func (s *Table[T]) Print(records []T) error {
	if s.format.JSON {
		for i := range records {
			if err := PrintJSON(s.out, &records[i]); err != nil {
				return err
			}
		}
		return nil
	}
	s.names()
	for i := range records {
		if s.format.CSV {
			_, cells := Fields(&records[i])
			for j := range cells {
				cells[j] = exchange.Harmless(cells[j])
			}
			_ = s.csv.Write(cells) // Flush keeps the error
			continue
		}
		cells := make([]string, len(s.columns))
		for j, c := range s.columns {
			cells[j] = Plain(c.Text(&records[i]))
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
func (s *Table[T]) names() {
	if s.begun {
		return
	}
	s.begun = true
	if s.format.CSV {
		names, _ := Fields(new(T))
		_ = s.csv.Write(names)
		return
	}
	names := make([]string, len(s.columns))
	for i, c := range s.columns {
		names[i] = c.Name
	}
	s.row(names)
}

func (s *Table[T]) row(cells []string) {
	if s.widths == nil {
		s.widths = make([]int, len(cells))
	}
	for i, cell := range cells[:len(cells)-1] {
		s.widths[i] = max(s.widths[i], utf8.RuneCountInString(cell))
		cells[i] += strings.Repeat(" ", s.widths[i]-utf8.RuneCountInString(cell))
	}
	_, _ = fmt.Fprintln(s.table, strings.Join(cells, "\t")) // Flush reports what failed
}

// PrintJSON writes v on one line. Control characters are escaped, which changes no value.
func PrintJSON(w io.Writer, v any) error {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return fmt.Errorf("encode: %w", err)
	}
	_, err := fmt.Fprintln(w, Plain(strings.TrimSuffix(text.String(), "\n")))
	return err
}

// Fields returns the names of a struct's fields, as in its JSON, and their values as text
// without control characters.
func Fields(record any) (names, cells []string) {
	v := reflect.ValueOf(record).Elem()
	for i := range v.NumField() {
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		names, cells = append(names, name), append(cells, Plain(cell(v.Field(i))))
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

// Walk calls next for page after page, until the list ends or limit records have been
// seen. A page may be empty before the end.
func Walk(limit int, all bool, most int, next func(cursor string, limit int) (n int, after string, err error)) error {
	if limit < 1 {
		return UsageError("--limit: expected 1 or more")
	}
	for cursor := ""; limit > 0 || all; {
		size := most
		if !all {
			size = min(limit, most)
		}
		n, after, err := next(cursor, size)
		if err != nil {
			return err
		}
		if after == "" {
			return nil
		}
		limit, cursor = limit-n, after
	}
	return nil
}

// PrintPages prints the records of page after page as they come, up to limit or all of them;
// most is the largest page that the API allows. An error is returned as that of what.
func PrintPages[T any](s *Table[T], limit int, all bool, most int, what string, fetch func(cursor string, limit int) ([]T, string, error)) error {
	return Walk(limit, all, most, func(cursor string, limit int) (int, string, error) {
		records, after, err := fetch(cursor, limit)
		if err != nil {
			return 0, "", fmt.Errorf("%s: %w", what, err)
		}
		return len(records), after, s.Print(records)
	})
}

// Count shows a number that may be unknown.
func Count(n *uint64) string {
	if n == nil {
		return "?"
	}
	return strconv.FormatUint(*n, 10)
}

// Truncate cuts text after n characters.
func Truncate(text string, n int) string {
	if r := []rune(text); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return text
}

// When shows a time that may be unset.
func When(t *time.Time) string {
	if t == nil {
		return "never"
	}
	return t.Local().Format(time.DateTime)
}
