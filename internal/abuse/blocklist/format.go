package blocklist

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"runtime"
	"slices"
	"strings"

	"curt/internal/abuse/listfile"
	"curt/internal/weburl"
)

const (
	// maxLine is far beyond what a list has on a line.
	maxLine = 64 << 10
	// yieldEvery is the number of lines between two yields to other goroutines: some 0.2 ms.
	yieldEvery = 512
)

// scan calls do with each line of a text, its end cut off, and its number. ErrDamaged
// is for what no whole text of lines can be: a file without a byte, a NUL byte, a line
// without end, which is what a copy under way looks like, and what is compressed. It
// lets other goroutines run in between.
func scan(r io.Reader, do func(line []byte, number int) error) error {
	in := bufio.NewReaderSize(r, maxLine)
	if kind := foreign(in); kind != "" {
		return fmt.Errorf("%w: it is %s, not plain text", listfile.ErrDamaged, kind)
	}
	for number := 1; ; number++ {
		line, err := in.ReadSlice('\n')
		switch {
		case err == io.EOF && len(line) == 0 && number > 1:
			return nil
		case err == io.EOF && len(line) == 0:
			return fmt.Errorf("%w: it is empty", listfile.ErrDamaged)
		case err == io.EOF:
			return fmt.Errorf("%w: line %d is truncated", listfile.ErrDamaged, number)
		case errors.Is(err, bufio.ErrBufferFull):
			return fmt.Errorf("%w: line %d is longer than %d bytes", listfile.ErrDamaged, number, maxLine)
		case err != nil:
			return fmt.Errorf("%w: %w", listfile.ErrFile, err)
		case bytes.IndexByte(line, 0) >= 0:
			return fmt.Errorf("%w: line %d has a NUL byte", listfile.ErrDamaged, number)
		}
		if err := do(bytes.TrimSpace(bytes.TrimPrefix(line, []byte("\ufeff"))), number); err != nil {
			return err
		}
		if number%yieldEvery == 0 {
			runtime.Gosched()
		}
	}
}

// foreign names what a file is by its first bytes; "" = perhaps text.
func foreign(in *bufio.Reader) string {
	head, _ := in.Peek(4) // what cannot be read is told by the first line
	for magic, name := range map[string]string{
		"\x1f\x8b": "compressed (gzip)", "PK\x03\x04": "compressed (zip)", "BZh": "compressed (bzip2)", "\x28\xb5\x2f\xfd": "compressed (zstd)",
		"\xfd7zX": "compressed (xz)", "\xff\xfe": "UTF-16", "\xfe\xff": "UTF-16",
	} {
		if bytes.HasPrefix(head, []byte(magic)) {
			return name
		}
	}
	return ""
}

// verdict is what a line is.
type verdict uint8

const (
	nothing verdict = iota // empty, or a comment
	meant                  // it has an entry
	passed
	strange
)

// parser reads one list of destinations. What a line is shows the line itself:
//
//	evil.example                 a host and all below it; so do ".evil.example" and "*.evil.example"
//	192.0.2.7, 2001:db8::7       an address
//	0.0.0.0 a.example b.example  hosts behind an address, as in a hosts file
//	https://evil.example/a       what begins so, on that host (expression.go)
//	64 hexadecimal digits        a SHA-256 (expression.go)
//	||evil.example^              Adblock syntax, below
//
// and in a CSV, which a line of the names of its columns begins, the column
// "url". What follows a "#" is a comment, and so is what follows a "!" or ";" at the
// beginning of a line or behind white space. A name without a dot is passed over in
// silence: hosts files call the machine itself so.
type parser struct {
	keep    func(*entry) error
	turned  bool // an exception means the same as a line without "@@"
	adblock bool // the file says that it is Adblock syntax
	columns columns
	good    int
	found   entry // reused
	err     error // of keep
}

// destinations is the syntax of a list of destinations. Allow-lists that people write
// in Adblock syntax have "@@" on their lines or not, and mean the same: they are turned.
func destinations(turned bool) syntax {
	return func(r io.Reader, keep func(*entry) error) (contents, error) {
		p := &parser{keep: keep, turned: turned}
		return tell(r, func(line []byte) (verdict, error) {
			v := p.line(line)
			if v == meant {
				p.good++
			}
			return v, p.err
		})
	}
}

// tell sorts the lines of a list. A text most of whose lines are not understood is no
// list, but a page that says why there is none: ErrDamaged.
func tell(r io.Reader, understand func(line []byte) (verdict, error)) (contents, error) {
	var c contents
	err := scan(r, func(line []byte, number int) error {
		v, err := understand(line)
		switch v {
		case nothing:
		case meant:
			c.good++
		case passed:
			c.passed.Add(number)
		case strange:
			c.strange.Add(number)
		}
		return err
	})
	if err == nil && c.strange.N > c.good {
		err = fmt.Errorf("%w: %d lines are invalid, %d are valid", listfile.ErrDamaged, c.strange.N, c.good)
	}
	return c, err
}

