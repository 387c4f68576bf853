package analytics

import "time"

// Floor returns the start of the step that holds t, by the clocks of a zone.
func (s Step) Floor(t time.Time, zone *time.Location) time.Time {
	at := t.UTC().Truncate(s.unit()).In(zone)
	for !s.begins(at) {
		at = at.Add(-s.unit())
	}
	return at
}

// Ceil returns the first start of a step that is not before t.
func (s Step) Ceil(t time.Time, zone *time.Location) time.Time {
	at := s.Floor(t, zone)
	if at.Before(t) {
		return s.after(at)
	}
	return at
}

// Back returns the start of the step n steps before the one that starts at t.
func (s Step) Back(t time.Time, n int) time.Time {
	if s == Day {
		// Noon is on the day that is meant, whatever clocks did around midnight.
		return s.Floor(time.Date(t.Year(), t.Month(), t.Day()-n, 12, 0, 0, 0, t.Location()), t.Location())
	}
	return s.Floor(t.Add(-time.Duration(n)*s.Width()), t.Location())
}

// Width is the usual length of a step; days and hours at which clocks are changed
// are longer or shorter.
func (s Step) Width() time.Duration {
	switch s {
	case Minute:
		return time.Minute
	case Quarter:
		return quarter
	case Hour:
		return time.Hour
	default:
		return day
	}
}
