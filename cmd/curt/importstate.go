package main

import (
	"bufio"
	"crypto/rand"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"

	"curt/internal/exchange"
	"curt/internal/idempotency"
)

// importState is how far an import has come; it lies beside the results until the import
// is done.
type importState struct {
	ID string `json:"id"` // of the import, random

	Size    int64 `json:"size"`    // of the file; 0 = unknown
	Done    int64 `json:"done"`    // bytes of it whose rows have their results
	Sent    int64 `json:"sent"`    // bytes of it up to the end of the last request
	Line    int   `json:"line"`    // the last line that is done
	Results int64 `json:"results"` // bytes of the results
	Made    int   `json:"made"`
	Skipped int   `json:"skipped"`
	Failed  int   `json:"failed"`

	SentAt time.Time `json:"sent_at"` // when that request was sent first, by the clock of this machine

	before int // rows of earlier runs
}

// keyLife is how long a request may be sent again under its key: a day, less what clocks
// may lie apart.
const keyLife = idempotency.Keep - 10*time.Minute

// key names the request of the rows up to last: wherever the import is interrupted, the
// same rows have the same key again.
func (s *importState) key(last exchange.Row) string {
	return fmt.Sprintf("import-%s-%d-%d", s.ID, s.Done, last.End)
}

func (s *importState) rows() int { return s.Made + s.Skipped + s.Failed }

func (s *importState) summary() string {
	text := fmt.Sprintf("%d made, %d failed", s.Made, s.Failed)
	if s.Skipped > 0 {
		text += fmt.Sprintf(", %d skipped", s.Skipped)
	}
	return text
}

// results are the file with a line for each row, and the state beside it.
type results struct {
	name  string // "" = nobody wants them: a dry run
	csv   bool
	file  *os.File
	ended bool // the import came to the end of its file
	state importState
}

// openResults begins an import, or goes on with one.
func (i *importer) openResults() (*results, error) {
	r := &results{name: i.Results, state: importState{ID: rand.Text(), Size: i.total}}
	if i.DryRun && i.Results == "" {
		return r, nil
	}
	if r.name == "" {
		r.name = i.File + ".results.jsonl"
	}
	r.csv = strings.HasSuffix(r.name, ".csv")
	_, err := os.Lstat(r.stateName())
	switch interrupted := err == nil; {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("import: %w", err)
	case i.DryRun && i.Resume:
		return nil, usageError("a dry run has nothing to resume")
	case interrupted && !i.Resume:
		return nil, fmt.Errorf("import: an import of this file was interrupted: --resume goes on with it; delete %s to begin again", r.stateName())
	case !interrupted && i.Resume:
		return nil, fmt.Errorf("import: there is nothing to go on with: no %s; without --resume it begins", r.stateName())
	case interrupted:
		err = r.goOn(i.total)
	default:
		err = r.begin()
	}
	if err != nil {
		return nil, fmt.Errorf("import: %w", err)
	}
	return r, nil
}

func (r *results) stateName() string { return r.name + ".state" }

// resultColumns is the first line of results as CSV.
const resultColumns = "line,short_code,short_url,skipped,error\n"

// begin makes the file, or takes one without rows, which a run has left that was killed
// before it made anything, or found no room.
func (r *results) begin() (err error) {
	if r.file, err = os.OpenFile(r.name, os.O_CREATE|os.O_RDWR, 0o644); err != nil { //nolint:gosec // codes are public
		return err
	}
	head, err := io.ReadAll(io.LimitReader(r.file, int64(len(resultColumns))+1))
	if err == nil && !strings.HasPrefix(resultColumns, string(head)) {
		err = fmt.Errorf("%s exists, with the results of an import that is done: delete it, or name another by --results", r.name)
	}
	if err == nil {
		err = errors.Join(r.file.Truncate(0), seekTo(r.file, 0))
	}
	if err != nil {
		return errors.Join(err, r.file.Close())
	}
	if !r.csv {
		return nil
	}
	return r.append([]byte(resultColumns))
}

