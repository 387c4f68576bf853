package cli

import (
	"fmt"
	"time"

	"curt/internal/config"
)

// ParseTime reads the date of a flag: RFC 3339, or a day in UTC.
func ParseTime(text string) (time.Time, error) {
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04Z07:00", time.DateOnly} {
		if at, err := time.Parse(layout, text); err == nil {
			return at, nil
		}
	}
	return time.Time{}, fmt.Errorf("%q is not a date; expected 2026-01-31 or 2026-01-31T12:00:00Z", text)
}

// Seconds reads a lifetime, which the API takes in whole seconds.
func Seconds(flag string, lifetime config.Days) (int64, error) {
	d := time.Duration(lifetime)
	if d%time.Second != 0 || d <= 0 {
		return 0, UsageError(fmt.Sprintf("%s %s: expected whole seconds, 1s or more", flag, d))
	}
	return int64(d / time.Second), nil
}

// Between is a range of time, embedded in the commands about clicks.
type Between struct {
	From string `help:"From this date on: 2026-01-31 (UTC) or 2026-01-31T12:00:00Z."`
	To   string `help:"Before this date."`
}

// Times returns the bounds; a zero time is unset.
func (b Between) Times() (from, to time.Time, err error) {
	for _, f := range []struct {
		flag, text string
		at         *time.Time
	}{{"--from", b.From, &from}, {"--to", b.To, &to}} {
		if f.text == "" {
			continue
		}
		if *f.at, err = ParseTime(f.text); err != nil {
			return from, to, UsageError(fmt.Sprintf("%s: %v", f.flag, err))
		}
	}
	return from, to, nil
}
