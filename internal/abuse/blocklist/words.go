package blocklist

import (
	"context"
	"io"
	"log/slog"
	"math/bits"
	"strings"
	"unicode"

	"curt/internal/abuse/listfile"
	"curt/internal/abuse/skeleton"
	"curt/internal/background"
	"curt/internal/link"
)

// WordsConfig says which files of words are read.
type WordsConfig struct {
	Reserved []string           // kept for the operator
	Refused  []string           // that nobody gets; together at most MaxLists
	Log      *slog.Logger       // nil = none
	Yielder  background.Yielder // as Config.Yielder
}

// Words are the aliases that an operator keeps or refuses, in files that are read anew
// when they change, as [Lists] are. A line of such a file is one of
//
//	word    the alias word, in upper or lower case
//	word*   every alias that begins so
//	~word   every alias that reads like it (skeleton.Of), with "-" and "_" in it or without
//
// and what follows a "#" is a comment. A line of words with spaces or of letters that no
// alias has is passed over, but for "~". They are safe for many goroutines.
type Words struct{ set }

// Word is why an alias cannot be had.
type Word struct {
	List    string // the name of the file, without folder and extension
	Refused bool   // else reserved
}

// OpenWords reads the files; its errors are those of Open.
func OpenWords(ctx context.Context, cfg WordsConfig) (*Words, error) {
	w := &Words{newLists(cfg.Log, cfg.Yielder, group{reserves, words, cfg.Reserved}, group{refuses, words, cfg.Refused})}
	return w, w.files.Open(ctx)
}

// ReservedFiles returns the files of reserved words one by one.
func (w *Words) ReservedFiles() []listfile.FileStats { return w.files.FilesOf(reserves.String()) }

// RefusedFiles returns the files of refused words one by one.
func (w *Words) RefusedFiles() []listfile.FileStats { return w.files.FilesOf(refuses.String()) }

// Find returns the word of the first list, reserved ones first, that stands against an
// alias or a generated code. It takes well under a microsecond, and allocates nothing.
func (w *Words) Find(alias string) (Word, bool) {
	if len(alias) > link.MaxCode {
		return Word{}, false
	}
	var room [link.MaxCode]byte
	lower := appendLower(room[:0], alias)
	for _, l := range w.all {
		if e := l.now.Load(); e != nil && e.hasWord(w.seeds, lower) {
			return Word{List: l.name, Refused: l.role == refuses}, true
		}
	}
	return Word{}, false
}

// Refuses reports whether a list of refused words has a word. It takes well under a microsecond, and allocates nothing.
func (w *Words) Refuses(word string) bool {
	if len(word) > link.MaxCode {
		return false
	}
	var room [link.MaxCode]byte
	lower := appendLower(room[:0], word)
	for _, l := range w.all {
		if e := l.now.Load(); e != nil && l.role == refuses && e.hasWord(w.seeds, lower) {
			return true
		}
	}
	return false
}

func (e *listVersion) holds(s *seeds, k kind, text []byte) bool { return e.has(s.digestBytes(k, text)) }

// hasWord asks for an alias in lower case.
func (e *listVersion) hasWord(s *seeds, lower []byte) bool {
	if e.reach[ofWord] != 0 && e.holds(s, ofWord, lower) {
		return true
	}
	for lengths := e.reach[ofPrefix]; lengths != 0; lengths &= lengths - 1 {
		n := bits.TrailingZeros64(lengths)
		if n > len(lower) {
			break
		}
		if e.holds(s, ofPrefix, lower[:n]) {
			return true
		}
	}
	if e.reach[ofAlike] == 0 {
		return false
	}
	var room [2 * link.MaxCode]byte
	return e.holds(s, ofAlike, appendReading(room[:0], lower))
}

// ReservedStats and RefusedStats return the counters of the lists.
func (w *Words) ReservedStats() listfile.Stats { return w.files.StatsOf(reserves.String()) }

// RefusedStats is ReservedStats for refused words.
func (w *Words) RefusedStats() listfile.Stats { return w.files.StatsOf(refuses.String()) }

func appendLower(dst []byte, text string) []byte {
	for i := range len(text) {
		c := text[i]
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		dst = append(dst, c)
	}
	return dst
}

// appendReading appends what a word reads like, whatever "-" and "_" are in it.
func appendReading(dst, word []byte) []byte {
	var room [link.MaxCode]byte
	bare := room[:0]
	for _, c := range word {
		if c != '-' && c != '_' {
			bare = append(bare, c)
		}
	}
	return skeleton.Loosen(skeleton.AppendTight(dst, bare))
}

// words is the syntax of a list of words.
func words(r io.Reader, keep func(*entry) error) (contents, error) {
	var found entry
	return tell(r, func(line []byte) (verdict, error) {
		text, _, _ := strings.Cut(string(line), "#")
		if text = strings.TrimSpace(text); text == "" {
			return nothing, nil
		}
		v := found.word(text)
		if v != meant {
			return v, nil
		}
		return v, keep(&found)
	})
}

// word makes the entry of a line.
func (e *entry) word(text string) verdict {
	if alike, ok := strings.CutPrefix(text, "~"); ok {
		reading := string(appendReading(nil, []byte(alike)))
		if reading == "" || !isPhrase(alike) || strings.ContainsFunc(alike, unicode.IsSpace) {
			return unusable(alike)
		}
		*e = entry{kind: ofAlike, text: reading}
		return meant
	}
	beginning, ok := strings.CutSuffix(text, "*")
	lower := string(appendLower(nil, beginning))
	switch {
	case !link.ValidCode(beginning):
		return unusable(beginning)
	case ok && len(lower) <= maxReach:
		*e = entry{kind: ofPrefix, text: lower, reach: len(lower)}
	default:
		*e = entry{kind: ofWord, text: lower}
	}
	return meant
}

// unusable tells words that no alias has from what is no word at all.
func unusable(text string) verdict {
	if text != "" && isPhrase(text) {
		return passed
	}
	return strange
}

// isPhrase reports whether a text is made of letters, digits and what stands between
// words.
func isPhrase(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool {
		return !unicode.In(r, unicode.L, unicode.M, unicode.N, unicode.Zs) && !strings.ContainsRune("-_'’.,&", r)
	})
}
