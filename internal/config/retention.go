package config

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"
)

// Retention is for how many days, rounded up, clicks are kept one by one in ClickHouse.
type Retention struct {
	Others     uint16
	Workspaces map[string]uint16 // those that have their own
}

// leastRetention is that of a workspace: what clicks are told apart by is added up when a day is
// over, and a quarter of an hour later.
const leastRetention = Days(48 * time.Hour)

// Retentions reads CURT_RAW_RETENTION and CURT_RAW_RETENTION_OF. The error says what would be
// right.
func (c Config) Retentions() (Retention, error) {
	all := Retention{Others: wholeDays(c.RawRetention), Workspaces: map[string]uint16{}}
	for entry := range strings.SplitSeq(c.RawRetentionOf, ",") {
		if entry = strings.TrimSpace(entry); entry == "" {
			continue
		}
		name, text, ok := strings.Cut(entry, "=")
		name = strings.TrimSpace(name)
		var kept Days
		switch err := kept.UnmarshalText([]byte(strings.TrimSpace(text))); {
		case !ok || name == "":
			return all, errors.New("expected WORKSPACE=DURATION, such as acme=90d")
		case err != nil:
			return all, fmt.Errorf("%s: expected a duration such as 30d or 720h", name) // what is there may be a secret
		case kept < leastRetention:
			return all, fmt.Errorf("%s: expected 2d or more, because days are finalized after they end", name)
		case all.Workspaces[name] != 0:
			return all, fmt.Errorf("%s is set twice", name)
		}
		all.Workspaces[name] = wholeDays(kept)
	}
	return all, nil
}

// Least is that of whoever has the least.
func (r Retention) Least() uint16 {
	least := r.Others
	for _, days := range r.Workspaces {
		least = min(least, days)
	}
	return least
}

// Of is that of a workspace; "" = of clicks that are nobody's.
func (r Retention) Of(workspace string) uint16 {
	if days, own := r.Workspaces[workspace]; own {
		return days
	}
	return r.Others
}

func wholeDays(d Days) uint16 {
	const day = Days(24 * time.Hour)
	return uint16(min(max(1, (d+day-1)/day), math.MaxUint16))
}
