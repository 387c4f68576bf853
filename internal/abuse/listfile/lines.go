package listfile

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// maxDataFile bounds the files of brands and shorteners, in bytes. Some 50,000 lines fit.
const maxDataFile = 4 << 20

// ErrDataFile is what every error about a file of brands or shorteners wraps.
var ErrDataFile = errors.New("unusable file")

// EachLine hands the lines of a file to read, without comments ("#" to the end of the
// line), spaces around and a byte order mark; empty lines are passed over. The error names the line.
func EachLine(r io.Reader, read func(line string) error) error {
	limited := &io.LimitedReader{R: r, N: maxDataFile + 1}
	lines := bufio.NewScanner(limited)
	for n := 1; lines.Scan(); n++ {
		line, _, _ := strings.Cut(strings.TrimPrefix(lines.Text(), "\ufeff"), "#")
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		if !utf8.ValidString(line) {
			return fmt.Errorf("%w: line %d is not UTF-8", ErrDataFile, n)
		}
		if err := read(line); err != nil {
			return fmt.Errorf("%w: line %d: %w", ErrDataFile, n, err)
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("%w: %w", ErrDataFile, err)
	}
	if limited.N <= 0 {
		return fmt.Errorf("%w: it is larger than 4 MiB", ErrDataFile)
	}
	return nil
}

// LinesOf is EachLine for the file at a path, which comes back with how many lines
// were read; "" = none.
func LinesOf(path string, read func(line string) error) (n int, of Stamp, err error) {
	if path == "" {
		return 0, Stamp{}, nil
	}
	of, err = Read(path, func(f io.ReadSeeker, _ int64) error {
		return EachLine(f, func(line string) error {
			n++
			return read(line)
		})
	})
	if err != nil && !errors.Is(err, ErrDataFile) {
		err = fmt.Errorf("%w: %w", ErrDataFile, err)
	}
	return n, of, err
}
