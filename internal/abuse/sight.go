package abuse

import "bytes"

// mostLetters bounds the text in which names stand beside words, in bytes: a label in
// ASCII has at most 63.
const mostLetters = 64

// sight is what a part of a label looks like: a word that lures, or a brand, perhaps
// written together with such words.
type sight struct {
	brand     int  // none = no brand
	lure      lure // what it is, or what is written together with the brand
	disguised bool // the name is not written as it is
	near      bool // a letter of the name is wrong
}

// read looks at a part of a label. In a label that mixes scripts a name is found inside
// of words too: nobody writes so by chance.
func (l *LookAlikes) read(part []byte, mixed bool) sight {
	var tightBytes, looseBytes [2 * mostLetters]byte
	tight := appendTight(tightBytes[:0], part)
	loose := likeness(append(looseBytes[:0], tight...))
	if n, found := l.named(tight, loose); found {
		return sight{brand: n, disguised: string(part) != l.brands.all[n].name}
	}
	if kind := l.lures.words[string(loose)]; kind != noLure {
		return sight{brand: none, lure: kind}
	}
	if core := bytes.Trim(part, "0123456789"); len(core) != len(part) && len(core) > 0 { // paypal24
		if s := l.read(core, mixed); s.brand != none && !s.near {
			s.lure = max(s.lure, weakLure)
			return s
		}
	}
	if s := l.compound(tight, loose); s.brand != none {
		s.disguised = !bytes.Contains(part, []byte(l.brands.all[s.brand].name))
		return s
	}
	n, found := l.brands.near(loose)
	if plain := appendShapes(tightBytes[:0], part); !found && len(plain) != len(loose) { // a pair that is two letters
		loose = likeness(append(looseBytes[:0], plain...))
		if s := l.compound(plain, loose); s.brand != none {
			return s
		}
		n, found = l.brands.near(loose)
	}
	if found {
		return sight{brand: n, near: true}
	}
	if mixed {
		if n, found := l.brands.within(loose); found {
			return sight{brand: n, disguised: true}
		}
	}
	return sight{brand: none}
}

// named returns the brand that a whole text is called like.
func (l *LookAlikes) named(tight, loose []byte) (int, bool) {
	n, found := l.brands.loose[string(loose)]
	if !found {
		return none, false
	}
	b := &l.brands.all[n]
	return n, len(b.name) >= shortBrand || string(tight) == b.tight
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
func (l *LookAlikes) compound(tight, loose []byte) sight {
	n := len(loose)
	if n > mostLetters {
		return sight{brand: none}
	}
	var words, names [mostLetters + 1]step
	words[0] = step{reached: true, brand: none}
	for i := range n {
		if !words[i].reached && !names[i].reached {
			continue
		}
		if words[i].reached {
			l.namesAt(&names, words[i], tight, loose, i)
		}
		if c := tight[i]; '2' <= c && c <= '9' {
			advance(&words, &names, i, i+1, weakLure)
		}
		for _, size := range l.lures.sizes {
			if i+size > n {
				break
			}
			if word := l.lures.words[string(loose[i:i+size])]; word != noLure {
				advance(&words, &names, i, i+size, word)
			}
		}
	}
	if end := names[n]; end.reached {
		return sight{brand: end.brand, lure: end.lure}
	}
	return sight{brand: none}
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
func (l *LookAlikes) namesAt(names *[mostLetters + 1]step, from step, tight, loose []byte, i int) {
	for _, size := range l.brands.sizes {
		if i+size > len(loose) {
			return
		}
		if i > 0 && size <= shortestName {
			continue
		}
		if n, found := l.named(tight[i:i+size], loose[i:i+size]); found {
			names[i+size] = step{reached: true, lure: from.lure, brand: n}
		}
	}
}
