package pipeline

import (
	"time"

	"curt/internal/httpapi/health"
)

// Sending is how the way of clicks to Kafka does.
type Sending struct {
	Sends   bool      // clicks are counted elsewhere
	Reached time.Time // all clicks from before are there; zero = not known since the start
	Failing bool
	Waiting int64 // bytes
	Unknown bool  // other servers do not wait for clicks of this one
	Silent  int   // servers that are waited for
}

// Sending returns how the way of clicks to Kafka does.
func (p *Pipeline) Sending() Sending {
	w := Sending{Silent: len(p.Silent())}
	if p.shipper != nil {
		at := p.shipper.Stats()
		w.Sends, w.Reached, w.Failing, w.Waiting = true, at.Promised, at.Err != nil, p.log.BytesAfter(at.Acked)
		w.Unknown = p.enlister.Healthy() != nil
	}
	return w
}

// LogBytes returns the size of the click log.
func (p *Pipeline) LogBytes() int64 { return p.log.Stats().Bytes }

// Health returns how the way of clicks does.
func (p *Pipeline) Health() health.ClickHealth {
	fresh := p.Freshness()
	h := health.ClickHealth{
		Captured: p.capture.Stats().Clicks, Dropped: p.Ring.Dropped(), Lost: p.log.Stats().LostClicks, Killed: p.taken.Clicks, KilledUnknown: p.taken.Unknown,
		UpdatedAt: health.Moment(fresh.Updated), CompleteUntil: health.Moment(fresh.Complete),
	}
	if p.fold != nil {
		stats := p.fold.Stats()
		h.Counted, h.UnstoredSince = stats.Events, health.Moment(stats.Unstored)
	} else {
		h.Counted = p.shipper.Stats().Events // clicks that are counted elsewhere were sent there
	}
	return h
}
