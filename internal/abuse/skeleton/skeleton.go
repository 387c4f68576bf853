// Package skeleton compares texts by what they look like: [Of] is the same for texts that
// can be taken for one another.
package skeleton

import (
	"sync/atomic"
	"unicode"
	"unicode/utf8"

	"go.mau.fi/util/confusable"
	"golang.org/x/text/unicode/norm"
)

// Of returns what a text looks like: texts with one skeleton can be taken for one
// another. It is for comparing, in memory; it is no text to show or to store, because
// another release may make another one.
//
// It is the skeleton of UTS 39 (Unicode Security Mechanisms, section 4), with the
// confusables of Unicode as a library has them, and beyond it:
//
//   - case does not matter, and because a capital I looks like a small l, neither does
//     which of i, l and 1 stands there;
//   - marks above, below and through letters are dropped: few readers miss a dot;
//   - two letters that look like one are that one: rn is m, vv is w, cl is d;
//   - letters of other scripts that stand for Latin ones in imitated names, and that
//     Unicode gives another shape, are those: к is k, т is t, м is m (see latin).
//
// What cannot be seen is dropped. The cost is linear in len(text).
func Of(text string) string {
	var stack [128]byte
	return string(Loosen(AppendTight(stack[:0], text)))
}

// seen is how far shapes remembers characters: the alphabets that are taken for Latin
// letters are below. Ideographs are many, and like none.
const seen = 0x3000

// Shapes remembers what characters look like, each when it is first met: to find out takes
// longer than all else that is done with it. It is safe for many goroutines.
type Shapes [seen]atomic.Pointer[string]

// Append is AppendShapes.
func (s *Shapes) Append(b, text []byte) []byte {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			return s.appendUnicode(b[:len(b)-i], text)
		}
		b = append(b, asciiShape(text[i]))
	}
	return b
}

func (s *Shapes) appendUnicode(b, text []byte) []byte {
	for _, r := range string(text) {
		if r >= seen {
			b = appendUnicode(b, string(r))
			continue
		}
		shape := s[r].Load()
		if shape == nil {
			made := string(appendUnicode(nil, string(r)))
			shape = &made
			s[r].Store(shape)
		}
		b = append(b, *shape...)
	}
	return b
}

// AppendTight appends the skeleton in which i is no l yet, so that short names can be
// compared more strictly. It allocates nothing for a text within ASCII while b has room.
func AppendTight[T string | []byte](b []byte, text T) []byte {
	begin := len(b)
	b = AppendShapes(b, text)
	return b[:begin+JoinPairs(b[begin:])]
}

// AppendShapes is AppendTight before pairs of letters are joined.
func AppendShapes[T string | []byte](b []byte, text T) []byte {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			return appendUnicode(b[:len(b)-i], string(text))
		}
		b = append(b, asciiShape(text[i]))
	}
	return b
}

// asciiShape is what Unicode says of ASCII in lower case; what it makes of m, which is
// rn, joinPairs makes m again.
func asciiShape(c byte) byte {
	switch {
	case 'A' <= c && c <= 'Z':
		return c + 'a' - 'A'
	case c == '0':
		return 'o'
	case c == '1', c == '|':
		return 'l'
	}
	return c
}

func appendUnicode(b []byte, text string) []byte {
	for _, r := range norm.NFD.String(text) {
		b = appendShape(b, r, 2) // twice: the small form of a shape may look like something else
	}
	return b
}

// appendShape appends what Unicode says that a character looks like; of one that it says
// nothing about, what it is a form of, as a wide letter is. It does so again with what
// comes out, so many times in all.
func appendShape(b []byte, r rune, times int) []byte {
	if r < utf8.RuneSelf || times == 0 {
		return appendLetter(b, r)
	}
	if shape := confusable.GetReplacement(r); shape != "" {
		for _, s := range norm.NFD.String(shape) {
			b = appendShape(b, unicode.ToLower(s), times-1)
		}
		return b
	}
	var whole [utf8.UTFMax]byte
	parts := norm.NFKD.Properties(whole[:utf8.EncodeRune(whole[:], r)]).Decomposition()
	if parts == nil {
		return appendShape(b, unicode.ToLower(r), times-1)
	}
	for _, part := range string(parts) {
		b = appendShape(b, unicode.ToLower(part), times-1)
	}
	return b
}

// appendLetter appends a small letter, unless nobody sees it.
func appendLetter(b []byte, r rune) []byte {
	switch {
	case r < ' ':
		return b
	case r < utf8.RuneSelf:
		return append(b, asciiShape(byte(r)))
	case unicode.In(r, unicode.Mn, unicode.Me) || !unicode.IsGraphic(r):
		return b
	}
	if c := latin(r); c != 0 {
		return append(b, c)
	}
	return utf8.AppendRune(b, r)
}

// latin returns the letter that a shape stands for in imitated names, 0 for none. These
// are the shapes that UTS 39 keeps apart from the small Latin letters: it compares
// small capitals, Greek and Cyrillic letters with capitals, and hosts have none.
func latin(r rune) byte {
	switch r {
	case 'ᴀ', 'α', 'а':
		return 'a'
	case 'ʙ', 'в', 'β', 'ß', 'ь', 'ъ':
		return 'b'
	case 'ᴄ', 'ϲ':
		return 'c'
	case 'ᴅ', 'δ':
		return 'd'
	case 'ᴇ', 'ɛ', 'ε', 'є', 'ꞓ':
		return 'e'
	case 'ғ', 'ꜰ':
		return 'f'
	case 'ɢ':
		return 'g'
	case 'ʜ', 'н', 'ħ':
		return 'h'
	case 'ɪ', 'ι', 'ı':
		return 'i'
	case 'ᴊ':
		return 'j'
	case 'ᴋ', 'ĸ', 'κ', 'к':
		return 'k'
	case 'ʟ':
		return 'l'
	case 'ᴍ', 'ʍ', 'м':
		return 'm'
	case 'ɴ', 'п', 'ᴨ', 'π', 'η', 'ŋ':
		return 'n'
	case 'ᴏ', 'ө':
		return 'o'
	case 'ᴘ', 'ρ', 'þ':
		return 'p'
	case 'ʀ', 'ᴦ', 'г':
		return 'r'
	case 'ꜱ', 'ʂ':
		return 's'
	case 'ᴛ', 'τ', 'т':
		return 't'
	case 'ᴜ', 'ʋ', 'υ', 'и', 'µ', 'μ':
		return 'u'
	case 'ᴠ', 'ν':
		return 'v'
	case 'ᴡ', 'ω', 'ɯ', 'ш':
		return 'w'
	case 'χ':
		return 'x'
	case 'ʏ', 'γ', 'ү':
		return 'y'
	case 'ᴢ', 'ʐ':
		return 'z'
	}
	return 0
}

// JoinPairs joins letters that look like one, in place, and returns the new length.
func JoinPairs(b []byte) int {
	n := 0
	for i := 0; i < len(b); i++ {
		c := b[i]
		if i+1 < len(b) {
			switch [2]byte{c, b[i+1]} {
			case [2]byte{'r', 'n'}:
				c, i = 'm', i+1
			case [2]byte{'v', 'v'}:
				c, i = 'w', i+1
			case [2]byte{'c', 'l'}:
				c, i = 'd', i+1
			}
		}
		b[n] = c
		n++
	}
	return n
}

// Loosen makes i an l, in place.
func Loosen(b []byte) []byte {
	for i, c := range b {
		if c == 'i' {
			b[i] = 'l'
		}
	}
	return b
}
