package traffic

import (
	"strconv"
	"strings"
)

// The parts that URLs are put together from.
const (
	words = "autumn-sale release-notes getting-started annual-report team-offsite " +
		"product-tour customer-story how-we-measure open-positions weekly-digest " +
		"field-guide size-chart road-map summer-school travel-plan price-list"
	endings = ".com .org .co.uk .de .io .com.br .fr .net"
	sources = "email twitter facebook instagram linkedin whatsapp qr partner"
)

// URLs makes long URLs. It never changes and is safe for many goroutines.
type URLs struct {
	words, endings, sources []string
}

// NewURLs returns the maker of long URLs.
func NewURLs() *URLs {
	return &URLs{
		words:   strings.Fields(words),
		endings: strings.Fields(endings),
		sources: strings.Fields(sources),
	}
}

// Append appends the long URL of an index: 80 to 120 bytes, as most links that
// people shorten carry an article and campaign fields. No two indexes share a
// URL. It is in WHATWG normal form already, so that what is stored has the same
// length.
func (u *URLs) Append(b []byte, index uint64) []byte {
	h := mix(index)
	b = append(b, "https://www."...)
	b = append(b, pick(u.words, h)...)
	b = append(b, pick(u.endings, h>>8)...)
	b = append(b, '/')
	b = strconv.AppendUint(b, 2016+(h>>16)%11, 10)
	b = append(b, '/')
	b = append(b, pick(u.words, h>>24)...)
	b = append(b, '-')
	b = append(b, pick(u.words, h>>32)...)
	b = append(b, '-')
	b = strconv.AppendUint(b, index+1_000_000_000, 36)
	b = append(b, "?utm_source="...)
	b = append(b, pick(u.sources, h>>40)...)
	b = append(b, "&utm_campaign="...)
	return strconv.AppendUint(b, 100_000+(h>>44)%900_000, 10)
}

func pick(from []string, h uint64) string { return from[h%uint64(len(from))] }

// mix spreads an index over 64 bits (the finaliser of SplitMix64).
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
