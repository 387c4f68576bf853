package server

// register offers the counters of the parts that keep their own. Each is read when
// somebody scrapes, so that the hot path pays nothing for being watched.
func (s *Server) register() {
	m, p := s.metrics, &s.clicks
	m.Counter("curt_clicks_dropped_total", "Clicks lost because the ring was full.", p.ring.Dropped)
	m.Counter("curt_clicks_captured_total", "Clicks written to the click log.",
		func() uint64 { return p.capture.Stats().Clicks })
	m.Counter("curt_clicks_untagged_total", "Clicks whose visitor is unknown because there was no day key.",
		func() uint64 { return p.capture.Stats().Untagged })
	m.Counter("curt_click_log_append_errors_total", "Writes to the click log that failed; the clicks wait in the ring.",
		func() uint64 { return p.log.Stats().AppendErrors })
	m.Counter("curt_click_log_sync_errors_total", "Fsyncs of the click log that failed.",
		func() uint64 { return p.log.Stats().SyncErrors })
	m.Counter("curt_click_log_lost_clicks_total", "Clicks whose segment went before they were counted.",
		func() uint64 { return p.log.Stats().LostClicks })
	m.Gauge("curt_click_log_bytes", "Size of the click log.", func() float64 { return float64(p.log.Stats().Bytes) })
	m.Counter("curt_code_leases_waited_total", "Leases of codes that a create had to wait for.",
		func() uint64 { return s.codes.Stats().Inline })
	m.Counter("curt_code_lease_failures_total", "Leases of codes that the link store refused.",
		func() uint64 { return s.codes.Stats().Failures })
}
