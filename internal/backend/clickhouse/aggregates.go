package clickhouse

import (
	"fmt"
	"time"

	"curt/internal/clicks"
)

// aggregate is a table that a view fills with what clicks add up to.
type aggregate struct {
	Table     string
	Partition string        // what is read at once lies in few; what goes soon is in one for each day
	TTL       string        // "" = for good
	Keep      time.Duration // what TTL says
	Width     string        // the function that gives the bucket of a click's time
	Daily     bool          // buckets are UTC days
}

// aggregates are all of them. Minutes are kept a day longer than they are asked for.
func aggregates() []aggregate {
	return []aggregate{
		{Table: "minutes", Partition: "toYYYYMMDD(at)", TTL: "at + toIntervalDay(3)", Keep: 3 * day, Width: "toStartOfMinute"},
		{Table: "quarters", Partition: "toYYYYMM(at)", Width: "toStartOfFifteenMinutes"},
		{Table: "days", Partition: "toYear(at)", Width: "toStartOfDay", Daily: true},
	}
}

// gone reports whether what was added up of an hour may be gone.
func (a aggregate) gone(hour, now time.Time) bool { return a.Keep > 0 && hour.Before(now.Add(-a.Keep)) }

// visitorsMerged counts the visitors of states: registers of 14 bits, as in the embedded
// shape.
const visitorsMerged = "uniqCombined64IfMerge(14)(visitors)"

// keysOf are what a click counts for: its link, and its workspace as internal/clicks
// names groups.
const keysOf = `arrayJoin(if(workspace = '', [(CAST(domain, 'String'), code)], [(CAST(domain, 'String'), code), ('*', CAST(workspace, 'String'))])) AS key`

// query returns what adds up the clicks of a source to the rows of the table, grouped. What
// counts is what internal/clicks.Counts says.
func (a aggregate) query(source string) string {
	return fmt.Sprintf(`SELECT key.1 AS domain, key.2 AS code, at,
    toInt64(countIf(counted)) AS clicks,
    toInt64(countIf(counted AND NOT bot)) AS humans,
    toInt64(countIf(preview AND outcome IN (%[4]d, %[7]d))) AS previews,
    toInt64(countIf(NOT preview AND outcome = %[5]d)) AS fallbacks,
    toInt64(countIf(NOT preview AND outcome = %[6]d)) AS refused,
    min(time) AS first_seen,
    max(if(counted, time, toDateTime64(0, 3, 'UTC'))) AS last_clicked,
    uniqCombined64IfState(14)(visitor, toUInt8(counted AND outcome = %[4]d AND NOT bot AND visitor != 0)) AS visitors
FROM (
    SELECT %[1]s, toDateTime(%[2]s(time, 'UTC'), 'UTC') AS at, time, outcome, preview, bot, visitor,
        NOT preview AND outcome IN (%[4]d, %[7]d) AS counted
    FROM %[3]s
)
GROUP BY domain, code, at`, keysOf, a.Width, source, clicks.Redirected, clicks.FellBack, clicks.Refused, clicks.Orphan)
}
