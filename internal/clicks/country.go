package clicks

// ParseCountry reads the code of a country, ISO 3166-1 alpha-2, in either case; zero for
// anything else, and for XX and ZZ, by which databases and proxies say that it is unknown.
func ParseCountry[T ~string | ~[]byte](s T) (code [2]byte) {
	if len(s) != 2 {
		return code
	}
	for i := range 2 {
		c := s[i] &^ 0x20
		if c < 'A' || c > 'Z' {
			return [2]byte{}
		}
		code[i] = c
	}
	if code == [2]byte{'X', 'X'} || code == [2]byte{'Z', 'Z'} {
		return [2]byte{}
	}
	return code
}
