package analytics_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"curt/internal/analytics"
)

func TestOnlyNamesOfZonesAreZones(t *testing.T) {
	for _, name := range []string{"UTC", "Europe/Berlin", "Asia/Kolkata", "America/Argentina/Buenos_Aires", "Etc/GMT+5", "America/Port-au-Prince", "GMT0"} {
		zone, err := analytics.ParseZone(name)
		if err != nil || zone.String() != name {
			t.Errorf("%s: %v, %v", name, zone, err)
		}
	}
	for _, name := range []string{
		"", "Local", "localtime", "/etc/localtime", "../../etc/passwd", "Europe/../Europe/Berlin", "Europe//Berlin", "Europe/",
		"/Europe/Berlin", "Europe", "Europe\\Berlin", "Europe/Berlin\x00", "Europe/Berlin ", " UTC", "zone.tab", "right/UTC",
		"posix/Europe/Berlin", "Atlantis/City", "+01:00", "Europe/Ber\u200blin", "\xff", strings.Repeat("A/", 400), strings.Repeat("Z", 65),
	} {
		if zone, err := analytics.ParseZone(name); !errors.Is(err, analytics.ErrZone) {
			t.Errorf("%q is the zone %v, %v", name, zone, err)
		}
	}
}

// Days are where the date on the zone's clocks changes, seen at whole quarter
// hours, with the zones that have the oddest clocks.
func TestDaysFollowTheClocksOfAllZones(t *testing.T) {
	for _, name := range []string{
		"UTC", "Europe/Berlin", "Europe/London", "America/Santiago", "America/Sao_Paulo", "America/Havana", "Asia/Kathmandu",
		"Asia/Kolkata", "Australia/Lord_Howe", "Pacific/Apia", "Pacific/Chatham", "Antarctica/Troll", "Africa/Cairo",
		"Asia/Beirut", "America/Caracas", "Pacific/Kiritimati", "Etc/GMT-14", "Etc/GMT+12", "Africa/Casablanca", "Asia/Gaza",
	} {
		zone, err := analytics.ParseZone(name)
		if err != nil {
			t.Fatal(err)
		}
		at := analytics.Day.Floor(time.Date(2011, 6, 1, 0, 0, 0, 0, time.UTC), zone)
		for end := time.Date(2018, 1, 1, 0, 0, 0, 0, time.UTC); at.Before(end); {
			next := at.Add(15 * time.Minute)
			for next.Day() == at.Day() {
				next = next.Add(15 * time.Minute)
			}
			if got := analytics.Day.Ceil(at.Add(time.Second), zone); !got.Equal(next) {
				t.Fatalf("%s: the day after %v begins at %v, want %v", name, at, got, next)
			}
			if got := analytics.Day.Floor(next.Add(-time.Second), zone); !got.Equal(at) {
				t.Fatalf("%s: %v lies in the day of %v, want %v", name, next.Add(-time.Second), got, at)
			}
			at = next
		}
	}
}

func TestTheShortestDayIsADay(t *testing.T) {
	casey, err := analytics.ParseZone("Antarctica/Casey")
	if err != nil {
		t.Fatal(err)
	}
	eve := analytics.Day.Ceil(time.Date(2009, 10, 17, 0, 0, 0, 0, time.UTC), casey) // of the day that had 21 hours
	if next := analytics.Day.Ceil(eve.Add(time.Hour), casey); next.Sub(eve) != 21*time.Hour {
		t.Errorf("from %v to %v", eve, next)
	}
}

func TestBackCountsStepsByTheClocks(t *testing.T) {
	berlin, err := analytics.ParseZone("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	day := analytics.Day.Ceil(time.Date(2026, 4, 1, 12, 0, 0, 0, time.UTC), berlin)
	if got := analytics.Day.Back(day, 30).Format(time.RFC3339); got != "2026-03-03T00:00:00+01:00" {
		t.Errorf("30 days before %v: %v", day, got)
	}
	nepal, err := analytics.ParseZone("Asia/Kathmandu")
	if err != nil {
		t.Fatal(err)
	}
	hour := analytics.Hour.Ceil(time.Date(2026, 4, 1, 12, 0, 0, 0, time.UTC), nepal)
	if got := analytics.Hour.Back(hour, 48).Format(time.RFC3339); got != "2026-03-30T18:00:00+05:45" {
		t.Errorf("48 hours before %v: %v", hour, got)
	}
}

func FuzzZone(f *testing.F) {
	for _, name := range []string{"UTC", "Europe/Berlin", "Local", "../x", "a/b/c/d", "Etc/GMT+5", ""} {
		f.Add(name, int64(1_790_000_000))
	}
	f.Fuzz(func(t *testing.T, name string, at int64) {
		zone, err := analytics.ParseZone(name)
		if err != nil {
			return
		}
		when := time.Unix(at%4_000_000_000, 0)
		for _, s := range []analytics.Step{analytics.Minute, analytics.Quarter, analytics.Hour, analytics.Day} {
			from, to := s.Floor(when, zone), s.Ceil(when, zone)
			if from.After(when) || to.Before(when) || to.Sub(from) > 50*time.Hour {
				t.Errorf("%s, step %d: %v lies between %v and %v", name, s, when, from, to)
			}
		}
	})
}
