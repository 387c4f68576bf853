package pipeline

import (
	"time"

	"curt/internal/telemetry"
	"curt/internal/worker"
)

// count registers the counters of the pipeline. Each is read when it is scraped, so that the hot
// path pays nothing for it.
func (p *Pipeline) count(m *telemetry.Metrics) {
	if p.env.Roles.Serves() {
		p.countClicks(m)
	}
	p.countEvents(m)
	p.countClickHouse(m)
	if len(p.watched) > 0 {
		countWatched(m, p.watched)
		countReconciled(m, p.reconcilers)
	}
	if p.fold != nil || p.ClickHouse != nil {
		started := time.Now()
		m.Gauge("curt_statistics_age_seconds", "Time since the statistics included every click of the click log; with Kafka, of all servers.", func() float64 {
			return max(0, time.Since(p.CountedUntil(started)).Seconds())
		})
	}
}

// countClicks offers the counters of the way of a click.
func (p *Pipeline) countClicks(m *telemetry.Metrics) {
	m.Counter("curt_clicks_dropped_total", "Clicks lost because the ring was full.", p.Ring.Dropped)
	m.Counter("curt_clicks_captured_total", "Clicks written to the click log.",
		func() uint64 { return p.capture.Stats().Clicks })
	m.Counter("curt_clicks_untagged_total", "Clicks without a visitor because there was no day key.",
		func() uint64 { return p.capture.Stats().Untagged })
	m.Counter("curt_clicks_unlisted_total", "Clicks of user agents not checked against the bot list because too many were new.",
		func() uint64 { return p.capture.Stats().Unlisted })
	if p.fold != nil {
		m.Counter("curt_clicks_counted_total", "Clicks in the statistics.", func() uint64 { return p.fold.Stats().Events })
		m.Counter("curt_click_batches_total", "Batches of counts written to the statistics.", func() uint64 { return p.fold.Stats().Batches })
		m.Counter("curt_click_batch_errors_total", "Failed writes of a batch of counts to the statistics, each retried.",
			func() uint64 { return p.fold.Stats().BatchErrors })
		m.Gauge("curt_statistics_unstored_seconds", "Time since the last successful write of counts, while writes fail; else 0.", func() float64 {
			if since := p.fold.Stats().Unstored; !since.IsZero() {
				return max(0, time.Since(since).Seconds())
			}
			return 0
		})
	}
	m.Counter("curt_click_log_append_errors_total", "Failed writes to the click log; the clicks stay in the ring.",
		func() uint64 { return p.log.Stats().AppendErrors })
	m.Counter("curt_click_log_sync_errors_total", "Failed fsyncs of the click log.",
		func() uint64 { return p.log.Stats().SyncErrors })
	m.Counter("curt_click_log_lost_clicks_total", "Clicks lost because their segment was removed before they were counted.",
		func() uint64 { return p.log.Stats().LostClicks })
	m.Counter("curt_clicks_killed_total", "Clicks lost because the previous process was killed before it wrote them.",
		func() uint64 { return p.taken.Clicks })
	m.Gauge("curt_clicks_killed_unknown", "1 if the previous process was killed and lost an unknown number of clicks.", func() float64 {
		if p.taken.Unknown {
			return 1
		}
		return 0
	})
	m.Counter("curt_click_log_damages_total", "Unreadable positions in the click log; uncounted clicks there are lost.",
		func() uint64 { return p.log.Stats().Damages })
	m.Counter("curt_click_log_torn_bytes_total", "Bytes of an incomplete write, truncated at the start.",
		func() uint64 { return p.log.Stats().TruncatedBytes })
	m.Gauge("curt_click_log_bytes", "Size of the click log.", func() float64 { return float64(p.log.Stats().Bytes) })
	m.Counter("curt_click_index_rebuilt_total", "Indexes of the click log rebuilt because they were missing or damaged.",
		func() uint64 { return p.history.Stats().Rebuilt })
	m.Counter("curt_click_index_errors_total", "Failed writes of click log indexes.",
		func() uint64 { return p.history.Stats().Errors })
	if places := p.env.GeoIP; places != nil {
		m.Counter("curt_geoip_failures_total", "Versions of CURT_GEOIP that could not be loaded.",
			func() uint64 { return places.Stats().Failures })
		m.Counter("curt_geoip_damages_total", "Damaged records found in CURT_GEOIP.",
			func() uint64 { return places.Stats().Damages })
	}
	if places := p.env.Places; places != nil {
		m.Gauge("curt_geoip_age_seconds", "Age of the GeoIP data in use: of CURT_GEOIP, or else of the built-in countries; 0 while there is none.", func() float64 {
			at := places.Built()
			if at.IsZero() {
				return 0
			}
			return max(0, time.Since(at).Seconds())
		})
	}
}

