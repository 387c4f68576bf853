package search

import (
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/idna"
	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

const (
	// maxWord is what counts of a word, in bytes; the rest is cut off, in links and
	// in questions alike.
	maxWord = 64

	// maxWords is how many different words of one link can be found. A URL of 8 KiB
	// may have thousands, and a stranger writes it.
	maxWords = 200
)

// words calls yield with each word of the text until yield returns false. A word is a run of letters, digits and
// marks, with case folded (ß is ss) and in compatibility form (NFKC), cut to maxWord bytes. Scripts
// that write no spaces are taken letter by letter.
func words(text string, yield func(string) bool) {
	text = norm.NFKC.String(cases.Fold().String(norm.NFKC.String(text))) // a folded letter may be composed anew
	for text != "" {
		begin := strings.IndexFunc(text, inWord)
		if begin < 0 {
			return
		}
		text = text[begin:]
		end := wordEnd(text)
		word := text[:end]
		text = text[end:]
		if !yield(cut(word)) {
			return
		}
	}
}

func inWord(r rune) bool {
	return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r))
}

// wordEnd returns the length of the word that text begins with.
func wordEnd(text string) int {
	for i, r := range text {
		switch alone := unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana); {
		case alone && i == 0:
			return utf8.RuneLen(r)
		case alone, !inWord(r):
			return i
		}
	}
	return len(text)
}

// cut shortens a word to maxWord bytes, between two letters.
func cut(word string) string {
	if len(word) <= maxWord {
		return word
	}
	end := maxWord
	for !utf8.RuneStart(word[end]) {
		end--
	}
	return word[:end]
}

// wordSet collects different words up to maxWords.
type wordSet struct {
	seen map[string]struct{}
}

func (s *wordSet) add(text string) {
	if len(s.seen) >= maxWords {
		return
	}
	words(text, func(w string) bool {
		s.seen[w] = struct{}{}
		return len(s.seen) < maxWords
	})
}

// addHost adds the words of a host, also as people write it.
func (s *wordSet) addHost(host string) {
	s.add(host)
	if strings.Contains(host, "xn--") {
		if readable, err := idna.Punycode.ToUnicode(host); err == nil {
			s.add(readable)
		}
	}
}

// addPath adds the words of the path of an absolute URL in normal form, without escapes.
func (s *wordSet) addPath(href string) {
	_, rest, _ := strings.Cut(href, "://")
	rest = rest[:endOf(rest, "?#")]
	path := rest[endOf(rest, "/"):]
	if plain, err := url.PathUnescape(path); err == nil {
		path = plain
	}
	s.add(path)
}

// hostOf returns the host of an absolute URL in normal form, with its port.
func hostOf(href string) string {
	_, rest, _ := strings.Cut(href, "://")
	return rest[:endOf(rest, "/?#")]
}

// endOf returns where the first of the separators is, or the length.
func endOf(s, separators string) int {
	if i := strings.IndexAny(s, separators); i >= 0 {
		return i
	}
	return len(s)
}
