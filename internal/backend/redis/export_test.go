package redis

import (
	"time"

	"curt/internal/cache"
)

// TheirClock has a Limiter count by the time that its callers name, as the suite does.
func (l *Limiter) TheirClock() *Limiter {
	l.theirClock, l.slack = true, time.Hour
	return l
}

// Encode writes an entry.
func Encode(e cache.Entry) ([]byte, error) { return encode(e) }

// Decode reads an entry.
func Decode(b []byte) (cache.Entry, bool) { return decode(b) }

// Patient has every call wait long enough for a machine that does other things, too.
func (c *Client) Patient() *Client {
	c.limits = limits{get: time.Minute, spend: time.Minute, put: time.Minute, publish: time.Minute}
	c.gets = newDeadlines(c.limits.get, c.heard.handOut)
	return c
}

// Watchful has Run try ten times a second whether a right is still missing.
func (c *Client) Watchful() *Client {
	c.rights.every = 100 * time.Millisecond
	return c
}
