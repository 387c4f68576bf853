package exchange

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

// MaxRow is the longest row in bytes: a link has two URLs of 8,192, and every character
// may be written as six.
const MaxRow = 128 << 10

// Row is what stands in a file for one link.
type Row struct {
	Line   int   // the line that it begins in, from 1
	End    int64 // bytes of the file up to its end
	Next   int   // the line after it
	Record Record
	Err    error // why it cannot be read; the rows after it can
}

// Reader reads rows. Next returns io.EOF at the end, and another error when the file
// itself cannot be read.
type Reader interface {
	Next() (Row, error)
}

var (
	errLong     = fmt.Errorf("the row is longer than %d bytes", MaxRow)
	errEncoding = errors.New("the text is not UTF-8")
	errNUL      = errors.New("the row has a NUL byte")
)

// lines reads a file line by line. It keeps lines that were looked at and not taken.
type lines struct {
	in     *bufio.Reader
	held   []line // looked at, in order
	number int    // of the last line that was taken
	end    int64  // of it
}

// line is one line with its end. One that is longer than MaxRow has no text.
type line struct {
	text []byte
	size int64
	long bool

	returns bool // a carriage return stands between other text
}

func newLines(r io.Reader) *lines { return &lines{in: bufio.NewReaderSize(r, 64<<10)} }

// skip passes over the lines before an offset.
func (l *lines) skip(offset int64) error {
	for l.end < offset {
		if _, err := l.look(0); err != nil {
			return fmt.Errorf("continue at byte %d: %w", offset, err)
		}
		l.take(1)
	}
	return nil
}

// look returns the i-th line that was not taken yet; io.EOF behind the last.
func (l *lines) look(i int) (line, error) {
	for len(l.held) <= i {
		n, err := l.read()
		if err != nil {
			return line{}, err
		}
		l.held = append(l.held, n)
	}
	return l.held[i], nil
}

func (l *lines) read() (n line, err error) {
	for {
		piece, err := l.in.ReadSlice('\n')
		n.size += int64(len(piece))
		if i := bytes.IndexByte(piece, '\r'); i >= 0 && i+1 < len(piece) && piece[i+1] != '\r' && piece[i+1] != '\n' {
			n.returns = true
		}
		if len(n.text)+len(piece) > MaxRow {
			n.long = true
		}
		if !n.long {
			n.text = append(n.text, piece...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF) && n.size > 0, err == nil:
			if n.long {
				n.text = nil
			}
			return n, nil
		case errors.Is(err, io.EOF):
			return n, io.EOF
		default:
			return n, fmt.Errorf("read the file: %w", err)
		}
	}
}

// take takes n lines that were looked at.
func (l *lines) take(n int) {
	for _, t := range l.held[:n] {
		l.number++
		l.end += t.size
	}
	l.held = l.held[n:]
}

// row is the row that the lines taken last make up.
func (l *lines) row(first int) Row { return Row{Line: first, End: l.end, Next: l.number + 1} }

// begin looks at the first bytes of a file: it passes over a UTF-8 byte order mark, and
// refuses other encodings, which would fail row by row.
func (l *lines) begin() error {
	first, err := l.look(0)
	if err != nil {
		return err
	}
	switch {
	case bytes.HasPrefix(first.text, []byte("\xef\xbb\xbf")):
		l.held[0].text = first.text[3:]
	case bytes.HasPrefix(first.text, []byte("\xff\xfe")), bytes.HasPrefix(first.text, []byte("\xfe\xff")):
		return errors.New("the file is UTF-16: save it as UTF-8")
	case bytes.HasPrefix(first.text, []byte("PK\x03\x04")), bytes.HasPrefix(first.text, []byte("\x1f\x8b")):
		return errors.New("the file is compressed or a spreadsheet: save it as CSV")
	}
	return nil
}

// checkText refuses what would silently become something else on its way.
func checkText(text []byte) error {
	switch {
	case bytes.IndexByte(text, 0) >= 0:
		return errNUL
	case !utf8.Valid(text):
		return errEncoding
	}
	return nil
}

// Sniff says whether a file is csv or jsonl, and returns a reader of all of it.
func Sniff(r io.Reader) (format string, all io.Reader, err error) {
	in := bufio.NewReaderSize(r, 4096)
	head, err := in.Peek(512)
	if err != nil && !errors.Is(err, io.EOF) {
		return "", nil, fmt.Errorf("read the file: %w", err)
	}
	head = bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\xef\xbb\xbf")), " \t\r\n")
	if bytes.HasPrefix(head, []byte("{")) {
		return "jsonl", in, nil
	}
	return "csv", in, nil
}
