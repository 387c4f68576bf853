package kernel_test

import (
	"testing"
	"time"

	"curt/internal/httpapi/kernel"
)

func TestDates(t *testing.T) {
	for text, want := range map[string]string{
		"2027-01-01T00:00Z":                   "2027-01-01T00:00:00Z",
		"2027-01-01T00:00:00Z":                "2027-01-01T00:00:00Z",
		"2027-01-01t00:00:00z":                "2027-01-01T00:00:00Z",
		"2027-01-01T00:00:00.5Z":              "2027-01-01T00:00:00.5Z",
		"2027-01-01T00:00:00.123456789Z":      "2027-01-01T00:00:00.123456789Z",
		"2027-01-01T05:45+05:45":              "2027-01-01T00:00:00Z",
		"2026-12-31T14:00:00.25-10:00":        "2027-01-01T00:00:00.25Z",
		"2028-02-29T23:59:59+00:00":           "2028-02-29T23:59:59Z",
		"2027-01-01T00:00:00-00:00":           "2027-01-01T00:00:00Z",
		"0001-01-01T00:00:00Z":                "0001-01-01T00:00:00Z",
		"9999-12-31T23:59:59.999999999+00:00": "9999-12-31T23:59:59.999999999Z",
	} {
		got, err := kernel.ParseDate(text)
		if err != nil || got.Format(time.RFC3339Nano) != want || got.Location() != time.UTC {
			t.Errorf("%s: got %s, %v; want %s", text, got.Format(time.RFC3339Nano), err, want)
		}
	}
	for _, text := range []string{
		"", "Z", "2027", "2027-01-01", "2027-01-01T00Z", "2027-01-01T00:00", "2027-01-01 00:00Z", "2027-1-1T00:00Z", "2027-01-01T0:00Z",
		"2027-01-01T00:00:0Z", "2027-01-01T00:00:Z", "2027-01-01T00:00:00.Z", "2027-01-01T00:00:00,5Z", "2027-01-01T00:00.5Z",
		"2027-01-01T00:00:60Z", "2027-01-01T24:00Z", "2027-00-01T00:00Z", "2027-02-29T00:00Z", "2027-01-32T00:00Z", "-2027-01-01T00:00Z",
		"+2027-01-01T00:00Z", "2027-01-01T00:00ZZ", "2027-01-01T00:00Z ", " 2027-01-01T00:00Z", "2027-01-01T00:00+01", "2027-01-01T00:00+0100",
		"2027-01-01T00:00+24:00", "2027-01-01T00:00+01:60", "2027-01-01T00:00UTC", "2027-01-01T00:00:00.1234567890Z+00:00",
		"٢٠٢٧-01-01T00:00Z", "2027-01-01T00:00\x00", "1800000000", "Fri, 01 Jan 2027 00:00:00 GMT",
	} {
		if got, err := kernel.ParseDate(text); err == nil {
			t.Errorf("%q was read as %s", text, got)
		}
	}
}

// FuzzDate: what is read is a date that RFC 3339 can write and that reads back as
// the same moment.
func FuzzDate(f *testing.F) {
	f.Add("2027-01-01T00:00Z")
	f.Add("2026-12-31T14:00:00.25-10:00")
	f.Add("2027-01-01T00:00:00.Z")
	f.Fuzz(func(t *testing.T, text string) {
		got, err := kernel.ParseDate(text)
		if err != nil {
			return
		}
		if got.Year() < 0 || got.Year() > 9999 { // an offset may lead out of the years that can be written
			return
		}
		again, err := kernel.ParseDate(got.Format(time.RFC3339Nano))
		if err != nil || !again.Equal(got) {
			t.Errorf("%q is %s, which reads as %s (%v)", text, got, again, err)
		}
	})
}
