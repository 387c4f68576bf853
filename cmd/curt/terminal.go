package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"

	"github.com/mattn/go-isatty"
)

// terminal is what a command reads and writes.
type terminal struct {
	in       io.Reader
	out, err io.Writer
}

// complain prints an error as one line.
func (t terminal) complain(err error) { t.line(err.Error() + advice(err)) }

// line prints a line of an error.
func (t terminal) line(text string) { _, _ = fmt.Fprintf(t.err, "curt: %s\n", plain(text)) }

// note prints a line for people, who may have redirected the output.
func (t terminal) note(format string, args ...any) {
	_, _ = fmt.Fprintln(t.err, plain(fmt.Sprintf(format, args...)))
}

// isTerminal reports whether a person sits at the other end of a reader or writer.
// The mode of the file does not tell: /dev/null is a character device, too.
func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && isatty.IsTerminal(f.Fd())
}

// plain shows text of strangers: what would move the cursor, start a new line or
// turn the direction of reading is written as an escape.
func plain(text string) string {
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

// confirm asks before much is changed, or what cannot be taken back. Where nobody can answer it wants --yes.
func (t terminal) confirm(ctx context.Context, yes bool, question string) error {
	if yes {
		return nil
	}
	if !isTerminal(t.in) {
		return usageError("nobody can be asked here: say --yes")
	}
	_, _ = fmt.Fprintf(t.err, "%s [y/N] ", plain(question))
	answer := make(chan string, 1)
	go func() { // ends with the line, or with the process that Ctrl-C ends
		line, _ := bufio.NewReader(t.in).ReadString('\n') // no answer is no
		answer <- strings.ToLower(strings.TrimSpace(line))
	}()
	select {
	case a := <-answer:
		if a == "y" || a == "yes" {
			return nil
		}
		return errNotConfirmed
	case <-ctx.Done():
		return errInterrupted
	}
}

// unsafeRune finds control characters (C0, DEL, C1), the bidirectional controls,
// and the separators of lines.
func unsafeRune(r rune) bool {
	return unicode.IsControl(r) || unicode.In(r, unicode.Bidi_Control, unicode.Zl, unicode.Zp)
}
