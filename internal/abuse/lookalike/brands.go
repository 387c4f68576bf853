package lookalike

import (
	_ "embed"
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"golang.org/x/net/publicsuffix"

	"curt/internal/abuse"
	"curt/internal/abuse/listfile"
	"curt/internal/abuse/skeleton"
	"curt/internal/weburl"
)

//go:embed brands.txt
var knownBrands string

const (
	// maxBrands bounds the names; each takes some 2 KB.
	maxBrands = 5000
	// shortBrand: a name of fewer letters is met strictly, so that i is no l and a digit
	// no letter. Words of four letters that differ by so little are many.
	shortBrand = 6
	// nearBrand: a name of so many letters is known with one of them wrong.
	nearBrand    = 6
	shortestName = 3
	longestName  = 32
)

// brand is a name that is imitated.
type brand struct {
	name   string // letters and digits, as in hosts
	home   string // its first own domain
	tight  string // skeletons of the name
	loose  string
	plain  string // loose, but for pairs of letters that look like one
	common bool   // also a word, or a short name of others
	edited bool   // known with a letter wrong as an alias
}

// brands are names with what finds them in hosts. It is never changed once it is read.
type brands struct {
	all    []brand
	loose  map[string]int      // by skeleton, also of the letters with no pair joined
	gaps   map[string][]int    // by skeleton without one letter
	own    map[string]int      // hosts that are at home, with what is below them
	global map[string]int      // names at home under every country's suffix
	chance map[string]struct{} // skeletons of words near a name
	sizes  lengths             // of the keys of loose
}

func newBrands() *brands {
	return &brands{
		loose: map[string]int{}, gaps: map[string][]int{}, own: map[string]int{},
		global: map[string]int{}, chance: map[string]struct{}{}, sizes: lengths{},
	}
}

// readBrands reads the brands of this package and those of the file at path, if one is
// named, and returns how many lines that has. A line of the file about a known name
// replaces it; "-name" takes it out.
func readBrands(path string) (b *brands, n int, of listfile.Stamp, err error) {
	lines := map[string][]string{}
	var order []string
	read := func(line string) error {
		fields := strings.Fields(line)
		name := strings.TrimLeft(fields[0], "~+-")
		if !validName(name) {
			return fmt.Errorf("invalid name %q: expected %d to %d letters and digits", name, shortestName, longestName)
		}
		if fields[0][0] == '-' {
			delete(lines, name)
			return nil
		}
		if _, known := lines[name]; !known {
			order = append(order, name)
		}
		lines[name] = fields
		if len(lines) > maxBrands {
			return fmt.Errorf("expected at most %d names", maxBrands)
		}
		return checkBrand(fields)
	}
	if err := listfile.EachLine(strings.NewReader(knownBrands), read); err != nil {
		return nil, 0, of, fmt.Errorf("read the known brands: %w", err)
	}
	if n, of, err = listfile.LinesOf(path, read); err != nil {
		return nil, 0, of, err
	}
	b = newBrands()
	for _, name := range order {
		if fields, ok := lines[name]; ok {
			delete(lines, name) // a name that was taken out and came back stands in order twice
			b.add(fields)
		}
	}
	return b, n, of, nil
}

func validName(name string) bool {
	if len(name) < shortestName || len(name) > longestName {
		return false
	}
	return strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789") == ""
}

// checkBrand returns what is wrong with the fields of a line.
func checkBrand(fields []string) error {
	homes := 0
	for _, f := range fields[1:] {
		if word, ok := strings.CutPrefix(f, "!"); ok {
			if !validName(word) {
				return fmt.Errorf("invalid word %q: expected %d to %d letters and digits", word, shortestName, longestName)
			}
			continue
		}
		homes++
		host, wide := strings.CutSuffix(f, ".*")
		if name, err := weburl.ParseHost(host); err != nil || name != host || wide == strings.Contains(host, ".") || abuse.IsAddress(host) {
			return fmt.Errorf("%q is neither a domain, as example.com, nor a name with .*", f)
		}
		if !wide && abuse.Registrable(host) == "" {
			return fmt.Errorf("%q is a public suffix", f)
		}
	}
	if homes == 0 {
		return fmt.Errorf("%s has no domain", fields[0])
	}
	return nil
}

