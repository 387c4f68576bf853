package sqlite

import (
	"errors"
	"fmt"

	"modernc.org/sqlite"

	"curt/internal/link"
)

// Result codes of SQLite (https://www.sqlite.org/rescode.html) that decide what a
// failure means. The low byte is the class.
const (
	codeBusy     = 5
	codeNoMem    = 7
	codeReadOnly = 8
	codeIOErr    = 10
	codeCorrupt  = 11
	codeFull     = 13
	codeCantOpen = 14
	codeNotADB   = 26

	codeCorruptIndex = codeCorrupt | 3<<8 // an index lacks the entry of a row; the file's structure is whole

	codeShmSize = codeIOErr | 19<<8 // the index of the WAL cannot grow; it may later
)

// ErrCorrupt means that the file says something that was never written. It comes
// wrapped in link.ErrUnavailable, because nobody can say what the link was.
var ErrCorrupt = errors.New("curt.db is damaged")

// resultCode returns SQLite's extended result code; 0 = not an error of SQLite.
func resultCode(err error) int {
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		return e.Code()
	}
	return 0
}

// systemic says that a failed statement is the fault of the file or the machine,
// not of its own arguments: no statement of the same transaction would fare better.
func systemic(err error) bool {
	switch resultCode(err) & 0xff {
	case codeBusy, codeNoMem, codeReadOnly, codeIOErr, codeCorrupt, codeFull, codeCantOpen, codeNotADB:
		return true
	}
	return false
}

// damaged says that the file itself is wrong, so that nothing may be written on top.
func damaged(err error) bool {
	class := resultCode(err) & 0xff
	return class == codeCorrupt || class == codeNotADB
}

// undone maps the error of a statement whose transaction was rolled back, or of a
// read: it did not happen, for certain.
func undone(err error) error {
	switch {
	case err == nil:
		return nil
	case resultCode(err) == 0: // one of ours, with its sentinel
		return err
	case resultCode(err)&0xff == codeFull:
		return fmt.Errorf("%w: %w", link.ErrFull, err)
	case damaged(err):
		return fmt.Errorf("%w: %w: %w", link.ErrUnavailable, ErrCorrupt, err)
	}
	return fmt.Errorf("%w: %w", link.ErrUnavailable, err)
}

// uncertain says that a COMMIT which failed so may have happened. A full disk ends
// the commit before its last frame is written, and a busy file before its first.
func uncertain(err error) bool {
	class := resultCode(err) & 0xff
	return class != codeFull && class != codeBusy
}
