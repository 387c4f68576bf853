package abuse

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/net/publicsuffix"

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

// readBrands reads the brands of this package and those of the file at path, if one is
// named, and returns how many lines that has. A line of the file about a known name
// replaces it; "-name" takes it out.
func readBrands(path string) (b *brands, n int, of stamp, err error) {
	lines := map[string][]string{}
	var order []string
	read := func(line string) error {
		fields := strings.Fields(line)
		name := strings.TrimLeft(fields[0], "~-")
		if !validName(name) {
			return fmt.Errorf("%q is no name of %d to %d letters and digits", name, shortestName, longestName)
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
			return fmt.Errorf("want at most %d names", maxBrands)
		}
		return checkBrand(fields)
	}
	if err := eachLine(strings.NewReader(knownBrands), read); err != nil {
		return nil, 0, of, fmt.Errorf("read the known brands: %w", err)
	}
	if n, of, err = eachLineOf(path, read); err != nil {
		return nil, 0, of, err
	}
	b = &brands{
		loose: map[string]int{}, gaps: map[string][]int{}, own: map[string]int{},
		global: map[string]int{}, chance: map[string]struct{}{}, sizes: lengths{},
	}
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
				return fmt.Errorf("%q is no word of %d to %d letters and digits", word, shortestName, longestName)
			}
			continue
		}
		homes++
		host, wide := strings.CutSuffix(f, ".*")
		if name, err := weburl.ParseHost(host); err != nil || name != host || wide == strings.Contains(host, ".") || isAddress(host) {
			return fmt.Errorf("%q is neither a domain, as example.com, nor a name with .*", f)
		}
		if !wide && registrable(host) == "" {
			return fmt.Errorf("%q belongs to many", f)
		}
	}
	if homes == 0 {
		return fmt.Errorf("%s has no domain of its own", fields[0])
	}
	return nil
}

// add puts a checked line into the maps.
func (b *brands) add(fields []string) {
	name := strings.TrimLeft(fields[0], "~")
	n := len(b.all)
	entry := brand{
		name: name, common: name != fields[0], tight: string(appendTight(nil, name)),
		loose: string(likeness(appendTight(nil, name))), plain: string(likeness(appendShapes(nil, name))),
	}
	for _, f := range fields[1:] {
		switch word, chance := strings.CutPrefix(f, "!"); {
		case chance:
			b.chance[string(likeness(appendTight(nil, word)))] = struct{}{}
			b.chance[string(likeness(appendShapes(nil, word)))] = struct{}{}
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
		for i := 0; entry.nearby() && i < len(key); i++ {
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
	for i, c := range loosen(b) {
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