// add puts a checked line into the maps.
func (b *brands) add(fields []string) {
	name := strings.TrimLeft(fields[0], "~+")
	n := len(b.all)
	entry := brand{
		name: name, common: fields[0][0] == '~', edited: len(name) >= nearBrand && !strings.HasPrefix(fields[0], "~"+name), tight: string(skeleton.AppendTight(nil, name)),
		loose: string(likeness(skeleton.AppendTight(nil, name))), plain: string(likeness(skeleton.AppendShapes(nil, name))),
	}
	for _, f := range fields[1:] {
		switch word, chance := strings.CutPrefix(f, "!"); {
		case chance:
			b.chance[string(likeness(skeleton.AppendTight(nil, word)))] = struct{}{}
			b.chance[string(likeness(skeleton.AppendShapes(nil, word)))] = struct{}{}
			continue
		case strings.HasSuffix(f, ".*"):
			b.global[strings.TrimSuffix(f, ".*")] = n
		default:
			if _, taken := b.own[f]; !taken {
				b.own[f] = n
			}
		}
		if entry.home == "" {
			entry.home = f
		}
	}
	b.all = append(b.all, entry)
	for _, key := range []string{entry.loose, entry.plain} {
		if _, taken := b.loose[key]; !taken {
			b.loose[key] = n
			b.sizes.add(key)
		}
		for i := 0; entry.edited && i < len(key); i++ {
			gap := key[:i] + key[i+1:]
			if known := b.gaps[gap]; !slices.Contains(known, n) {
				b.gaps[gap] = append(known, n)
			}
		}
	}
}

// atHome reports whether a host with this registrable domain belongs to a brand. What
// strangers may register below a brand's domain, by the public suffix list, does not.
func (b *brands) atHome(host, domain string) bool {
	for name := host; len(name) >= len(domain); _, name, _ = strings.Cut(name, ".") {
		if _, own := b.own[name]; own {
			return true
		}
	}
	name, suffix, _ := strings.Cut(domain, ".")
	if _, global := b.global[name]; !global || len(suffix) < 2 {
		return false
	}
	country := suffix[strings.LastIndexByte(suffix, '.')+1:]
	_, official := publicsuffix.PublicSuffix(domain)
	return official && len(country) == 2
}

// spelled returns the brand one of whose own domains stands in labels as labels, as
// paypal.com does in paypal.com.evil; none if there is none.
func (b *brands) spelled(labels string) (int, string) {
	for rest, more := labels, true; more; _, rest, more = strings.Cut(rest, ".") {
		end := 0
		for range 3 { // no domain in use has more labels
			next := strings.IndexByte(rest[end:], '.')
			if next < 0 {
				next = len(rest) - end
			}
			end += next
			if n, own := b.own[rest[:end]]; own {
				return n, rest[:end]
			}
			if end++; end >= len(rest) {
				break
			}
		}
	}
	return none, ""
}

// likeness makes a tight skeleton one that names are found by, in place: i is l, and a
// digit is the letter that it stands for in disguises.
func likeness(b []byte) []byte {
	for i, c := range skeleton.Loosen(b) {
		switch c {
		case '3':
			b[i] = 'e'
		case '4':
			b[i] = 'a'
		case '5':
			b[i] = 's'
		case '7':
			b[i] = 't'
		case '8':
			b[i] = 'b'
		case '9':
			b[i] = 'g'
		}
	}
	return b
}

// near returns a brand, for aliases also one that is a word, that differs from a likeness by one letter: another one, one too
// many, one missing, or two neighbours exchanged. The first letter is right: who imitates
// a name keeps it, and words that rhyme differ there. Both have at least nearBrand letters.
//
// Names are found by what is left of them without one letter, so that the time depends on
// the length of the text and not on how many names there are.
func (b *brands) near(text []byte, alias bool) (int, bool) {
	if len(text) < nearBrand || len(text) > longestName+1 {
		return none, false
	}
	if _, chance := b.chance[string(text)]; chance {
		return none, false
	}
	if n, found := b.oneOff(text, b.gaps[string(text)], alias); found {
		return n, true
	}
	var stack [longestName + 1]byte
	for i := 1; i < len(text); i++ {
		gap := append(append(stack[:0], text[:i]...), text[i+1:]...)
		if n, found := b.loose[string(gap)]; found {
			if n, found := b.oneOff(text, []int{n}, alias); found {
				return n, true
			}
		}
		if n, found := b.oneOff(text, b.gaps[string(gap)], alias); found {
			return n, true
		}
	}
	return none, false
}

