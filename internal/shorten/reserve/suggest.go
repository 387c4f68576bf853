package reserve

import (
	"fmt"
	"hash/fnv"
	"iter"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"curt/internal/link"
	"curt/internal/shorten"
)

const (
	// Suggestions is how many aliases are proposed.
	Suggestions = 3
	// candidates is how many are looked up for them at first: each may be taken.
	candidates = 12
	// mostPages bounds the pages of link.MaxPage further ones that are looked up where fewer than Suggestions were free.
	mostPages = 4
	// mostTries bounds the aliases that are made for them: the words of the operator may refuse most.
	mostTries = 20_000
)

// suggest returns aliases like base, in place of one that cannot be had, which the rules allow, the better ones first: the next number, the year and
// numbers that follow from the alias and the hour, so that they are not the same for ever; letters where numbers are not
// allowed; and others of the policy, all of them where there are few.
func (a *Aliases) suggest(now time.Time, k link.Key, base string) iter.Seq[link.Key] {
	hash := fnv.New64a()
	_, _ = fmt.Fprintf(hash, "%s %d", k, now.Unix()/3600) // never fails
	m := maker{
		policy: a.cfg.Rules.AliasPolicy(), year: strconv.Itoa(now.UTC().Year()),
		random: rand.New(rand.NewPCG(hash.Sum64(), 0)),
	}
	return func(yield func(link.Key) bool) {
		seen, tries := map[string]bool{string(k.Code): true}, 0
		offer := func(alias string) bool {
			if tries++; !seen[alias] && a.cfg.Rules.CheckAlias(alias) == nil {
				seen[alias] = true
				if !yield(link.Key{Domain: k.Domain, Code: link.Code(alias)}) {
					return false
				}
			}
			return tries < mostTries
		}
		_ = m.extend(m.allowed(base), offer) && m.extend(m.allowed("link"), offer) && m.walk(offer)
	}
}

// maker makes aliases of a policy.
type maker struct {
	policy shorten.AliasPolicy
	year   string
	random *rand.Rand
}

// allowed returns the characters of an alias that the policy allows, and no more than it does.
func (m *maker) allowed(alias string) string {
	alias = strings.Map(func(r rune) rune {
		if !strings.ContainsRune(m.policy.Alphabet, r) {
			return -1
		}
		return r
	}, alias)
	return alias[:min(len(alias), m.policy.Max)]
}

// extend offers a base with endings, cut where it is too long.
func (m *maker) extend(base string, offer func(string) bool) bool {
	if base == "" {
		return true
	}
	endings := []string{"2", "3", m.year}
	for _, space := range []int{100, 1000, 10_000, 100_000, 1_000_000} {
		endings = append(endings, strconv.Itoa(space/10+m.random.IntN(space-space/10)))
	}
	letters := m.alphabets()[0]
	for _, n := range []int{1, 2, 3, m.policy.Min - len(base)} {
		endings = append(endings, m.text(letters, max(n, 1)))
	}
	for _, joint := range []string{"-", "", "_"} {
		for _, ending := range endings {
			room := m.policy.Max - len(joint) - len(ending)
			if room > 0 && !offer(base[:min(len(base), room)]+joint+ending) {
				return false
			}
		}
	}
	return true
}

// walk offers aliases of each length, those that are easy to type first: all where there are few, else some.
func (m *maker) walk(offer func(string) bool) bool {
	const easy, some = 8, mostPages * link.MaxPage
	start := min(max(easy, m.policy.Min), m.policy.Max)
	for _, letters := range m.alphabets() {
		for i := range m.policy.Max - m.policy.Min + 1 {
			length := start + i
			if length > m.policy.Max { // then the shorter ones
				length = m.policy.Max - i
			}
			space := 1
			for range length {
				space = min(space*len(letters), some)
			}
			first := m.random.IntN(space)
			for n := range space {
				alias := m.text(letters, length)
				if space < some {
					alias = numbered(letters, length, (first+n)%space)
				}
				if !offer(alias) {
					return false
				}
			}
		}
	}
	return true
}

// alphabets returns the small letters of the policy, and then all of its characters.
func (m *maker) alphabets() []string {
	small := strings.Map(func(r rune) rune {
		if r < 'a' || r > 'z' {
			return -1
		}
		return r
	}, m.policy.Alphabet)
	if small == "" {
		return []string{m.policy.Alphabet}
	}
	return []string{small, m.policy.Alphabet}
}

// text returns n random characters.
func (m *maker) text(alphabet string, n int) string {
	text := make([]byte, n)
	for i := range text {
		text[i] = alphabet[m.random.IntN(len(alphabet))]
	}
	return string(text)
}

// numbered returns the alias of a length with a number, from 0.
func numbered(alphabet string, length, number int) string {
	text := make([]byte, length)
	for i := range text {
		text[i] = alphabet[number%len(alphabet)]
		number /= len(alphabet)
	}
	return string(text)
}
