package events_test

import (
	"testing"
	"time"
)

// TestClicksArrive lets two servers send clicks through Kafka while nothing goes wrong: all of
// them are in ClickHouse, once, and added up.
func TestClicksArrive(t *testing.T) {
	p := build(t, 1, 2, 1)
	v := p.visit(t.Context(), 4, time.Millisecond)
	within(t, 5*time.Minute, "visits", func() bool { return v.answered.Load() >= 2_000 })
	answered := v.end()
	p.settle(t)
	if counted, _ := p.equal(t); counted != answered {
		t.Errorf("%d visits were answered, %d clicks counted", answered, counted)
	}
}
