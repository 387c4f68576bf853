// Package licenses holds the licences of everything that is compiled into the program, Go's
// own library and the parts of the dashboard among it: whoever passes the program on passes
// them on with it, as they ask.
//
// No copy of them is in the repository. internal/licenses/gather collects them from the
// modules and packages themselves before a build (scripts/licenses), refuses what does not
// allow distribution under the MIT licence, and leaves a file here that Git ignores. A plain
// go build works without it; the program then says what is missing.
//
// Some parts are under the Mozilla Public License 2.0: go.mau.fi/util, the table of letters that
// look alike, a cache that the parser of user agents brings, and a file of SQLite's. That
// licence is by file: it asks that whoever gets the program is told where the source of
// those files is, which the collected text does, and leaves our own files alone. They stay, as
// they were published; a table of our own would be the same table of Unicode, kept by hand.
//
// The package imports the standard library only.
package licenses

import (
	"compress/gzip"
	"embed"
	"errors"
	"fmt"
	"io"
)

// ErrMissing is the error of a program that was built without the texts.
var ErrMissing = errors.New("this build does not include the licences of its dependencies: run scripts/licenses before go build")

// File is what gather writes, in the folder texts.
const File = "third-party.txt.gz"

// texts has nothing but .keep where gather did not run.
//
//go:embed all:texts
var texts embed.FS

// WriteTo writes the licences, or returns ErrMissing.
func WriteTo(w io.Writer) error {
	f, err := texts.Open("texts/" + File)
	if err != nil {
		return ErrMissing
	}
	defer func() { _ = f.Close() }() // memory
	text, err := gzip.NewReader(f)
	if err != nil {
		return fmt.Errorf("read the licences: %w", err)
	}
	if _, err := io.Copy(w, text); err != nil { //nolint:gosec // our own file, not a bomb
		return fmt.Errorf("write the licences: %w", err)
	}
	return nil
}
