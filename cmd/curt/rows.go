package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"unicode/utf8"

	"curt.example/client"
)

const (
	// maxLine is the longest line of input, in bytes: a URL has at most 8,192.
	maxLine = 16 << 10
	// maxRows is what the API takes in one request.
	maxRows = 1000
	// maxRowBytes keeps a request below its 16 MiB when every character of a URL is
	// written as six in JSON.
	maxRowBytes = 2 << 20
)

// row is one link to make.
type row struct {
	name  string // for error messages: the line, or the URL of the command line
	url   string // "" = an empty line, which makes nothing
	alias string
	err   error // what is wrong with the row itself
	end   int64 // bytes of input up to and with it
}

// given returns the rows of a command line.
func given(urls []string, alias string) <-chan row {
	rows := make(chan row, len(urls))
	for _, u := range urls {
		r := row{name: u, url: u, alias: alias}
		if strings.TrimSpace(u) == "" {
			r.name, r.url, r.err = "URL "+strconv.Quote(u), "-", errors.New("want a URL, this one is empty")
		}
		rows <- r
	}
	close(rows)
	return rows
}

// input reads rows from r: "URL" or "URL<tab>alias". Its goroutine ends with r or ctx;
// one that waits for a terminal or a pipe ends with the process.
func input(ctx context.Context, r io.Reader) <-chan row {
	rows := make(chan row, maxRows)
	go func() {
		defer close(rows)
		lines := bufio.NewReaderSize(r, maxLine)
		for number, at := 1, int64(0); ; number++ {
			line, n, err := readLine(lines)
			at += n
			if n == 0 && err != nil {
				if err == io.EOF { //nolint:errorlint // readLine returns it as it is
					return
				}
				line = nil
			}
			next := parseRow(number, string(line), at)
			if err != nil && !errors.Is(err, io.EOF) {
				next.url, next.err = "-", err
			}
			select {
			case rows <- next:
			case <-ctx.Done():
				return
			}
			if err != nil && !errors.Is(err, errLongLine) {
				return
			}
		}
	}()
	return rows
}

var errLongLine = fmt.Errorf("is longer than %d bytes", maxLine)

// readLine returns a line without its end and how many bytes it took; of one that is
// too long, nothing but errLongLine.
func readLine(r *bufio.Reader) (line []byte, n int64, err error) {
	line, err = r.ReadSlice('\n')
	n = int64(len(line))
	long := errors.Is(err, bufio.ErrBufferFull)
	for errors.Is(err, bufio.ErrBufferFull) {
		line, err = r.ReadSlice('\n')
		n += int64(len(line))
	}
	if long && (err == nil || errors.Is(err, io.EOF)) {
		return nil, n, errLongLine
	}
	return line, n, err
}

// parseRow reads a line. The byte order mark that editors put first is no part of it.
func parseRow(number int, line string, end int64) row {
	r := row{name: fmt.Sprintf("line %d", number), end: end}
	if number == 1 {
		line = strings.TrimPrefix(line, "\ufeff")
	}
	u, alias, two := strings.Cut(strings.Trim(line, " \r\n"), "\t")
	r.url, r.alias = strings.TrimSpace(u), strings.TrimSpace(alias)
	switch {
	case r.url == "" && r.alias == "": // an empty line, even with tabs
	case !utf8.ValidString(line):
		r.err = client.ErrText
	case r.url == "" || (two && r.alias == "") || strings.Contains(alias, "\t"):
		r.url, r.err = "-", errors.New("want URL, or URL, tab, alias")
	}
	return r
}

// size returns how many bytes a reader has left, 0 when that is unknown.
func size(r io.Reader) int64 {
	f, ok := r.(*os.File)
	if !ok {
		return 0
	}
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return 0
	}
	at, err := f.Seek(0, io.SeekCurrent)
	if err != nil {
		return 0
	}
	return info.Size() - at
}
