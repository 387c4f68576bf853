package lookalike

import (
	"bytes"

	"curt/internal/abuse/skeleton"
)

// mostLetters bounds the text in which names stand beside words, in bytes: a label in
// ASCII has at most 63.
const mostLetters = 64

// match is what a part of a label looks like: a word that lures, or a brand, perhaps
// written together with such words.
type match struct {
	brand     int  // none = no brand
	lure      lure // what it is, or what is written together with the brand
	disguised bool // the name is not written as it is
	near      bool // a letter of the name is wrong
}

// reading is a text and its shapes: what it looks like before pairs of letters are joined.
// Shapes cost most of what a text outside ASCII costs, and are made once.
type reading struct{ text, shapes []byte }

// with is the reading with a part behind it.
func (r reading) with(known *skeleton.Shapes, part []byte) reading {
	return reading{append(r.text, part...), known.Append(r.shapes, part)}
}

// behind is what r has more than it had before.
func (r reading) behind(before reading) reading {
	return reading{r.text[len(before.text):], r.shapes[len(before.shapes):]}
}

// core is a reading without the digits at its ends, each of which is one shape.
func (r reading) core() reading {
	const digits = "0123456789"
	behind := bytes.TrimLeft(r.text, digits)
	text := bytes.TrimRight(behind, digits)
	from := len(r.text) - len(behind)
	return reading{text, r.shapes[from : len(r.shapes)-(len(behind)-len(text))]}
}

// tight appends the skeleton in which i is no l yet.
func (r reading) tight(room []byte) []byte {
	b := append(room, r.shapes...)
	return b[:skeleton.JoinPairs(b)]
}

// read looks at a part of a label.
func (w *matcher) read(r reading) match {
	var tightRoom, looseRoom [2 * mostLetters]byte
	tight := r.tight(tightRoom[:0])
	loose := likeness(append(looseRoom[:0], tight...))
	if n, found := w.named(tight, loose); found {
		return match{brand: n, disguised: string(r.text) != w.brands.all[n].name}
	}
	if kind := w.lures.words[string(loose)]; kind != noLure {
		return match{brand: none, lure: kind}
	}
	if core := r.core(); len(core.text) != len(r.text) && len(core.text) > 0 { // paypal24
		if s := w.read(core); s.brand != none && !s.near {
			s.lure = max(s.lure, weakLure)
			return s
		}
	}
	if s := w.compound(tight, loose); s.brand != none {
		s.disguised = !bytes.Contains(r.text, []byte(w.brands.all[s.brand].name))
		return s
	}
	n, found := w.brands.near(loose, false)
	if !found && len(r.shapes) != len(loose) { // a pair that is two letters
		loose = likeness(append(looseRoom[:0], r.shapes...))
		if s := w.compound(r.shapes, loose); s.brand != none {
			return s
		}
		n, found = w.brands.near(loose, false)
	}
	if found {
		return match{brand: n, near: true}
	}
	return match{brand: none}
}

// inside finds a name within the words of a label that mixes scripts: nobody writes so by
// chance.
func (w *matcher) inside(r reading) match {
	var room [2 * mostLetters]byte
	for _, text := range [][]byte{r.tight(room[:0]), r.shapes} {
		if n, found := w.brands.within(likeness(text)); found {
			return match{brand: n, disguised: true}
		}
	}
	return match{brand: none}
}

// named returns the brand that a whole text is called like.
func (w *matcher) named(tight, loose []byte) (int, bool) {
	n, found := w.brands.loose[string(loose)]
	if !found {
		return none, false
	}
	return n, w.brands.is(n, tight)
}

// is reports whether a tight skeleton whose likeness is that of a name is close enough to it.
func (b *brands) is(n int, tight []byte) bool {
	return len(b.all[n].name) >= shortBrand || string(tight) == b.all[n].tight
}

// step is how a place within a text was reached: over words alone, or over one name.
type step struct {
	reached bool
	lure    lure
	brand   int
}

func (s *step) over(from step, word lure) {
	if word == endLure {
		word = weakLure
	}
	s.reached, s.brand, s.lure = true, from.brand, max(s.lure, from.lure, word)
}

// compound finds a text that is nothing but one name and words that lure, written
// together. Single digits may stand between them. The two texts are of one length. Its
// time is bounded by the length and by how many lengths names and words have.
func (w *matcher) compound(tight, loose []byte) match {
	n := len(loose)
	if n > mostLetters || n <= shortestName { // nothing fits beside a name
		return match{brand: none}
	}
	var words, names [mostLetters + 1]step
	words[0] = step{reached: true, brand: none}
	for i := range n {
		if !words[i].reached && !names[i].reached {
			continue
		}
		if words[i].reached {
			w.namesAt(&names, words[i], tight, loose, i)
		}
		if c := tight[i]; '2' <= c && c <= '9' {
			advance(&words, &names, i, i+1, weakLure)
		}
		for sizes := w.lures.sizes.of(loose[i:]); sizes != 0; {
			size := shortest(&sizes)
			if word := w.lures.words[string(loose[i:i+size])]; word != noLure {
				advance(&words, &names, i, i+size, word)
			}
		}
	}
	if end := names[n]; end.reached {
		return match{brand: end.brand, lure: end.lure}
	}
	return match{brand: none}
}

// advance goes over a word from each way in which a place was reached.
func advance(words, names *[mostLetters + 1]step, from, to int, word lure) {
	if words[from].reached {
		words[to].over(words[from], word)
	}
	if names[from].reached {
		names[to].over(names[from], word)
	}
}

// namesAt goes over each name at a place. One of three letters counts at the beginning
// only: "accounting" is no account of ING.
func (w *matcher) namesAt(names *[mostLetters + 1]step, from step, tight, loose []byte, i int) {
	for sizes := w.brands.sizes.of(loose[i:]); sizes != 0; {
		size := shortest(&sizes)
		if i > 0 && size <= shortestName {
			continue
		}
		if n, found := w.named(tight[i:i+size], loose[i:i+size]); found {
			names[i+size] = step{reached: true, lure: from.lure, brand: n}
		}
	}
}
