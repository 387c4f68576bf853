package codegen

import "curt/internal/link"

// alphabet are the digits of base62 in the order of their bytes, so that codes of
// one length sort as their numbers do.
const alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// Space returns 62^length, the number of codes of a length. It panics unless
// MinLength <= length <= MaxLength.
func Space(length int) uint64 {
	checkLength(length)
	n := uint64(1)
	for range length {
		n *= 62
	}
	return n
}

func checkLength(length int) {
	if length < MinLength || length > MaxLength {
		panic("codegen: code length out of range")
	}
}

// encode62 writes v with exactly length digits, the most significant first. v must
// be below 62^length, and the length SnowflakeLength at most.
func encode62(length int, v uint64) link.Code {
	var b [SnowflakeLength]byte
	for i := length - 1; i >= 0; i-- {
		b[i] = alphabet[v%62]
		v /= 62
	}
	return link.Code(b[:length])
}

// decode62 is the inverse of encode62; ok is false for a text that encode62 never
// makes: another length, another byte.
func decode62[T ~string | ~[]byte](s T) (v uint64, ok bool) {
	if len(s) < MinLength || len(s) > MaxLength {
		return 0, false
	}
	for i := range len(s) {
		var d byte
		switch c := s[i]; {
		case '0' <= c && c <= '9':
			d = c - '0'
		case 'A' <= c && c <= 'Z':
			d = c - 'A' + 10
		case 'a' <= c && c <= 'z':
			d = c - 'a' + 36
		default:
			return 0, false
		}
		v = v*62 + uint64(d)
	}
	return v, true
}