// line returns what a line is, without the white space around it.
func (p *parser) line(text []byte) verdict {
	if len(text) == 0 {
		return nothing
	}
	if isPlain(text) { // nearly all lines of long lists
		return p.field(string(text))
	}
	line := string(text)
	if p.good == 0 && p.columns.read(line) {
		return nothing
	}
	switch {
	case isHeader(line):
		p.adblock = true
		return nothing
	case beginsNote(line):
		return nothing
	case p.columns.known && strings.Contains(line, ","):
		return p.record(line)
	}
	v := p.other(line)
	if v == strange && p.adblock {
		v = passed // any text is a pattern there
	}
	return v
}

func (p *parser) other(line string) verdict {
	switch {
	case isRule(line):
		return p.rule(line)
	case isURL(line):
		fields := strings.Fields(line)
		if len(fields) > 1 && !beginsNote(fields[1]) {
			return strange
		}
		return p.url(fields[0], ofURL)
	case isCosmetic(line):
		return passed
	}
	return p.hosts(line)
}

// emit keeps what was found.
func (p *parser) emit(k kind, text string, reach int) verdict {
	p.found = entry{kind: k, text: text, reach: reach}
	p.err = p.keep(&p.found)
	return meant
}

// hosts is a line of hosts, perhaps behind an address.
func (p *parser) hosts(line string) verdict {
	line, _, _ = strings.Cut(line, "#")
	fields := strings.Fields(line)
	if note := slices.IndexFunc(fields, beginsNote); note >= 0 {
		fields = fields[:note]
	}
	if len(fields) > 1 {
		if _, err := netip.ParseAddr(fields[0]); err != nil {
			return strange
		}
		fields = fields[1:]
	}
	for _, field := range fields { // all or none
		if _, err := hostOf(field); err != nil && !isHash(field) {
			return strange
		}
	}
	best := nothing
	for _, field := range fields {
		if p.err == nil {
			best = max(best, p.field(field))
		}
	}
	return best
}

// field is a host or a SHA-256 that stands alone.
func (p *parser) field(field string) verdict {
	if isHash(field) {
		sum, err := hex.DecodeString(field)
		if err != nil {
			return strange
		}
		return p.emit(ofHash, string(sum), 0)
	}
	host, err := hostOf(field)
	switch {
	case err != nil:
		return strange
	case isWhole(host, field):
		return p.emit(ofHost, host, 0)
	}
	return nothing
}

// url is a URL that stands alone; k is ofURL, ofBelow or one of their exceptions.
func (p *parser) url(raw string, k kind) verdict {
	u, err := weburl.Parse(raw)
	if err != nil {
		return strange
	}
	var names [weburl.MaxHosts]string
	var x expression
	x.of(u, u.AppendHosts(names[:0])[0])
	if x.ends() > maxReach {
		return passed
	}
	return p.emit(k, string(x.text()), x.ends())
}

// hostOf returns the host that a field of a list means.
func hostOf(field string) (string, error) {
	return weburl.ParseHost(strings.TrimPrefix(strings.TrimPrefix(field, "*."), "."))
}

// isWhole reports whether a list means host by field: a name without a dot is the
// machine's own, and a bare number would be an address to a browser, and is none in a list.
func isWhole(host, field string) bool {
	return strings.ContainsAny(host, ".:") && (strings.IndexByte(field, '.') >= 0 || strings.ContainsAny(field, otherBorders))
}

// otherBorders stand between the parts of an address, or of a name: UTS 46 has four dots.
const otherBorders = ":\u3002\uff0e\uff61"

func beginsNote(field string) bool { return field[0] == '!' || field[0] == ';' || field[0] == '#' }

func isURL(line string) bool {
	const longest = len("https://")
	head := strings.ToLower(line[:min(len(line), longest)])
	return strings.HasPrefix(head, "http://") || head == "https://"
}

// isPlain reports whether a line can be nothing but one host or one SHA-256.
func isPlain(line []byte) bool {
	for _, c := range line {
		switch {
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9', c == '.', c == '-', c == '_':
		default:
			return false
		}
	}
	return true
}

func isHash(field string) bool {
	if len(field) != 64 {
		return false
	}
	for i := range len(field) {
		if weburl.Unhex(field[i]) > 15 {
			return false
		}
	}
	return true
}

// Of Adblock syntax, as AdGuard and uBlock Origin read it, these lines mean something
// to a shortener, which visits and does not embed:
//
//	||evil.example^             the host and all below it
//	||evil.example/a^           what begins so, on the host and all below it
//	|https://evil.example/a     what begins so, on that host
//	@@||good.example^           the list says nothing of that host, and of all below it
//
// with "*" or "|" at the end or without, and with the modifiers all, document, doc and
// important, which mean the page itself. An exception wins over every line of its own
// list, important or not, and over no other list. Every other modifier means something
// smaller than a host, such as scripts of third parties: such a line is passed over, and
// so is one that hides parts of pages, a regular expression and a pattern with a "*" or
// "^" in its middle.

