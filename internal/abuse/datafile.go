package abuse

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
var ErrDataFile = errors.New("the file cannot be used")

// eachLine hands the lines of a file to read, without comments ("#" to the end of the
// line) and spaces around; empty lines are passed over. The error names the line.
func eachLine(r io.Reader, read func(line string) error) error {
	limited := &io.LimitedReader{R: r, N: maxDataFile + 1}
	lines := bufio.NewScanner(limited)
	for n := 1; lines.Scan(); n++ {
		line, _, _ := strings.Cut(lines.Text(), "#")
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

// eachLineOf is eachLine for the file at a path, which comes back with how many lines
// were read; "" = none.
func eachLineOf(path string, read func(line string) error) (n int, of stamp, err error) {
	if path == "" {
		return 0, stamp{}, nil
	}
	of, err = version(path, func(f io.ReadSeeker, _ int64) error {
		return eachLine(f, func(line string) error {
			n++
			return read(line)
		})
	})
	if err != nil && !errors.Is(err, ErrDataFile) {
		err = fmt.Errorf("%w: %w", ErrDataFile, err)
	}
	return n, of, err
}
