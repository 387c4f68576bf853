package worker

import (
	"fmt"
	"maps"
	"math"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"curt/internal/backend/clickhouse"
	"curt/internal/backend/kafka"
	"curt/internal/clicks"
	"curt/internal/link"
)

// block is a contiguous range of offsets of a partition, as rows.
type block struct {
	progress

	next     int64 // where the one after it begins
	rows     []clickhouse.Row
	poison   []*kgo.Record // that nobody can read
	reasons  []error       // why, of each
	promises []promise     // that hold once the rows are inserted
	newest   time.Time     // of the last record
}

// promise is one with when it was given.
type promise struct {
	kafka.Promise
	at time.Time
}

// maxAhead is by how much a promise may be ahead of the time at which it was written: one of
// a clock that is wrong, or of somebody else, would say for good that nothing is missing.
const maxAhead = time.Minute

// reader makes blocks of records. It is owned by a partition's goroutine.
type reader struct {
	seen  seen
	at    int64 // the offset that comes next; -1 = whatever comes
	bots  *clicks.BotList
	event clicks.Event
	stats *counters
	all   bool // the control of tests: what was there before counts again
}

// begin returns an empty block that begins where the reader is.
func (r *reader) begin() (b *block) {
	return &block{progress: progress{first: r.at, before: maps.Clone(r.seen)}, next: r.at}
}

// add adds a record to a block. One that was added before changes nothing.
func (r *reader) add(b *block, record *kgo.Record) {
	switch {
	case r.at < 0:
		b.first = record.Offset
	case record.Offset < r.at:
		return
	case record.Offset > r.at: // Kafka keeps records for a while only
		r.stats.missing.Add(uint64(record.Offset - r.at))
	}
	r.at = record.Offset + 1
	b.next, b.newest = r.at, record.Timestamp
	p, err := kafka.ReadRecord(record.Value, &r.event)
	switch {
	case err == nil && p != nil:
		err = r.promise(b, p, record)
	case err == nil && r.event.ID.Sequence == math.MaxUint64: // nothing could come after it
		err = fmt.Errorf("a click of the instance %d with no sequence", r.event.ID.Instance)
	case err == nil:
		r.click(b, record.Offset)
	}
	if err != nil {
		b.poison, b.reasons = append(b.poison, record), append(b.reasons, err)
	}
}

func (r *reader) promise(b *block, p *kafka.Promise, record *kgo.Record) error {
	if p.Watermark != clicks.Ended && p.Watermark > record.Timestamp.Add(maxAhead).UnixMilli() {
		return fmt.Errorf("a promise of %d, which is to come, written at %d", p.Watermark, record.Timestamp.UnixMilli())
	}
	r.seen.heard(p.Instance, record.Offset)
	b.promises = append(b.promises, promise{*p, record.Timestamp})
	return nil
}

func (r *reader) click(b *block, offset int64) {
	e := &r.event
	if isNew := r.seen.isNew(e.ID.Instance, e.ID.Sequence, offset); !isNew && !r.all {
		r.stats.repeated.Add(1)
		return
	}
	row := clickhouse.Row{Click: r.bots.Click(e), ID: e.ID}
	if e.Outcome != clicks.Orphan {
		domain, code := clicks.DecodeKey(e.Key)
		row.Key = link.Key{Domain: link.Domain(domain), Code: link.Code(code)}
	}
	b.rows = append(b.rows, row)
}
