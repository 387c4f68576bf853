package statistics

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"golang.org/x/sync/errgroup"

	"curt/internal/analytics"
	"curt/internal/backend/clickhouse/clickdb"
)

// maxStates bounds the bytes of visitors' states that one series reads to count visitors of
// steps that are no whole UTC days. Steps of a longer series are Uncounted.
const maxStates = 48 << 20

// Series implements analytics.Reader.
func (r *Reader) Series(ctx context.Context, scope analytics.Scope, step analytics.Step, now time.Time) (points []analytics.Point, err error) {
	err = r.db.Query(ctx, "series", func(ctx context.Context) error {
		points, err = r.series(ctx, scope, step, now)
		return err
	})
	return points, err
}

func (r *Reader) series(ctx context.Context, scope analytics.Scope, step analytics.Step, now time.Time) ([]analytics.Point, error) {
	fresh, err := r.watermarks.Progress(ctx, now)
	if err != nil {
		return nil, err
	}
	first, err := r.firstSeen(ctx, scope)
	if err != nil {
		return nil, err
	}
	plan, err := scope.Plan(step, first, now)
	if err != nil {
		return nil, err
	}
	q := &seriesQuestion{reader: r, scope: scope, plan: plan, points: plan.Points(fresh.Complete), at: map[uint32]int{}}
	if step == analytics.Minute {
		for i := range q.points {
			q.fine(i)
		}
		return q.points, q.read(ctx, "minutes", q.steps, false)
	}
	for i := range q.points {
		if q.whole(i) {
			q.days = append(q.days, q.fill(i))
		} else {
			q.fine(i)
		}
	}
	return q.points, q.count(ctx)
}

// seriesQuestion is one series on its way. Steps that are whole UTC days are answered from
// days, the others from quarter hours.
type seriesQuestion struct {
	reader      *Reader
	scope       analytics.Scope
	plan        analytics.Plan
	points      []analytics.Point
	at          map[uint32]int // points by the second that they start at
	days, steps []uint32       // starts of steps that are UTC days, and of others
}

func (q *seriesQuestion) fill(i int) uint32 {
	start := uint32(q.plan.Starts[i].Unix())
	q.at[start] = i
	return start
}

func (q *seriesQuestion) fine(i int) { q.steps = append(q.steps, q.fill(i)) }

// whole reports whether a step is a UTC day that lies within the range.
func (q *seriesQuestion) whole(i int) bool {
	start, end := q.plan.Starts[i], q.plan.Starts[i+1]
	return start.Unix()%int64(clickdb.Day/time.Second) == 0 && end.Sub(start) == clickdb.Day && !start.Before(q.plan.From) && !end.After(q.plan.To)
}

// count asks for days and for other steps at once: they are different points.
func (q *seriesQuestion) count(ctx context.Context) error {
	var asked errgroup.Group
	asked.Go(func() error { return q.wholeDays(ctx) })
	asked.Go(func() error { return q.otherSteps(ctx) })
	return asked.Wait()
}

// wholeDays fills in the steps that are UTC days. Of those that are finalized nobody reads the
// visitors' states.
func (q *seriesQuestion) wholeDays(ctx context.Context) error {
	if len(q.days) == 0 {
		return nil
	}
	var seen map[uint32]uint64
	var asked errgroup.Group
	asked.Go(func() error { return q.read(ctx, "days", q.days, false) })
	asked.Go(func() (err error) {
		seen, err = q.reader.finalizedVisitors(ctx, q.scope.Key, q.plan.From, q.plan.To)
		return err
	})
	if err := asked.Wait(); err != nil {
		return err
	}
	var open []uint32
	for _, start := range q.days {
		n, finalized := seen[start]
		if q.points[q.at[start]].Visitors = n; !finalized {
			open = append(open, start)
		}
	}
	return q.read(ctx, "days", open, true)
}

// otherSteps fills in the steps that quarter hours add up to: two halves at once where visitors
// are to be counted, because the server reads so few rows one after the other.
func (q *seriesQuestion) otherSteps(ctx context.Context) error {
	if len(q.steps) == 0 {
		return nil
	}
	counted, err := q.light(ctx)
	if err != nil {
		return err
	}
	if !counted {
		for _, start := range q.steps {
			q.points[q.at[start]].Uncounted = true
		}
		return q.read(ctx, "quarters", q.steps, false)
	}
	var asked errgroup.Group
	for half := range slices.Chunk(q.steps, max(4, (len(q.steps)+1)/2)) {
		asked.Go(func() error { return q.read(ctx, "quarters", half, true) })
	}
	return asked.Wait()
}

// light reports whether the states that the fine steps need are at most maxStates. One has eight
// bytes for each visitor, 12 KiB at most.
func (q *seriesQuestion) light(ctx context.Context) (bool, error) {
	const most = 12 << 10
	states := 0
	for _, start := range q.steps {
		i := q.at[start]
		states += int(q.plan.Starts[i+1].Sub(q.plan.Starts[i]) / (15 * time.Minute))
	}
	if states <= maxStates/most {
		return true, nil
	}
	var bytes int64
	err := q.reader.db.Conn.QueryRow(ctx, fmt.Sprintf(`SELECT sum(least(humans * 8, %d)) FROM %s`, most, q.source("quarters", q.steps)), q.args()...).Scan(&bytes)
	return bytes <= maxStates, err
}

// source is the rows of a table that belong to some steps, which are sorted. Steps that follow
// each other are read as one: the rows between others are not.
func (q *seriesQuestion) source(table string, steps []uint32) string {
	var spans []string
	for i := 0; i < len(steps); {
		first := q.at[steps[i]]
		last := first
		for i++; i < len(steps) && q.at[steps[i]] == last+1; i++ {
			last++
		}
		from, to := q.plan.Starts[first], q.plan.Starts[last+1]
		if from.Before(q.plan.From) {
			from = q.plan.From
		}
		if to.After(q.plan.To) {
			to = q.plan.To
		}
		spans = append(spans, fmt.Sprintf("at >= toDateTime(%d, 'UTC') AND at < toDateTime(%d, 'UTC')", from.Unix(), to.Unix()))
	}
	return `(SELECT *, roundDown(toUInt32(at), {starts:Array(UInt32)}) AS start FROM ` + table + ` WHERE ` + clickdb.OfKey + ` AND (` + strings.Join(spans, " OR ") + `))`
}

func (q *seriesQuestion) args() []any {
	starts := make([]uint32, len(q.points))
	for i := range starts {
		starts[i] = uint32(q.plan.Starts[i].Unix())
	}
	return clickdb.Named(q.scope.Key, clickhouse.Named("starts", clickdb.List(starts)))
}

// read adds the rows of a table to the points of some steps.
func (q *seriesQuestion) read(ctx context.Context, table string, steps []uint32, visitors bool) error {
	if len(steps) == 0 {
		return nil
	}
	seen := "toUInt64(0)"
	if visitors {
		seen = clickdb.VisitorsMerged
	}
	rows, err := q.reader.db.Conn.Query(ctx, `SELECT start, sum(clicks), sum(humans), `+seen+` FROM `+q.source(table, steps)+` GROUP BY start`, q.args()...)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var start uint32
		var sum, humans int64
		var seen uint64
		if err := rows.Scan(&start, &sum, &humans, &seen); err != nil {
			return err
		}
		if i, known := q.at[start]; known {
			p := &q.points[i]
			p.Clicks, p.Humans, p.Visitors = count(sum), count(humans), seen
		}
	}
	return rows.Err()
}
