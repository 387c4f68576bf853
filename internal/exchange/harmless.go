package exchange

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Harmless keeps spreadsheets from running a cell that a stranger wrote: an apostrophe
// stands before what would begin a formula. That may be in the middle, too. Whoever opens
// the file with semicolons or tabs, as where the comma is the decimal sign, finds the quotes
// of a cell behind the beginning of theirs, so that they hold nothing together, and what is
// behind such a sign or at the beginning of a line is a cell of its own. Behind a comma
// nothing is, because whoever reads commas reads the quotes.
//
// What begins so without being a formula, behind apostrophes of its own, gets another, so
// that whoever takes one away in each place has what there was: see harmful. web/src/lib/csv.ts
// does the same.
func Harmless(cell string) string {
	if !suspicious(cell) {
		return cell
	}
	var b strings.Builder
	for field := range fields(cell) {
		if runs(field, b.Len() == 0) {
			b.WriteByte('\'')
		}
		b.WriteString(field)
	}
	return b.String()
}

// harmful takes back what Harmless did.
func harmful(cell string) string {
	if !suspicious(cell) {
		return cell
	}
	var b strings.Builder
	first := true
	for field := range fields(cell) {
		if rest, ok := strings.CutPrefix(field, "'"); ok && runs(rest, first) {
			field = rest
		}
		b.WriteString(field)
		first = false
	}
	return b.String()
}

// signs begin a formula; the wide and the small ones do where such signs are written.
const signs = "=+-@＝＋－＠﹦﹢﹣﹫"

// separators may end a field. The last three begin a cell that is run, as well: they are taken
// off its front.
const separators = ";|\t\r\n"

// suspicious spares most cells the rest.
func suspicious(cell string) bool {
	return strings.ContainsAny(cell, signs) || strings.ContainsAny(cell, "\t\r\n")
}

// fields calls yield with the parts of a cell that others may take for fields, each with the
// separator behind it. Together they are the cell.
func fields(cell string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for cell != "" {
			end := len(cell)
			if i := strings.IndexAny(cell, separators); i >= 0 {
				end = i + 1
			}
			if !yield(cell[:end]) {
				return
			}
			cell = cell[end:]
		}
	}
}

// runs reports whether a spreadsheet would run a field. Spaces, what cannot be seen, and
// quotes before the sign are taken away by some.
func runs(field string, first bool) bool {
	if rest := strings.TrimLeft(field, "'"); first && rest != "" && strings.IndexByte("\t\r\n", rest[0]) >= 0 {
		return true
	}
	for field != "" {
		r, size := utf8.DecodeRuneInString(field)
		switch {
		case strings.ContainsRune(signs, r):
			return true
		case strings.ContainsRune(separators, r), r != '\'' && r != '"' && !unicode.In(r, unicode.Z, unicode.Cc, unicode.Cf):
			return false
		}
		field = field[size:]
	}
	return false
}
