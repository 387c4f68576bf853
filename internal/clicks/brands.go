package clicks

import "bytes"

// brands are words of people's devices and browsers that the bot list takes for a
// bot's, because it looks for "bot" and "silk" anywhere: the phones of CUBOT, and
// the browser of Amazon's tablets.
func brands() []string { return []string{"cubot", "silk"} }

// maskBrands overwrites brands where they stand as words of their own, in any
// case, so that the rest of the user agent decides. It changes text.
func maskBrands(text []byte) []byte {
	lower := bytes.ToLower(text)
	if len(lower) != len(text) {
		return text // letters beyond ASCII; no browser sends them
	}
	for _, brand := range brands() {
		for at := 0; ; {
			i := bytes.Index(lower[at:], []byte(brand))
			if i < 0 {
				break
			}
			begin, end := at+i, at+i+len(brand)
			if !letterAt(lower, begin-1) && !letterAt(lower, end) {
				for j := begin; j < end; j++ {
					text[j] = '-'
				}
			}
			at = end
		}
	}
	return text
}

func letterAt(lower []byte, i int) bool {
	return i >= 0 && i < len(lower) && 'a' <= lower[i] && lower[i] <= 'z'
}
