package dashboard_test

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"curt/internal/clicks"
	"curt/internal/clicks/rollup"
	"curt/internal/link"
)

// clicked are the clicks of a link, or of many, by the ordinal of their quarter hour.
type clicked map[uint32]uint64

// spread deals n clicks out over the days before today: more of them in the afternoon than
// at night, and at weekends fewer.
func (c clicked) spread(today time.Time, rank int, n uint64) {
	some := int(1 + min(n/clicksOfADay, days-1))
	at := func(i int) time.Time { return today.AddDate(0, 0, -1-(rank+i)%days) }
	for i, part := range deal(n, some, func(i int) uint64 {
		if d := at(i).Weekday(); d == time.Saturday || d == time.Sunday {
			return 5
		}
		return 9 + uint64(i%4)
	}) {
		hours := int(1 + min(part/clicksOfADay, 23))
		for h, part := range deal(part, hours, func(h int) uint64 { return uint64(hours + 3 - h) }) {
			hour := (14 + (h+1)/2*(1-2*(h%2)) + 24) % 24
			c[rollup.BucketAt(rollup.Quarter, at(i).Add(time.Duration(hour)*time.Hour)).Ordinal] += part
		}
	}
}

// deal divides n by weights; the parts, if there are any, add up to n.
func deal(n uint64, parts int, weight func(i int) uint64) []uint64 {
	sum := uint64(0)
	for i := range parts {
		sum += weight(i)
	}
	if parts == 0 {
		return nil
	}
	dealt, rest := make([]uint64, parts), n
	for i := range dealt {
		dealt[i] = n * weight(i) / sum
		rest -= dealt[i]
	}
	for i := range rest { // fewer than there are parts
		dealt[i]++
	}
	return dealt
}

// delta is what Fold would have written of the clicks.
func (c clicked) delta(k link.Key, who *crowd) rollup.LinkDelta {
	d := rollup.LinkDelta{Key: k}
	sums := map[uint32]*rollup.Rollup{}
	for _, q := range slices.Sorted(maps.Keys(c)) {
		if c[q] == 0 {
			continue
		}
		bucket := rollup.Bucket{Granularity: rollup.Quarter, Ordinal: q}
		r := who.rollup(q, c[q])
		d.Buckets = append(d.Buckets, rollup.BucketDelta{Bucket: bucket, Rollup: r})
		d.Total.Add(rollup.Total{Counts: r.Counts, FirstSeen: bucket.Start().UnixMilli(), LastClicked: bucket.Start().UnixMilli()})
		day := rollup.BucketAt(rollup.Day, bucket.Start()).Ordinal
		if sums[day] == nil {
			sums[day] = &rollup.Rollup{}
		}
		sums[day].Add(r)
	}
	for day, sum := range sums {
		d.Buckets = append(d.Buckets, rollup.BucketDelta{Bucket: rollup.Bucket{Granularity: rollup.Day, Ordinal: day}, Rollup: sum})
	}
	return d
}

// crowd is who clicks: what clicks are told apart by, by name, with how many of the clicks
// have it.
type crowd [clicks.NumDimensions][]kind

type kind struct {
	name   string
	weight uint64
}

// newCrowd makes a crowd from everywhere. The first names are the most frequent; among them
// is what a stranger sent.
func newCrowd() *crowd {
	c := &crowd{}
	for d, names := range map[clicks.Dimension][]string{
		clicks.Country:      {"DE", "US", "FR", "GB", "BR", "IN", "JP", "NL", "ES", "NG", "AU", "ZA", "PL", "SG"},
		clicks.City:         {"Berlin", "New York", "Paris", "London", "São Paulo", "Mumbai", "東京", "Amsterdam", "Madrid", "Lagos", "Köln"},
		clicks.ReferrerHost: {clicks.Direct, "news.example", "social.example", "mail.example", "xn--bcher-kva.example", "forum.example"},
		clicks.Device:       {"mobile", "desktop", "bot", "tablet"},
		clicks.Browser:      {"Chrome", "Safari", "Firefox", "Edge", "Samsung Browser"},
		clicks.OS:           {"Android", "iOS", "Windows", "macOS", "Linux"},
		clicks.Language:     {"de", "en", "fr", "pt", "ja", "es"},
		clicks.Trigger:      {clicks.TriggerLink, clicks.TriggerQR},
		clicks.UTMSource:    {"mail", "poster", hostile[:40] + turned},
		clicks.UTMMedium:    {"newsletter", "print"},
		clicks.UTMCampaign:  {"spring", "summer", "a-campaign-with-a-name-that-is-rather-longer-than-anybody-would-like-to-read"},
	} {
		for i, name := range names {
			c[d] = append(c[d], kind{name, uint64(len(names)-i) * uint64(len(names)-i)})
		}
		slices.SortFunc(c[d], func(a, b kind) int { return cmp.Compare(a.name, b.name) })
	}
	return c
}

// hashed spreads numbers evenly, as sketches of visitors want it (SplitMix64).
func hashed(x uint64) uint64 {
	x = (x + 1) * 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// rollup is a quarter hour of n clicks.
func (c *crowd) rollup(quarter uint32, n uint64) *rollup.Rollup {
	people := n - n/16
	r := &rollup.Rollup{Counts: rollup.Counts{Clicks: n, Humans: people}}
	tags := make([]uint64, people)
	for i := range tags { // somebody comes twice within a day
		tags[i] = hashed(uint64(quarter)/96*1_000_003 + uint64(quarter*977+uint32(i)*7)%40_000)
	}
	r.Visitors.Add(tags)
	for d, kinds := range c {
		for i, n := range deal(n, len(kinds), func(i int) uint64 { return kinds[i].weight }) {
			if n > 0 {
				r.Dimensions[d] = append(r.Dimensions[d], rollup.Value{Value: kinds[i].name, Clicks: n, Humans: n - n/16})
			}
		}
	}
	return r
}