// goOn takes back what was written after the state.
func (r *results) goOn(size int64) (err error) {
	now := r.state.Size
	if err := loadState(r.stateName(), &r.state); err != nil {
		return err
	}
	if r.state.Size != now && now > 0 && r.state.Size > 0 {
		return fmt.Errorf("the file had %d bytes when the import began, and has %d", r.state.Size, size)
	}
	r.state.before = r.state.rows()
	if r.file, err = os.OpenFile(r.name, os.O_WRONLY, 0); err != nil {
		return err
	}
	info, err := r.file.Stat()
	if err == nil && info.Size() < r.state.Results {
		err = fmt.Errorf("%s is shorter than when the import was interrupted", r.name)
	}
	if err == nil {
		err = errors.Join(r.file.Truncate(r.state.Results), seekTo(r.file, r.state.Results))
	}
	if err != nil {
		return errors.Join(err, r.file.Close())
	}
	return nil
}

func (r *results) append(text []byte) error {
	if _, err := r.file.Write(text); err != nil {
		return fmt.Errorf("write %s: %w", r.name, err)
	}
	r.state.Results += int64(len(text))
	return nil
}

// sending notes that the rows up to last are about to be made; again: as a run before
// has noted.
func (r *results) sending(last exchange.Row, again bool) error {
	if again {
		return nil
	}
	r.state.Sent, r.state.SentAt = last.End, time.Now().UTC()
	return r.save()
}

// save sees to it that the state is on the disk, and what it says of the results true.
func (r *results) save() error {
	if r.name == "" {
		return nil
	}
	if err := r.file.Sync(); err != nil {
		return fmt.Errorf("write %s: %w", r.name, err)
	}
	return saveState(r.stateName(), &r.state)
}

// sent adds the outcomes of the rows up to last.
func (r *results) sent(last exchange.Row, outcomes []outcome) error {
	s := &r.state
	for _, o := range outcomes {
		switch {
		case o.Error != "":
			s.Failed++
		case o.Skipped != "":
			s.Skipped++
		default:
			s.Made++
		}
	}
	s.Done, s.Line = last.End, last.Next-1
	if r.name == "" {
		return nil
	}
	text, err := r.encode(outcomes)
	if err != nil {
		return err
	}
	return r.append(text)
}

func (r *results) encode(outcomes []outcome) ([]byte, error) {
	var b strings.Builder
	out := bufio.NewWriter(&b)
	table := csv.NewWriter(out)
	lines := json.NewEncoder(out)
	lines.SetEscapeHTML(false)
	for _, o := range outcomes {
		var err error
		if r.csv {
			err = table.Write([]string{strconv.Itoa(o.Line), exchange.Harmless(o.Code), o.ShortURL, o.Skipped, exchange.Harmless(plain(o.Error))})
		} else {
			err = lines.Encode(o)
		}
		if err != nil {
			return nil, fmt.Errorf("encode: %w", err)
		}
	}
	table.Flush()
	if err := errors.Join(table.Error(), out.Flush()); err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	return []byte(b.String()), nil
}

// done ends the import: there is nothing to go on with.
func (r *results) done() error {
	r.ended = true
	if r.name == "" {
		return nil
	}
	if err := r.file.Sync(); err != nil {
		return err
	}
	if err := os.Remove(r.stateName()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// close lets the file go. An import that was interrupted has its state saved, and one
// that never began leaves no file.
func (r *results) close() error {
	if r == nil || r.file == nil {
		return nil
	}
	_, err := os.Lstat(r.stateName())
	switch {
	case err == nil:
		return errors.Join(r.save(), r.file.Close())
	case r.state.rows() == 0 && !r.ended:
		return errors.Join(r.file.Close(), os.Remove(r.name))
	}
	return r.file.Close()
}
