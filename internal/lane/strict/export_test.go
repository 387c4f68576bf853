package strict

// Follow has a follower read pieces, and returns how many bytes are valid, what it found, and
// after a zero where requests ended, as far as pieces show it.
func Follow(pieces []string) (n int, found uint8, ends []int) {
	var f follower
	ends = []int{0}
	for _, p := range pieces {
		was := f.at
		some, v := f.follow([]byte(p))
		if n += some; v != valid {
			return n, uint8(v), ends
		}
		if f.at == beforeRequest && was != beforeRequest && f.size == 0 {
			ends = append(ends, n)
		}
	}
	return n, 0, ends
}
