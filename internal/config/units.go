package config

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Size is a number of bytes, written as 512MiB, 10GiB or plain bytes.
type Size int64

// UnmarshalText reads a size.
func (s *Size) UnmarshalText(text []byte) error {
	number, factor := string(text), int64(1)
	for suffix, f := range map[string]int64{"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40} {
		if n, ok := strings.CutSuffix(number, suffix); ok {
			number, factor = n, f
			break
		}
	}
	n, err := strconv.ParseInt(strings.TrimSpace(number), 10, 64)
	if err != nil || n < 0 || n > (1<<62)/factor {
		return fmt.Errorf("%q is not a size: expected bytes, or a number with KiB, MiB, GiB or TiB", text)
	}
	*s = Size(n * factor)
	return nil
}

// String returns the size with the largest unit that divides it.
func (s Size) String() string {
	for _, u := range []struct {
		name string
		size Size
	}{{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}} {
		if s >= u.size && s%u.size == 0 {
			return strconv.FormatInt(int64(s/u.size), 10) + u.name
		}
	}
	return strconv.FormatInt(int64(s), 10)
}

// Days is a duration that may also be written in days, as 30d.
type Days time.Duration

// UnmarshalText reads a duration.
func (d *Days) UnmarshalText(text []byte) error {
	if n, ok := strings.CutSuffix(string(text), "d"); ok {
		days, err := strconv.ParseUint(n, 10, 16)
		if err != nil || days > 36500 {
			return fmt.Errorf("%q is not a number of days, such as 30d", text)
		}
		*d = Days(time.Duration(days) * 24 * time.Hour)
		return nil
	}
	v, err := time.ParseDuration(string(text))
	if err != nil || v < 0 {
		return fmt.Errorf("%q is not a duration, such as 30d or 720h", text)
	}
	*d = Days(v)
	return nil
}

// String returns whole days as 30d and everything else as time.Duration does.
func (d Days) String() string {
	if day := Days(24 * time.Hour); d >= day && d%day == 0 {
		return strconv.FormatInt(int64(d/day), 10) + "d"
	}
	return time.Duration(d).String()
}

// AliasCharacters returns the characters of AliasAlphabet, its ranges written out: all that codes may
// have for the default, "" where it is invalid.
func (c Config) AliasCharacters() string {
	var all []byte
	for text := c.AliasAlphabet; text != ""; {
		first, last, n := text[0], text[0], 1
		if len(text) > 2 && text[1] == '-' {
			last, n = text[2], 3
		}
		if !sameKind(first, last) {
			return ""
		}
		for ch := int(first); ch <= int(last); ch++ {
			all = append(all, byte(ch))
		}
		text = text[n:]
	}
	return string(all)
}

// sameKind reports whether two characters bound a range of digits, of capitals or of small letters,
// or are one character that a code may have.
func sameKind(first, last byte) bool {
	for _, kind := range []string{"09", "AZ", "az", "__", "--"} {
		if kind[0] <= first && first <= last && last <= kind[1] {
			return true
		}
	}
	return false
}
