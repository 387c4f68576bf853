package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"curt/internal/analytics"
	"curt/internal/backend/clickhouse"
	"curt/internal/clicks"
	"curt/internal/link"
)

const quarters = 365 * 96

// variety is how many values each dimension has.
func variety() [clicks.NumDimensions]int {
	return [...]int{60, 2000, 300, 300, 4, 8, 6, 30, 2, 0, 0, 0, 0, 0}
}

// fillings write what a year of even clicks adds up to: each clicks in a quarter hour, of a
// third as many visitors, who do not come again. The days are settled, but for today and the
// one that 30 days ago lies in: of these there are the clicks themselves. What was there before
// today is merged, as it is after a day.
func fillings(each int) []string {
	begin := "toDateTime(toStartOfDay(now('UTC'))) - toIntervalDay(365)"
	counts := func(table string, width, per int) string {
		return fmt.Sprintf(`INSERT INTO curt.%s SELECT '', 'hot', %s + toIntervalSecond(intDiv(number, %d) * %d) AS at,
			sum(3), sum(3), 0, 0, 0, toDateTime64(min(at), 3, 'UTC'), toDateTime64(max(at), 3, 'UTC'),
			uniqCombined64IfState(14)(number, toUInt8(1)) FROM numbers(%d) GROUP BY at`,
			table, begin, per, width, quarters*(each/3))
	}
	var pairs, columns, values []string
	for d, different := range variety() {
		if different > 0 {
			pairs = append(pairs, fmt.Sprintf("(%d, %d)", d, min(different, clicks.MaxValues)))
			columns = append(columns, clicks.Dimension(d).String())
			values = append(values, fmt.Sprintf("concat('value ', toString(cityHash64(number, %d) %% %d))", d, different))
		}
	}
	single := func(days int) string {
		return fmt.Sprintf(`INSERT INTO curt.clicks (code, time, outcome, visitor, instance, sequence, keep_days, %s)
			SELECT 'hot', toDateTime64(toStartOfDay(now('UTC')), 3, 'UTC') - toIntervalDay(%d) + toIntervalMillisecond(intDiv(number * 86400000, %d)),
			1, cityHash64(number), 1, number, 60, %s FROM numbers(%[3]d)`, strings.Join(columns, ", "), days, each*96, strings.Join(values, ", "))
	}
	return []string{
		counts("quarters", 900, each/3), counts("days", 86400, each/3*96),
		fmt.Sprintf(`INSERT INTO curt.day_values SELECT '', 'hot', d.1, %s + toIntervalSecond(number * 86400), concat('value ', toString((i * 7919 + number) %% d.2)),
			intDiv(%d, d.2) + 1, intDiv(%[2]d, d.2) + 1, 1 FROM (SELECT number, arrayJoin([%s]) AS d, arrayJoin(range(toUInt16(d.2))) AS i FROM numbers(365))`,
			begin, each*96, strings.Join(pairs, ", ")),
		`INSERT INTO curt.day_values SELECT domain, code, 255, at, '', uniqCombined64IfMerge(14)(visitors), 0, 1 FROM curt.days GROUP BY domain, code, at`,
		"OPTIMIZE TABLE curt.quarters FINAL", "OPTIMIZE TABLE curt.days FINAL", "OPTIMIZE TABLE curt.day_values FINAL",
		fmt.Sprintf("INSERT INTO curt.settled SELECT %s + toIntervalSecond(number * 86400), 1, 1 FROM numbers(365) WHERE number != 335", begin),
		single(30), single(0),
	}
}

// busy asks for the statistics of a link with n clicks.
func busy(ctx context.Context, out io.Writer, s *server, store *clickhouse.Store, n, asks int) error {
	begin := time.Now()
	for _, statement := range fillings(n / quarters) {
		if _, err := s.ask(ctx, statement); err != nil {
			return err
		}
	}
	if err := s.idle(ctx); err != nil {
		return err
	}
	key, now := link.Key{Code: "hot"}, time.Now().UTC()
	totals, err := store.Totals(ctx, analytics.Scope{Key: key}, now)
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(out, "\none link, added up: %d clicks, %d visitor days, filled in %.0f s\n", totals.Clicks, totals.VisitorDays, time.Since(begin).Seconds())
	for _, q := range questions(ctx, store, now) {
		if err := q.measure(out, s, asks); err != nil {
			return err
		}
	}
	return nil
}

// question is one about the busy link.
type question struct {
	name string
	ask  func() error
}

func questions(ctx context.Context, store *clickhouse.Store, now time.Time) []question {
	key := link.Key{Code: "hot"}
	ago := func(days int) analytics.Scope {
		return analytics.Scope{Key: key, From: now.AddDate(0, 0, -days), To: now}
	}
	return []question{
		{"totals of its life", func() error { _, err := store.Totals(ctx, analytics.Scope{Key: key}, now); return err }},
		{"totals of 30 days", func() error { _, err := store.Totals(ctx, ago(30), now); return err }},
		{"a year by days", func() error { _, err := store.Series(ctx, ago(364), analytics.Day, now); return err }},
		{"a year by days of Kolkata", func() error {
			scope, err := ago(364), error(nil)
			if scope.Zone, err = analytics.ParseZone("Asia/Kolkata"); err != nil {
				return err
			}
			_, err = store.Series(ctx, scope, analytics.Day, now)
			return err
		}},
		{"a week by hours", func() error { _, err := store.Series(ctx, ago(7), analytics.Hour, now); return err }},
		{"top countries and referrers of its life", func() error {
			_, err := store.Top(ctx, analytics.Scope{Key: key}, 10, now, clicks.Country, clicks.ReferrerHost)
			return err
		}},
		{"top of nine dimensions, 30 days", func() error {
			_, err := store.Top(ctx, ago(30), 10, now, clicks.Country, clicks.City, clicks.Network, clicks.ReferrerHost, clicks.Device, clicks.Browser, clicks.OS, clicks.Language, clicks.Trigger)
			return err
		}},
		{"clicks of 100 links", func() error { _, err := store.Clicks(ctx, slices.Repeat([]link.Key{key}, 100)); return err }},
	}
}

// measure asks again and again, and prints how long that takes.
func (q question) measure(out io.Writer, s *server, asks int) error {
	took, computed := make([]time.Duration, asks), s.processor()
	var failed error
	for i := range took {
		begin := time.Now()
		failed = errors.Join(failed, q.ask())
		took[i] = time.Since(begin)
	}
	if failed != nil {
		_, err := fmt.Fprintf(out, "%-42s MISSED: %v\n", q.name, failed)
		return err
	}
	slices.Sort(took)
	_, err := fmt.Fprintf(out, "%-42s median %5.1f ms, p99 %6.1f ms, of the server's processors %5.1f ms %s\n", q.name, millis(took[asks/2]), millis(took[asks*99/100]),
		millis(s.processor()-computed)/float64(asks), bar(millis(took[asks*99/100]) <= 100, "<= 100 ms"))
	return err
}

// bar says beside a figure what it should be.
func bar(reached bool, should string) string {
	if reached {
		return "(bar " + should + ")"
	}
	return "(MISSED, bar " + should + ")"
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
