package abuse

import (
	"context"
	_ "embed"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

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
	err := eachLine(strings.NewReader(loginWords), func(line string) error {
		for word := range strings.FieldsSeq(line) {
			var p phrase
			for _, r := range word {
				p.letter(r)
			}
			if p.length() < shortestWord || p.length() > longestWord {
				return fmt.Errorf("%q is no word of %d to %d bytes", word, shortestWord, longestWord)
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

// Name implements Signal.
func (*LoginWords) Name() Name { return Credentials }

// Look implements Signal.
func (l *LoginWords) Look(_ context.Context, _ time.Time, f *Facts) ([]Finding, error) {
	host := strings.TrimSuffix(f.URL.Host(), ".")
	if l.find(unicodeOf(host)) != "" { // where, is asked only then: it costs an allocation
		if word := l.find(unicodeOf(subdomains(host))); word != "" {
			return one(Credentials, "the word "+word+" in the host"), nil
		}
	}
	for _, part := range ends(pathOf(f.URL)) {
		if word := l.find(part); word != "" {
			return one(Credentials, "the word "+word+" in the path"), nil
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
	domain := registrable(host)
	if domain == "" || domain == host {
		return ""
	}
	return host[:len(host)-len(domain)-1]
}

// unicodeOf returns labels with A-labels read, as many as there are.
func unicodeOf(labels string) string {
	if strings.Contains(labels, "xn--") {
		if read := weburl.Spelled(labels); strings.Count(read, ".") == strings.Count(labels, ".") {
			return read
		}
	}
	return labels
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
