package movedata

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"curt/internal/cli"
	"curt/internal/job"
	"curt/internal/transfer"
)

// importState is the progress of an import, in a file next to the results until the import is
// done.
type importState struct {
	Job  string `json:"job,omitempty"`  // of an import through a server
	Sent bool   `json:"sent,omitempty"` // the server has the whole file, or may have it

	job.Progress

	Size    int64 `json:"size"`    // of the file; 0 = unknown
	Line    int   `json:"line"`    // the last line that is done, without a server
	Results int64 `json:"written"` // bytes of the results

	ID string `json:"id,omitempty"` // of an import of an earlier release
}

func (i *importer) summary() string {
	s, skipped := &i.results.state, "skipped"
	if i.straight() {
		skipped = "there already"
	}
	text := fmt.Sprintf("%d made, %d failed", s.Created, s.Failed)
	if s.Skipped > 0 {
		text += fmt.Sprintf(", %d %s", s.Skipped, skipped)
	}
	return text
}

// results are the file with a line for each row, and the state beside it.
type results struct {
	name  string // "" = a dry run without results
	csv   bool
	file  *os.File
	ended bool // the import came to the end of its file
	state importState
}

// openResults begins an import, or resumes one.
func (i *importer) openResults() (*results, error) {
	r := &results{name: i.Results, state: importState{Size: i.total}}
	if i.DryRun && i.Results == "" {
		return r, nil
	}
	if r.name == "" {
		r.name = i.File + ".results.jsonl"
	}
	r.csv = strings.HasSuffix(r.name, ".csv")
	_, err := os.Lstat(r.stateName())
	switch interrupted, resuming := err == nil, i.Resume || i.Cancel; {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("import: %w", err)
	case i.DryRun && i.Resume:
		return nil, cli.UsageError("a dry run has nothing to resume")
	case interrupted && !resuming:
		return nil, fmt.Errorf("import: an import of this file was interrupted: --resume continues it; delete %s to start over", r.stateName())
	case !interrupted && resuming:
		return nil, fmt.Errorf("import: nothing to resume: %s is missing; run without --resume to start", r.stateName())
	case interrupted:
		err = r.resume(i.total)
	default:
		err = r.begin()
	}
	if err != nil {
		return nil, fmt.Errorf("import: %w", err)
	}
	return r, nil
}

func (r *results) stateName() string { return r.name + ".state" }

// begin creates the file, or takes one without rows, which is left by a run that was killed
// before its first row or that found the disk full.
func (r *results) begin() (err error) {
	if r.file, err = os.OpenFile(r.name, os.O_CREATE|os.O_RDWR, 0o644); err != nil { //nolint:gosec // codes are public
		return err
	}
	head, err := io.ReadAll(io.LimitReader(r.file, int64(len(transfer.OutcomeColumns))+1))
	if err == nil && !strings.HasPrefix(transfer.OutcomeColumns, string(head)) {
		err = fmt.Errorf("%s exists, with the results of an import that is done: delete it, or name another by --results", r.name)
	}
	if err == nil {
		err = r.restart()
	}
	if err != nil {
		return errors.Join(err, r.file.Close())
	}
	return nil
}

// restart empties the file.
func (r *results) restart() error {
	r.state.Results = 0
	if err := errors.Join(r.file.Truncate(0), seekTo(r.file, 0)); err != nil || !r.csv {
		return err
	}
	return r.append([]byte(transfer.OutcomeColumns))
}

// resume continues at the state and truncates the results to it.
func (r *results) resume(size int64) (err error) {
	now := r.state.Size
	if err := cli.LoadState(r.stateName(), &r.state); err != nil {
		return err
	}
	if r.state.ID != "" {
		return fmt.Errorf("%s was written by an earlier release: finish the import with that release, or delete the file to start over", r.stateName())
	}
	if r.state.Size != now && now > 0 && r.state.Size > 0 {
		return fmt.Errorf("the file had %d bytes when the import began, and has %d", r.state.Size, size)
	}
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

// add writes outcomes.
func (r *results) add(outcomes []transfer.Outcome) error {
	if r.name == "" {
		return nil
	}
	text, err := transfer.Encode(outcomes)
	if err == nil && r.csv {
		var table bytes.Buffer
		err = transfer.WriteCSV(&table, bytes.NewReader(text), false)
		text = table.Bytes()
	}
	if err != nil {
		return err
	}
	return r.append(text)
}

// save syncs the results before it replaces the state, which has their length.
func (r *results) save() error {
	if r.name == "" {
		return nil
	}
	if err := r.file.Sync(); err != nil {
		return fmt.Errorf("write %s: %w", r.name, err)
	}
	return cli.SaveState(r.stateName(), &r.state)
}

// done ends the import: there is nothing to resume.
func (r *results) done() error {
	r.ended = true
	if r.name == "" {
		return nil
	}
	if err := r.file.Sync(); err != nil {
		return err
	}
	return cli.RemoveState(r.stateName())
}

// close closes the file. An import that never began leaves no file.
func (r *results) close() error {
	if r == nil || r.file == nil {
		return nil
	}
	_, err := os.Lstat(r.stateName())
	if errors.Is(err, fs.ErrNotExist) && r.state.Rows == 0 && !r.ended {
		return errors.Join(r.file.Close(), os.Remove(r.name))
	}
	return r.file.Close()
}
