package lookalike

// MixtureOf is what one label mixes.
func MixtureOf(label string) string { return newScripts().mixture(label) }

// Known is one brand of a list.
type Brand struct {
	Name, Home string
	Common     bool
}

// BrandsOf returns the brands that l knows.
func BrandsOf(l *Signal) []Brand {
	var all []Brand
	for _, b := range l.now.Load().brands.all {
		all = append(all, Brand{b.name, b.home, b.common})
	}
	return all
}
