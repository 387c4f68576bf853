package shorten

import (
	"curt/internal/abuse"
	"curt/internal/link"
)

// Bounds of an alias in characters (design §4).
const (
	minAlias = 3
	maxAlias = link.MaxCode
)

// longestReserved is the length of the longest reserved word: no longer code
// needs a look.
const longestReserved = len("well-known")

// CheckAlias returns an InvalidError for an alias of a wrong shape and
// ErrReserved for a reserved word.
func CheckAlias(alias string) error {
	if len(alias) < minAlias || !link.ValidCode(alias) {
		return invalid("custom_alias", "want %d to %d characters of A-Z a-z 0-9 - _", minAlias, maxAlias)
	}
	if Reserved(alias) {
		return ErrReserved
	}
	return nil
}

// checkAlias is CheckAlias with the words of the operator.
func (r *rules) checkAlias(alias string) error {
	if err := CheckAlias(alias); err != nil {
		return err
	}
	if _, imitates := r.imitated[abuse.Skeleton(alias)]; imitates {
		return ErrReserved
	}
	return r.unwanted(alias)
}

// unwanted returns ErrReserved or ErrRefused when a word of the operator stands against
// an alias or a generated code.
func (r *rules) unwanted(code string) error {
	if r.words == nil {
		return nil
	}
	switch word, found := r.words.Find(code); {
	case !found:
		return nil
	case word.Refused:
		return ErrRefused
	}
	return ErrReserved
}

// Reserved reports whether the code is, in any case, a word that curt keeps for
// its own paths. The list is complete from the first release, because an alias is
// never freed. It does not allocate.
func Reserved[T ~string | ~[]byte](code T) bool {
	if len(code) > longestReserved {
		return false
	}
	var lower [longestReserved]byte
	for i := range len(code) {
		c := code[i]
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		lower[i] = c
	}
	switch string(lower[:len(code)]) {
	case "api", "v1", "v2", "app", "admin", "login", "logout", "signup", "oauth",
		"auth", "callback", "report", "abuse", "appeal", "docs", "help", "about",
		"terms", "privacy", "status", "health", "healthz", "readyz", "metrics",
		"static", "assets", "qr", "pages", "bio", "mcp", "bulk", "links", "urls",
		"shorten", "rest", "preview", "well-known", "robots", "favicon", "sitemap":
		return true
	}
	return false
}

// imitated returns the skeletons of the reserved words by which a visitor believes to
// speak with the service itself. Others may be imitated: they are paths, no promises.
func imitated() map[string]struct{} {
	all := map[string]struct{}{}
	for _, word := range []string{
		"admin", "login", "logout", "signup", "oauth", "auth", "report", "abuse", "appeal", "help", "about", "terms", "privacy", "status",
	} {
		all[abuse.Skeleton(word)] = struct{}{}
	}
	return all
}
