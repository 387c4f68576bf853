package redis

import (
	"testing"
	"time"
)

func TestBreaker(t *testing.T) {
	at := func(ms int) time.Time { return time.Unix(1, 0).Add(time.Duration(ms) * time.Millisecond) }
	for _, c := range []struct {
		name   string
		calls  []int // when they failed, in milliseconds; -1 = answered
		opened bool
	}{
		{"many of one moment", []int{5, 5, 5, 5, 5, 5, 5, 6, 6, 6}, false},
		{"some over a while", []int{5, 10, 15, 20, 30}, true},
		{"few", []int{5, 10, 20, 40}, false},
		{"an answer between them", []int{5, 10, 15, 20, -1, 30}, false},
		{"an answer before them", []int{-1, 5, 10, 15, 20, 30}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBreaker()
			for _, ms := range c.calls {
				if ms < 0 {
					b.answered()
				} else {
					b.failed(at(ms))
				}
			}
			if b.open() != c.opened || len(b.opened) == 1 != c.opened {
				t.Errorf("open: %t, told: %d", b.open(), len(b.opened))
			}
			if b.answered(); b.open() != c.opened {
				t.Error("a call that was under way closed it")
			}
			if b.shut(); b.open() {
				t.Error("shut, and open")
			}
			if b.failed(at(100)); b.open() {
				t.Error("one failure opened what was shut")
			}
		})
	}
}
