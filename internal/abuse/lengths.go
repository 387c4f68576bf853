package abuse

import "math/bits"

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
