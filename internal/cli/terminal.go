// Package cli is what all commands of curt share: the terminal, tables and progress, exit codes,
// completion, and the flags with which a command reaches a server. The commands themselves are in
// the packages below it: links, keys and moderate are clients of the API, movedata moves links
// between files, folders and servers, and operate runs a server and examines it.
//
// Read exit.go first: how a command ends. The tree of the commands is in cmd/curt/main.go.
package cli

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"unicode"

	"github.com/mattn/go-isatty"
)

// Version is the version of the binary, set by the linker.
type Version string

// MaxLine is the longest line of input, in bytes: a URL has at most 8,192.
const MaxLine = 16 << 10

// Terminal is what a command reads and writes.
type Terminal struct {
	In       io.Reader
	Out, Err io.Writer
}

// Complain prints an error as one line.
func (t Terminal) Complain(err error) { t.line(err.Error() + advice(err)) }

// line prints a line of an error.
func (t Terminal) line(text string) { _, _ = fmt.Fprintf(t.Err, "curt: %s\n", Plain(text)) }

// Note prints a line for people to the error stream, since the output may be redirected.
func (t Terminal) Note(format string, args ...any) {
	_, _ = fmt.Fprintln(t.Err, Plain(fmt.Sprintf(format, args...)))
}

// IsTerminal reports whether a reader or writer is a terminal. The mode of the file is not
// enough: /dev/null is a character device, too.
func IsTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && isatty.IsTerminal(f.Fd())
}

// Plain returns untrusted text for a terminal: characters that move the cursor, start a new
// line or change the direction of text are escaped.
func Plain(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD") // a lone 0x9b starts a command of old terminals
	if !strings.ContainsFunc(text, unsafeRune) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if unsafeRune(r) {
			_, _ = fmt.Fprintf(&b, `\u%04x`, r) // all of them are in the basic plane
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

// Confirm asks before a change that is large or cannot be undone. Without a terminal it
// requires --yes.
func (t Terminal) Confirm(ctx context.Context, yes bool, question string) error {
	if yes {
		return nil
	}
	if !IsTerminal(t.In) {
		return UsageError("refusing without confirmation (not a terminal); use --yes")
	}
	_, _ = fmt.Fprintf(t.Err, "%s [y/N] ", Plain(question))
	answer := make(chan string, 1)
	go func() { // ends with the line, or with the process after Ctrl-C
		line, _ := bufio.NewReader(t.In).ReadString('\n') // no answer is no
		answer <- strings.ToLower(strings.TrimSpace(line))
	}()
	select {
	case a := <-answer:
		if a == "y" || a == "yes" {
			return nil
		}
		return errNotConfirmed
	case <-ctx.Done():
		return ErrInterrupted
	}
}

// unsafeRune finds control characters (C0, DEL, C1), the bidirectional controls,
// and the separators of lines.
func unsafeRune(r rune) bool {
	return unicode.IsControl(r) || unicode.In(r, unicode.Bidi_Control, unicode.Zl, unicode.Zp)
}

// Logger writes lines for people on a terminal and JSON elsewhere.
func (t Terminal) Logger(level string) *slog.Logger {
	options := &slog.HandlerOptions{}
	var l slog.Level
	if l.UnmarshalText([]byte(level)) == nil {
		options.Level = l
	}
	if IsTerminal(t.Err) {
		return slog.New(slog.NewTextHandler(t.Err, options))
	}
	return slog.New(slog.NewJSONHandler(t.Err, options))
}

// Remaining returns the number of bytes left in a reader, 0 if unknown.
func Remaining(r io.Reader) int64 {
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
