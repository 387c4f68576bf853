package clickhouse

import (
	"time"

	"curt/internal/clicks"
)

// Statements exports statements.
var Statements = statements

// ProgressOf is progressOf of one life of a topic, long after all of it, without senders.
func ProgressOf(marks []Watermark) Progress {
	newest := ""
	if len(marks) > 0 {
		newest = marks[0].Topic
	}
	return progressOf(marks, newest, nil, time.UnixMilli(clicks.Ended-1))
}

// ProgressAt is progressOf.
var ProgressAt = progressOf