// countEvents offers the counters of the way through Kafka.
func (p *Pipeline) countEvents(m *telemetry.Metrics) {
	if p.created != nil {
		p.created.count(m)
	}
	if p.shipper != nil {
		m.Counter("curt_events_sent_total", "Clicks acknowledged by Kafka.", func() uint64 { return p.shipper.Stats().Events })
		m.Counter("curt_events_send_failures_total", "Restarts of the Kafka producer.", func() uint64 { return p.shipper.Stats().Failures })
		m.Gauge("curt_events_waiting_bytes", "Bytes of the click log not acknowledged by Kafka.", func() float64 {
			return float64(p.log.BytesAfter(p.shipper.Stats().Acked))
		})
		m.Gauge("curt_events_unsent_seconds", "Time since Kafka acknowledged every click of this server.", func() float64 {
			at := p.shipper.Stats().Promised
			if at.IsZero() {
				at = p.env.Began
			}
			return max(0, time.Since(at).Seconds())
		})
		m.Gauge("curt_events_enlisted", "1 once this server is registered as a sender of clicks.", func() float64 {
			if p.enlister.Healthy() != nil {
				return 0
			}
			return 1
		})
	}
	if len(p.workers) == 0 {
		return
	}
	w := workers(p.workers)
	m.Gauge("curt_worker_partitions", "Partitions assigned to this worker.", func() float64 { return float64(w.Stats().Partitions) })
	m.Gauge("curt_worker_lag_events", "Consumer lag of these partitions, in records.", func() float64 { return float64(w.Stats().Lag) })
	m.Counter("curt_worker_rows_total", "Clicks inserted into ClickHouse; clicks of a reinserted block count again.", func() uint64 { return w.Stats().Rows })
	m.Counter("curt_worker_blocks_total", "Blocks inserted.", func() uint64 { return w.Stats().Blocks })
	m.Counter("curt_worker_blocks_again_total", "Blocks reinserted after a partition moved.", func() uint64 { return w.Stats().Reinserted })
	m.Counter("curt_worker_repeated_total", "Duplicate clicks in Kafka, which count once.", func() uint64 { return w.Stats().Repeated })
	m.Counter("curt_worker_dead_letters_total", "Unreadable records, moved to the dead letter topic.", func() uint64 { return w.Stats().Poison })
	m.Counter("curt_worker_missing_total", "Records that Kafka deleted before they were read.", func() uint64 { return w.Stats().Missing })
	m.Counter("curt_worker_insert_failures_total", "Failed inserts, each retried.", func() uint64 { return w.Stats().Failures })
	m.Counter("curt_worker_sessions_total", "Times that this worker rejoined its consumer group.", func() uint64 { return w.Stats().Sessions })
	m.Counter("curt_worker_forgotten_total", "Instances whose duplicates in Kafka are no longer detected.", func() uint64 { return w.Stats().Forgotten })
}

// workers are those of all replicas. Their counters are added up; the lag is that of the slowest.
type workers []*worker.Worker

// Stats returns the sums.
func (all workers) Stats() (sum worker.Stats) {
	for _, w := range all {
		s := w.Stats()
		sum.Rows, sum.Blocks, sum.Reinserted, sum.Repeated = sum.Rows+s.Rows, sum.Blocks+s.Blocks, sum.Reinserted+s.Reinserted, sum.Repeated+s.Repeated
		sum.Poison, sum.Missing, sum.Failures, sum.Sessions = sum.Poison+s.Poison, sum.Missing+s.Missing, sum.Failures+s.Failures, sum.Sessions+s.Sessions
		sum.Forgotten, sum.Partitions, sum.Lag = sum.Forgotten+s.Forgotten, sum.Partitions+s.Partitions, max(sum.Lag, s.Lag)
	}
	return sum
}
