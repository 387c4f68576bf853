package clicks

import (
	"curt/internal/link"
)

// groupDomain is no host, so that no link is counted under it.
const groupDomain = "*"

// GroupKey returns the key under which the clicks of a group are counted.
func GroupKey(name string) link.Key { return link.Key{Domain: groupDomain, Code: link.Code(name)} }

// IsGroup reports whether a key is that of a group.
func IsGroup(k link.Key) bool { return k.Domain == groupDomain }
