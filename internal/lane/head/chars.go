package head

import "encoding/binary"

// Classes of bytes. A head is mostly values, so their check reads eight bytes at a
// time; names are short and read byte by byte.

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// mayHaveControl reports whether one of the eight bytes may be a control byte. It has no
// false negatives; a byte above 0x80 next to a control byte may be a false positive.
func mayHaveControl(x uint64) bool {
	low := (x - ones*0x20) & ^x & highs // a byte < 0x20
	del := x ^ ones*0x7f
	return low|(del-ones)&^del&highs != 0 // or one = 0x7f
}

// HasControl reports whether b has a byte of 0x00–0x1F or 0x7F.
func HasControl(b []byte) bool { return control(b, false) }

// HasControlExceptTab is HasControl for field values.
func HasControlExceptTab(b []byte) bool { return control(b, true) }

func control(b []byte, tab bool) bool {
	for len(b) >= 8 {
		if mayHaveControl(binary.LittleEndian.Uint64(b)) && controlIn(b[:8], tab) {
			return true
		}
		b = b[8:]
	}
	return controlIn(b, tab)
}

func controlIn(b []byte, tab bool) bool {
	for _, c := range b {
		if (c < 0x20 || c == 0x7f) && (c != '\t' || !tab) {
			return true
		}
	}
	return false
}

// visible reports whether b has bytes of 0x21–0x7E only.
func visible(b []byte) bool {
	for _, c := range b {
		if c <= 0x20 || c >= 0x7f {
			return false
		}
	}
	return true
}

// Bits of a set of the bytes below 0x80: one word for each half.
const (
	tokenLow = 1<<'!' | 1<<'#' | 1<<'$' | 1<<'%' | 1<<'&' | 1<<'\'' | 1<<'*' | 1<<'+' | 1<<'-' | 1<<'.' |
		0x3ff<<'0'
	tokenHigh = 0x3ffffff<<('A'-64) | 0x3ffffff<<('a'-64) | 1<<('^'-64) | 1<<('_'-64) | 1<<('`'-64) | 1<<('|'-64) | 1<<('~'-64)

	// The bytes that net/http accepts in a Host: RFC 3986's reg-name and IP literals, and a port.
	hostLow = 1<<'!' | 1<<'$' | 1<<'%' | 1<<'&' | 1<<'(' | 1<<')' | 1<<'*' | 1<<'+' | 1<<',' | 1<<'-' | 1<<'.' |
		1<<':' | 1<<';' | 1<<'=' | 1<<'\'' | 0x3ff<<'0'
	hostHigh = 0x3ffffff<<('A'-64) | 0x3ffffff<<('a'-64) | 1<<('['-64) | 1<<(']'-64) | 1<<('_'-64) | 1<<('~'-64)
)

// inSet reports whether c is in the set.
func inSet(c byte, low, high uint64) bool {
	return c < 64 && low>>c&1 != 0 || c >= 64 && c < 128 && high>>(c-64)&1 != 0
}

// tokenEnd returns the index of the first byte that is not a tchar (RFC 9110, 5.6.2).
func tokenEnd(b []byte) int {
	for i, c := range b {
		if c|0x20-'a' < 26 || c == '-' { // nearly all bytes of nearly all names
			continue
		}
		if !inSet(c, tokenLow, tokenHigh) {
			return i
		}
	}
	return len(b)
}

func hostBytes(b []byte) bool {
	for _, c := range b {
		if !inSet(c, hostLow, hostHigh) {
			return false
		}
	}
	return true
}

// EqualName compares a token with a field name in lower case, of letters and hyphens. CR would
// pass for a hyphen, but a token has none.
func EqualName(b []byte, name string) bool {
	if len(b) != len(name) {
		return false
	}
	for i := range len(name) {
		if b[i]|0x20 != name[i] {
			return false
		}
	}
	return true
}

func isNumber(b []byte) bool {
	for _, c := range b {
		if c < '0' || c > '9' {
			return false
		}
	}
	return len(b) > 0
}

// Trim removes optional white space (RFC 9110, 5.6.3) from both ends.
func Trim(b []byte) []byte {
	for len(b) > 0 && (b[0] == ' ' || b[0] == '\t') {
		b = b[1:]
	}
	for len(b) > 0 && (b[len(b)-1] == ' ' || b[len(b)-1] == '\t') {
		b = b[:len(b)-1]
	}
	return b
}