// oneOff returns the first of these brands that is one letter away from a text.
func (b *brands) oneOff(text []byte, which []int, alias bool) (int, bool) {
	for _, n := range which {
		entry := &b.all[n]
		if entry.edited && (alias || !entry.common) && (oneEdit(text, entry.loose) || oneEdit(text, entry.plain)) {
			return n, true
		}
	}
	return none, false
}

// oneEdit reports whether two texts with the same first byte differ by one edit.
func oneEdit(a []byte, b string) bool {
	if a[0] != b[0] || len(a)-len(b) > 1 || len(b)-len(a) > 1 {
		return false
	}
	i := 0
	for i < len(a) && i < len(b) && a[i] == b[i] {
		i++
	}
	if i == len(a) && i == len(b) {
		return false // the same
	}
	switch rest, other := a[i:], b[i:]; {
	case len(a) > len(b):
		return string(rest[1:]) == other
	case len(a) < len(b):
		return string(rest) == other[1:]
	case string(rest[1:]) == other[1:]:
		return true
	default:
		return len(rest) > 1 && rest[0] == other[1] && rest[1] == other[0] && string(rest[2:]) == other[2:]
	}
}

// within returns a brand of five letters or more whose likeness stands in a text.
func (b *brands) within(text []byte) (int, bool) {
	for i := range text {
		for sizes := b.sizes.of(text[i:]); sizes != 0; {
			size := shortest(&sizes)
			if n, found := b.loose[string(text[i:i+size])]; found && size >= nearBrand-1 {
				return n, true
			}
		}
	}
	return none, false
}

//go:embed lures.txt
var knownLures string

// lure is how much a word beside a brand's name says of an imitation.
type lure uint8

const (
	noLure lure = iota
	weakLure
	strongLure
	endLure // strong apart, weak within a word
)

// lures are such words by their likeness.
type lures struct {
	words map[string]lure
	sizes lengths
}

// readLures reads the words of this package.
func readLures() (*lures, error) {
	l := &lures{words: map[string]lure{}, sizes: lengths{}}
	err := listfile.EachLine(strings.NewReader(knownLures), func(line string) error {
		group, words, _ := strings.Cut(line, ":")
		kind, known := map[string]lure{"weak": weakLure, "strong": strongLure, "ends": endLure}[group]
		if !known {
			return fmt.Errorf("unknown group of words %q", group)
		}
		for word := range strings.FieldsSeq(words) {
			for _, key := range [][]byte{likeness(skeleton.AppendTight(nil, word)), likeness(skeleton.AppendShapes(nil, word))} {
				l.words[string(key)] = max(kind, l.words[string(key)])
				l.sizes.add(string(key))
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the words used with brands: %w", err)
	}
	return l, nil
}

// lengths says, by the first two bytes of keys, how long keys are that begin so: a bit for
// each length. With it a text is searched for keys at every place without asking for every
// length there is. A key has 2 to 63 bytes; others are never found.
type lengths map[[2]byte]uint64

func (l lengths) add(key string) {
	if 2 <= len(key) && len(key) < 64 {
		l[[2]byte{key[0], key[1]}] |= 1 << len(key)
	}
}

// of returns the lengths of keys that may stand at the beginning of a text, as bits.
func (l lengths) of(text []byte) uint64 {
	if len(text) < 2 {
		return 0
	}
	found := l[[2]byte{text[0], text[1]}]
	if len(text) < 63 {
		found &= 1<<(len(text)+1) - 1
	}
	return found
}

// shortest takes the shortest length out, and returns it.
func shortest(of *uint64) int {
	n := bits.TrailingZeros64(*of)
	*of &= *of - 1
	return n
}
