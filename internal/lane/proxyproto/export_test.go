package proxyproto

// Parse is parse with the client as text.
func Parse(b []byte) (size int, client string, ok bool) {
	n, addr, err := parse(b)
	if addr.IsValid() {
		client = addr.String()
	}
	return n, client, err == nil
}
