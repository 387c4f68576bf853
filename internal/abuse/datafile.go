package abuse

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"
)

// maxDataFile bounds the files of brands and shorteners, in bytes. Some 50,000 lines fit.
const maxDataFile = 4 << 20

// ErrDataFile is what every error about a file of brands or shorteners wraps.
var ErrDataFile = errors.New("want a text file of UTF-8 lines")

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

// eachLineOf is eachLine for a path. What is no regular file is refused before it is
// opened: a pipe would keep the start waiting.
func eachLineOf(path string, read func(line string) error) error {
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrDataFile, err)
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%w: %s is no regular file", ErrDataFile, path)
	}
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrDataFile, err)
	}
	defer f.Close() //nolint:errcheck // only read
	return eachLine(f, read)
}
