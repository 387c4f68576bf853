package coldcopy

import (
	"crypto/sha256"
	"fmt"
	"strings"
)

// SmallPages has a copier read few rows together.
func SmallPages(c *Copier) *Copier {
	c.pages = 10
	return c
}

// Columns are those of a table that is copied.
func Columns(name string) (all []string) {
	for _, t := range tables() {
		if t.name != name {
			continue
		}
		for _, c := range t.columns {
			all = append(all, c.name)
		}
	}
	return all
}

// Names are those of the tables that are copied, in the order in which they are.
func Names() (all []string) {
	for _, t := range tables() {
		all = append(all, t.name)
	}
	return all
}

// Seeded reports whether rows of a table are never deleted.
func Seeded(name string) bool { return (&table{name: name}).seeded() }

// Specimen is the row n of a table, as SQLite has it. Rows with one number have one key, and other
// values in each version.
func Specimen(name string, n, version int) (values []any) {
	for _, t := range tables() {
		if t.name != name {
			continue
		}
		for i, c := range t.columns {
			seed := n
			if i >= t.key {
				seed += 1000 * version
			}
			values = append(values, t.specimen(c, n, seed))
		}
	}
	return values
}

func (t *table) specimen(c column, n, seed int) any {
	switch c.kind {
	case number:
		return int64(seed)
	case flag:
		return int64(seed / 1000 % 2)
	case word:
		if t.name == "keys" && c.name == "workspace" {
			return int64(1) // its number
		}
		return fmt.Sprintf("wört-%d", seed)
	case text:
		return fmt.Sprintf("text \x00\xff{,}\"\\ %d", seed)
	case octets:
		sum := sha256.Sum256([]byte(t.name + c.name + fmt.Sprint(seed)))
		if strings.HasSuffix(c.name, "_hash") && seed%2 == 0 { // of a text that never was
			return []byte{}
		}
		return sum[:]
	case id: // of what it refers to, the row with this number
		sum := sha256.Sum256([]byte(fmt.Sprint(n)))
		return sum[:16]
	case optional:
		if seed%3 == 0 {
			return []byte{}
		}
		sum := sha256.Sum256([]byte(fmt.Sprint(seed)))
		return sum[:16]
	case words:
		return fmt.Sprintf("links:read x:%d", seed)
	}
	return nil
}
