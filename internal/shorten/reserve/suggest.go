package reserve

import (
	"fmt"
	"hash/fnv"
	"strconv"
	"time"

	"curt/internal/link"
)

const (
	// Suggestions is how many aliases are proposed.
	Suggestions = 3
	// candidates is how many are looked up for them: each may be taken.
	candidates = 12
)

// suggest returns aliases like one that may be taken, which the rules allow: the next number, the year, and numbers
// that follow from the alias and the hour, so that they are not the same for ever.
func (a *Aliases) suggest(now time.Time, k link.Key) (keys []link.Key) {
	hash := fnv.New32a()
	_, _ = fmt.Fprintf(hash, "%s %d", k, now.Unix()/3600) // never fails
	random := hash.Sum32()
	endings := []string{"2", "3", strconv.Itoa(now.UTC().Year())}
	for _, space := range []uint32{100, 1000, 10_000, 100_000, 1_000_000} {
		endings = append(endings, strconv.FormatUint(uint64(space/10+random%(space-space/10)), 10))
	}
	seen := map[link.Code]bool{k.Code: true}
	for _, joint := range []string{"-", "", "_"} {
		for _, ending := range endings {
			room := max(0, link.MaxCode-len(joint)-len(ending))
			code := link.Code(string(k.Code[:min(len(k.Code), room)]) + joint + ending)
			if len(keys) == candidates || seen[code] || a.cfg.Rules.CheckAlias(string(code)) != nil {
				continue
			}
			seen[code] = true
			keys = append(keys, link.Key{Domain: k.Domain, Code: code})
		}
	}
	return keys
}
