package worker

import "time"

// The controls: what must fail when a step of the protocol is left out.

// CommitLate has blocks inserted before they are committed.
func (c *Config) CommitLate() { c.commitLate = true }

// CountAgain has clicks counted that Kafka has twice.
func (c *Config) CountAgain() { c.countAgain = true }

// Age sets how old a block's first row becomes.
func (c *Config) Age(d time.Duration) { c.age = d }

// DecodeProgress is decodeProgress, whose result is encoded and decoded again.
func DecodeProgress(text string, end int64) error {
	p, err := decodeProgress(text, end)
	if err != nil {
		return err
	}
	again, forgotten := p.encode(end)
	back, err := decodeProgress(again, end)
	if err != nil || forgotten == nil && len(back.before) != len(p.before) || back.first != p.first {
		panic("what was decoded is not what is encoded")
	}
	return nil
}
