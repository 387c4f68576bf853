package lookalike

import (
	"fmt"
	"slices"

	"curt/internal/abuse/skeleton"
)

// Names are names that no alias may look like. They never change. Unlike brands, the names
// themselves are refused too.
type Names struct{ b *brands }

// NewNames returns names as [ParseName] returns them.
func NewNames(names []string) *Names {
	n := &Names{newBrands()}
	for _, name := range names {
		n.b.add([]string{name})
	}
	return n
}

// Imitated returns the name that an alias in lower case, without "-" and "_", looks like.
func (n *Names) Imitated(bare []byte) (string, bool) {
	if i := n.b.ofAlias(bare); i != none {
		return n.b.all[i].name, true
	}
	return "", false
}

// ParseName returns an error for what is no protected name: three to 32 lower-case letters and
// digits. "~" in front excludes aliases with one letter wrong.
func ParseName(name string) error {
	if len(name) > 0 && name[0] == '~' {
		name = name[1:]
	}
	if !validName(name) {
		return fmt.Errorf("expected %d to %d letters and digits", shortestName, longestName)
	}
	return nil
}

// Names returns the names of the brands in use, in order of the list.
func (l *Signal) Names() []string {
	all := l.now.Load().brands.all
	names := make([]string, len(all))
	for i := range all {
		names[i] = all[i].name
	}
	return names
}

// OneEdit reports whether aliases with one letter of a brand's name wrong look like it.
func (l *Signal) OneEdit(name string) bool {
	return slices.ContainsFunc(l.now.Load().brands.all, func(b brand) bool { return b.name == name && b.edited })
}

// Imitated returns the brand that an alias in lower case, without "-" and "_", looks like and is
// not: paypa1, googel. The name itself is no imitation: people shorten the addresses of their own
// pages at a brand's site under its name. It allocates nothing.
func (l *Signal) Imitated(bare []byte) (string, bool) {
	b := l.now.Load().brands
	if i := b.ofAlias(bare); i != none && string(bare) != b.all[i].name {
		return b.all[i].name, true
	}
	return "", false
}

// ofAlias returns the brand that a whole alias looks like, exactly or, for names of nearBrand
// letters or more, with one edit; none if there is none.
func (b *brands) ofAlias(bare []byte) int {
	if len(bare) < shortestName || len(bare) > mostLetters {
		return none
	}
	var shapesRoom, tightRoom, looseRoom [mostLetters]byte
	shapes := skeleton.AppendShapes(shapesRoom[:0], bare)
	tight := append(tightRoom[:0], shapes...)
	tight = tight[:skeleton.JoinPairs(tight)]
	loose := likeness(append(looseRoom[:0], tight...))
	if n, found := b.loose[string(loose)]; found && b.is(n, tight) {
		return n
	}
	if n, found := b.near(loose, true); found {
		return n
	}
	if len(shapes) != len(loose) { // a pair that is two letters
		if n, found := b.near(likeness(shapes), true); found {
			return n
		}
	}
	return none
}
