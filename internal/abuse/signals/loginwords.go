package signals

import (
	"context"
	_ "embed"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"curt/internal/abuse"
	"curt/internal/abuse/listfile"
	"curt/internal/weburl"
)

//go:embed loginwords.txt
var loginWords string

// LoginWords is the signal Credentials: words of pages that ask for a password, in the path
// and in the labels below the registrable domain, as whole words in any case, after
// percent-decoding once and without accents; of a path that is longer than any in use, its
// ends are looked at. Honest sites have such pages too, which is why
// it adds little. loginwords.txt has the words, of which each language has its own.
type LoginWords struct {
	words map[string]struct{} // set once
}

// NewLoginWords returns the signal. The error is an ErrDataFile, and only of a build whose
// list is damaged.
func NewLoginWords() (*LoginWords, error) {
	l := &LoginWords{words: map[string]struct{}{}}
	err := listfile.EachLine(strings.NewReader(loginWords), func(line string) error {
		for word := range strings.FieldsSeq(line) {
			var p phrase
			for _, r := range word {
				p.letter(r)
			}
			if p.length() < shortestWord || p.length() > longestWord {
				return fmt.Errorf("invalid word %q: expected %d to %d bytes", word, shortestWord, longestWord)
			}
			l.words[string(p.text[:p.end])] = struct{}{}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the words of logins: %w", err)
	}
	return l, nil
}

// Name implements abuse.Signal.
func (*LoginWords) Name() abuse.Name { return abuse.Credentials }

// Inspect implements abuse.Signal.
func (l *LoginWords) Inspect(_ context.Context, _ time.Time, f *abuse.Facts) ([]abuse.Finding, error) {
	host := strings.TrimSuffix(f.URL.Host(), ".")
	if l.find(abuse.UnicodeLabels(host)) != "" { // where, is asked only then: it costs an allocation
		if word := l.find(abuse.UnicodeLabels(subdomains(host))); word != "" {
			return abuse.Found(abuse.Credentials, "the word "+word+" in the host"), nil
		}
	}
	for _, part := range ends(pathOf(f.URL)) {
		if word := l.find(part); word != "" {
			return abuse.Found(abuse.Credentials, "the word "+word+" in the path"), nil
		}
	}
	return nil, nil
}

// longPath is beyond what paths are as long as, in bytes, and endOfPath how much is looked
// at of each end of one that is longer: what is between is there to cost time.
const (
	longPath  = 2048
	endOfPath = 1024
)

// ends returns a path, or the beginning and the end of a long one, as whole words.
func ends(where string) [2]string {
	if len(where) <= longPath {
		return [2]string{where}
	}
	const border = "/-._~!$&'()*+,;=:@"
	begin, end := where[:endOfPath], where[len(where)-endOfPath:]
	begin = begin[:strings.LastIndexAny(begin, border)+1]
	return [2]string{begin, end[strings.IndexAny(end, border)+1:]}
}

// pathOf returns the path of a URL, still encoded.
func pathOf(u weburl.URL) string {
	_, _, after := weburl.Split(u.Href())
	if i := strings.IndexByte(after, '/'); i >= 0 {
		after = after[i:]
	}
	if i := strings.IndexAny(after, "?#"); i >= 0 {
		after = after[:i]
	}
	return after
}

// subdomains returns what stands before the registrable domain of a host.
func subdomains(host string) string {
	domain := abuse.Registrable(host)
	if domain == "" || domain == host {
		return ""
	}
	return host[:len(host)-len(domain)-1]
}

// find returns the first word of the list in a text, "" for none. Words are letters and
// digits; "-", "_", ".", "+", spaces and a capital behind a small letter part words that
// may stand for one (log-in, signIn), everything else ends a phrase.
func (l *LoginWords) find(text string) string {
	var p phrase
	small := false // the last character is a small letter
	for text != "" {
		r, n := decode(text)
		text = text[n:]
		if !inWord(r) {
			if word := l.known(&p); word != "" {
				return word
			}
			if p.next(); !strings.ContainsRune("-_.+ ", r) {
				p.reset()
			}
			small = false
			continue
		}
		if small && 'A' <= r && r <= 'Z' {
			if word := l.known(&p); word != "" {
				return word
			}
			p.next()
		}
		small = 'a' <= r && r <= 'z'
		p.letter(r)
	}
	return l.known(&p)
}

// known returns the word of the list that a phrase ends with, "" for none.
func (l *LoginWords) known(p *phrase) string {
	if p.length() == 0 {
		return ""
	}
	for i := p.words; i >= 0; i-- {
		joined := p.text[p.starts[i]:p.end]
		if len(joined) < shortestWord || len(joined) > longestWord {
			continue
		}
		if _, found := l.words[string(joined)]; found {
			return string(joined)
		}
	}
	return ""
}

func inWord(r rune) bool {
	if r < utf8.RuneSelf {
		return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
	}
	return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.Is(unicode.Mn, r))
}

// Bounds of a word of a login, in bytes without accents. Shorter ones are met by chance in
// the identifiers that paths are full of.
const (
	shortestWord = 4
	longestWord  = 40
	mostJoined   = 3 // words that may stand for one, as in "mot-de-passe"
)

// phrase holds the latest words of a text, in small letters and without accents.
type phrase struct {
	text   [mostJoined*longestWord + utf8.UTFMax]byte
	end    int
	starts [mostJoined]int // of the words, in text
	words  int             // which of them is being written
	long   bool            // it is longer than any word of a list
}

// length is that of the word being written.
func (p *phrase) length() int { return p.end - p.starts[p.words] }

// letter adds to the word.
func (p *phrase) letter(r rune) {
	if p.long {
		return
	}
	if r < utf8.RuneSelf {
		if 'A' <= r && r <= 'Z' {
			r += 'a' - 'A'
		}
		p.text[p.end] = byte(r)
		p.end++
	} else {
		var whole [utf8.UTFMax]byte
		n := utf8.EncodeRune(whole[:], withoutStroke(unicode.ToLower(r)))
		parts := norm.NFD.Properties(whole[:n]).Decomposition()
		if parts == nil {
			parts = whole[:n]
		}
		for _, part := range string(parts) {
			if !unicode.Is(unicode.Mn, part) && p.end+utf8.UTFMax <= len(p.text) {
				p.end += utf8.EncodeRune(p.text[p.end:], part)
			}
		}
	}
	p.long = p.length() > longestWord
}

// withoutStroke is for the letters whose accent Unicode does not take apart.
func withoutStroke(r rune) rune {
	switch r {
	case 'ł':
		return 'l'
	case 'ø':
		return 'o'
	case 'đ':
		return 'd'
	case 'ı':
		return 'i'
	}
	return r
}

// next ends the word and begins another. A word that is too long parts its neighbours.
func (p *phrase) next() {
	switch {
	case p.long:
		p.reset()
	case p.length() == 0:
	case p.words+1 < mostJoined:
		p.words++
		p.starts[p.words] = p.end
	default: // the first word goes
		gone := p.starts[1]
		p.end = copy(p.text[:], p.text[gone:p.end])
		copy(p.starts[:], p.starts[1:])
		for i := range p.starts {
			p.starts[i] -= gone
		}
		p.starts[p.words] = p.end
	}
}

// reset forgets all words.
func (p *phrase) reset() {
	p.end, p.words, p.long, p.starts = 0, 0, false, [mostJoined]int{}
}

// decode returns the first character of a text in which bytes may be percent-encoded, and
// how many bytes of the text it takes. What is no UTF-8 is U+FFFD, byte by byte.
func decode(text string) (rune, int) {
	first, width := unescape(text)
	if first < utf8.RuneSelf {
		return rune(first), width
	}
	raw, at := [utf8.UTFMax]byte{first}, width
	for n := 1; n < len(raw) && at < len(text) && !utf8.FullRune(raw[:n]); n++ {
		c, more := unescape(text[at:])
		raw[n] = c
		at += more
		if r, size := utf8.DecodeRune(raw[:n+1]); size == n+1 {
			return r, at
		}
	}
	return utf8.RuneError, width
}

// unescape returns the first byte of a text and how many bytes it takes there.
func unescape(text string) (byte, int) {
	if text[0] == '%' && len(text) > 2 {
		if hi, lo := weburl.Unhex(text[1]), weburl.Unhex(text[2]); hi < 16 && lo < 16 {
			return hi<<4 | lo, 3
		}
	}
	return text[0], 1
}