// isHeader recognises the lines that say that a list is in Adblock syntax, where any text
// is a pattern: "[Adblock Plus]" and "! Title: ".
func isHeader(line string) bool {
	line = strings.ToLower(line)
	return strings.HasPrefix(line, "[adblock") || strings.HasPrefix(line, "[adguard") || strings.HasPrefix(line, "[ublock") ||
		strings.HasPrefix(line, "! title:")
}

func isRule(line string) bool {
	return strings.HasPrefix(line, "||") || strings.HasPrefix(line, "@@") || strings.HasPrefix(line, "|http")
}

// isCosmetic recognises a line that hides parts of pages, as "example.com##.banner": a
// careless cut at the "#" would forbid its host.
func isCosmetic(line string) bool {
	for i := 1; i < len(line)-1; i++ {
		if line[i] != '#' || line[i-1] == ' ' || line[i-1] == '\t' {
			continue
		}
		if rest := strings.TrimLeft(line[i+1:], "@?$%"); len(line)-i-1-len(rest) <= 2 && strings.HasPrefix(rest, "#") {
			return true
		}
	}
	return false
}

// wholePage reports whether all modifiers of a rule mean the page itself.
func wholePage(modifiers string) bool {
	for m := range strings.SplitSeq(modifiers, ",") {
		switch m {
		case "all", "document", "doc", "important":
		default:
			return false
		}
	}
	return true
}

// rule is a line in Adblock syntax.
func (p *parser) rule(line string) verdict {
	pattern, exception := strings.CutPrefix(line, "@@")
	if i := strings.LastIndexByte(pattern, '$'); i >= 0 {
		if !wholePage(pattern[i+1:]) {
			return passed
		}
		pattern = pattern[:i]
	}
	as := func(k kind) kind {
		if exception && !p.turned {
			return k.excepted()
		}
		return k
	}
	pattern, below := strings.CutPrefix(pattern, "||")
	if !below {
		pattern, _ = strings.CutPrefix(pattern, "|")
	}
	open := strings.Contains(pattern, ".*") // what follows the dot is open
	pattern = strings.TrimRight(strings.TrimPrefix(pattern, "*."), "*^|")
	switch {
	case pattern == "" || open || strings.ContainsAny(pattern, "*^| \t"):
		return passed
	case !below && isURL(pattern):
		return min(p.url(pattern, as(ofURL)), passed)
	case !below:
		return passed
	case pattern[0] == '[' || !strings.ContainsAny(pattern, "/?:"):
		if host, err := hostOf(pattern); err == nil && isWhole(host, pattern) {
			return p.emit(as(ofHost), host, 0)
		}
		return passed
	}
	return min(p.url("http://"+pattern, as(ofBelow)), passed)
}

// columns are where a CSV has what we read: its column "url" and, where there is one,
// "url_status", whose "offline" means that nothing is there any more. URLhaus names its
// columns in a comment, PhishTank in the first line.
type columns struct {
	known       bool
	url, status int // -1 = none
}

// read takes the names of the columns from a line; it reports false for a line that is
// something else.
func (c *columns) read(line string) bool {
	line = strings.TrimSpace(strings.TrimLeft(line, "#"))
	if !strings.Contains(line, ",") {
		return false
	}
	found := columns{url: -1, status: -1}
	i := 0
	for name := range strings.SplitSeq(line, ",") {
		name = strings.Trim(name, `" `)
		if strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") != "" {
			return false
		}
		switch name {
		case "url":
			found.url, found.known = i, true
		case "url_status":
			found.status = i
		}
		i++
	}
	if found.known {
		*c = found
	}
	return found.known
}

// record is a line of a CSV.
func (p *parser) record(line string) verdict {
	var url, status string
	for i := 0; ; i++ {
		field, rest, ok := cutField(line)
		switch {
		case !ok:
			return strange
		case i == p.columns.url:
			url = field
		case i == p.columns.status:
			status = field
		}
		if rest == "" {
			break
		}
		line = rest[1:]
	}
	if strings.EqualFold(status, "offline") {
		return passed
	}
	return p.url(url, ofURL)
}

// cutField returns the first field of a line, and the rest from its comma on. A field
// may stand in quotes, in which two stand for one (RFC 4180); it may not go on in the
// next line.
func cutField(line string) (field, rest string, ok bool) {
	line = strings.TrimLeft(line, " ")
	if !strings.HasPrefix(line, `"`) {
		i := strings.IndexByte(line, ',')
		if i < 0 {
			i = len(line)
		}
		return strings.TrimSpace(line[:i]), line[i:], true
	}
	for i := 1; i < len(line); i++ {
		switch {
		case line[i] != '"':
		case i+1 < len(line) && line[i+1] == '"':
			i++
		default:
			rest = strings.TrimLeft(line[i+1:], " ")
			return strings.ReplaceAll(line[1:i], `""`, `"`), rest, rest == "" || rest[0] == ','
		}
	}
	return "", "", false
}
