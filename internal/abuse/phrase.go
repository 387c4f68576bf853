package abuse

import (
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

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
		if hi, lo := hexDigit(text[1]), hexDigit(text[2]); hi < 16 && lo < 16 {
			return hi<<4 | lo, 3
		}
	}
	return text[0], 1
}

// hexDigit returns the value of a hexadecimal digit, 16 for another byte.
func hexDigit(c byte) byte {
	switch {
	case '0' <= c && c <= '9':
		return c - '0'
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10
	case 'A' <= c && c <= 'F':
		return c - 'A' + 10
	}
	return 16
}
