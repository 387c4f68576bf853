package ratelimit

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Per allows n in each period, all at once if need be.
func Per(n int, period time.Duration) Limit { return Limit{Count: n, Period: period, Burst: n} }

// Parse reads a limit as an operator writes it, such as "100/h": a count from 1 to
// 1,000,000,000 in a second, minute, hour or day, all of which may come at once.
func Parse(text string) (Limit, error) {
	const most = 1_000_000_000 // an hour of all that one process can answer
	count, unit, _ := strings.Cut(text, "/")
	periods := map[string]time.Duration{"s": time.Second, "m": time.Minute, "h": time.Hour, "d": 24 * time.Hour}
	n, err := strconv.ParseUint(count, 10, 31)
	if err != nil || n == 0 || n > most || periods[unit] == 0 {
		return Limit{}, fmt.Errorf("%q: expected a count and s, m, h or d, such as 100/h", text)
	}
	return Per(int(n), periods[unit]), nil
}
