package abuse

// near returns a brand that differs from a likeness by one letter: another one, one too
// many, one missing, or two neighbours exchanged. The first letter is right: who imitates
// a name keeps it, and words that rhyme differ there. Both have at least nearBrand letters.
//
// Names are found by what is left of them without one letter, so that the time depends on
// the length of the text and not on how many names there are.
func (b *brands) near(text []byte) (int, bool) {
	if len(text) < nearBrand || len(text) > longestName+1 {
		return none, false
	}
	if _, chance := b.chance[string(text)]; chance {
		return none, false
	}
	if n, found := b.oneOff(text, b.gaps[string(text)]); found {
		return n, true
	}
	var stack [longestName + 1]byte
	for i := 1; i < len(text); i++ {
		gap := append(append(stack[:0], text[:i]...), text[i+1:]...)
		if n, found := b.loose[string(gap)]; found {
			if n, found := b.oneOff(text, []int{n}); found {
				return n, true
			}
		}
		if n, found := b.oneOff(text, b.gaps[string(gap)]); found {
			return n, true
		}
	}
	return none, false
}

// oneOff returns the first of these brands that is one letter away from a text.
func (b *brands) oneOff(text []byte, which []int) (int, bool) {
	for _, n := range which {
		entry := &b.all[n]
		if entry.nearby() && (oneEdit(text, entry.loose) || oneEdit(text, entry.plain)) {
			return n, true
		}
	}
	return none, false
}

// nearby reports whether a brand is known with a letter wrong.
func (b *brand) nearby() bool { return !b.common && len(b.name) >= nearBrand }

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
