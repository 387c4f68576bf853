package server

import (
	"strconv"
	"time"

	"curt/internal/abuse"
	"curt/internal/backend/postgres"
	"curt/internal/lane"
	"curt/internal/redirect"
)

// register offers the counters of the parts that keep their own. Each is read when
// somebody scrapes, so that the hot path pays nothing for being watched.
func (s *Server) register() {
	if s.roles.serves() {
		s.countClicks()
		s.countDamage()
		s.countCache()
	}
	if s.finder.indexer != nil {
		s.countSearch()
	}
	s.countLists()
	s.countRedis()
	s.countEvents()
	s.countClickHouse()
	s.countDrift()
	if s.replicas != nil {
		s.countReplicas(s.replicas)
	}
}

// countReplicas offers how look-ups are shared with standbys.
func (s *Server) countReplicas(stats func() postgres.ReplicaStats) {
	m := s.metrics
	m.Gauge("curt_replicas", "Standbys that CURT_LINKS_REPLICAS names.", func() float64 { return float64(len(stats().Lags)) })
	m.Gauge("curt_replicas_usable", "Standbys that are asked now: they answer, and are behind by CURT_LINKS_REPLICA_LAG at most.",
		func() float64 { return float64(stats().Usable) })
	m.Counter("curt_replica_lookups_total", "Look-ups that a standby answered.", func() uint64 { return stats().Answered })
	m.Counter("curt_replica_confirmed_total", "Look-ups of links that a standby did not know, or that have max_clicks; the primary was asked again.",
		func() uint64 { return stats().Confirmed })
	m.Counter("curt_replica_failures_total", "Look-ups that a standby failed to answer in time; the primary was asked again.",
		func() uint64 { return stats().Failed })
	for i := range s.config.LinksReplicas {
		m.GaugeOf("curt_replica_lag_seconds", "How far a standby may be behind, by its place in CURT_LINKS_REPLICAS; of one that never answered, since the start.",
			"replica", strconv.Itoa(i+1), func() float64 { return stats().Lags[i].Seconds() })
	}
}

// countDamage offers what was found damaged; stores that check rows themselves have nothing.
func (s *Server) countDamage() {
	l, ok := s.links.(interface{ Damaged() (int, string) })
	if !ok {
		return
	}
	s.metrics.Gauge("curt_links_damaged", "Links that were found damaged since the start, up to 1,000.", func() float64 {
		n, _ := l.Damaged()
		return float64(n)
	})
}

// countClicks offers the counters of the way of a click.
func (s *Server) countClicks() {
	m, p := s.metrics, &s.clicks
	m.Counter("curt_clicks_dropped_total", "Clicks lost because the ring was full.", p.ring.Dropped)
	m.Counter("curt_clicks_captured_total", "Clicks written to the click log.",
		func() uint64 { return p.capture.Stats().Clicks })
	m.Counter("curt_clicks_untagged_total", "Clicks whose visitor is unknown because there was no day key.",
		func() uint64 { return p.capture.Stats().Untagged })
	m.Counter("curt_clicks_unlisted_total", "Clicks of user agents that the bot list was not asked about, because too many new ones came at once.",
		func() uint64 { return p.capture.Stats().Unlisted })
	if p.fold != nil {
		m.Counter("curt_clicks_counted_total", "Clicks in the statistics.", func() uint64 { return p.fold.Stats().Events })
		m.Counter("curt_click_batches_total", "Batches of counts written to the statistics.", func() uint64 { return p.fold.Stats().Batches })
		m.Counter("curt_click_batch_errors_total", "Times that a batch of counts could not be written to the statistics; each is tried again.",
			func() uint64 { return p.fold.Stats().BatchErrors })
		m.Gauge("curt_statistics_unstored_seconds", "Time since counts could be written to the statistics, while they cannot.", func() float64 {
			if since := p.fold.Stats().Unstored; !since.IsZero() {
				return max(0, time.Since(since).Seconds())
			}
			return 0
		})
	}
	m.Counter("curt_click_log_append_errors_total", "Writes to the click log that failed; the clicks wait in the ring.",
		func() uint64 { return p.log.Stats().AppendErrors })
	m.Counter("curt_click_log_sync_errors_total", "Fsyncs of the click log that failed.",
		func() uint64 { return p.log.Stats().SyncErrors })
	m.Counter("curt_click_log_lost_clicks_total", "Clicks whose segment went before they were counted.",
		func() uint64 { return p.log.Stats().LostClicks })
	m.Counter("curt_clicks_killed_total", "Clicks lost because the process before this one was killed before it wrote them.",
		func() uint64 { return p.taken.Clicks })
	m.Gauge("curt_clicks_killed_unknown", "1 where the process before this one was killed and nobody knows how many clicks that cost.", func() float64 {
		if p.taken.Unknown {
			return 1
		}
		return 0
	})
	m.Counter("curt_click_log_damages_total", "Places of the click log that cannot be read; clicks there that were not counted are lost.",
		func() uint64 { return p.log.Stats().Damages })
	m.Counter("curt_click_log_torn_bytes_total", "Bytes of a write that a death cut short, which the start cut off.",
		func() uint64 { return p.log.Stats().TruncatedBytes })
	m.Gauge("curt_click_log_bytes", "Size of the click log.", func() float64 { return float64(p.log.Stats().Bytes) })
	m.Counter("curt_click_index_rebuilt_total", "Indexes of the click log that were missing or damaged and were made again.",
		func() uint64 { return p.history.Stats().Rebuilt })
	m.Counter("curt_click_index_errors_total", "Indexes of the click log that could not be written.",
		func() uint64 { return p.history.Stats().Errors })
	if p.places != nil {
		m.Counter("curt_geoip_failures_total", "Versions of CURT_GEOIP that could not be read.",
			func() uint64 { return p.places.Stats().Failures })
		m.Counter("curt_geoip_damages_total", "Places that CURT_GEOIP is damaged at.",
			func() uint64 { return p.places.Stats().Damages })
	}
}

// countSearch offers the counters of the search index.
func (s *Server) countSearch() {
	m := s.metrics
	m.Counter("curt_search_indexed_total", "Links brought into the search index, new and changed ones.",
		func() uint64 { return s.finder.indexer.Stats().Indexed })
	m.Gauge("curt_search_complete", "1 once the search index knows the whole store; until then searches miss links.", func() float64 {
		if s.finder.indexer.Stats().Complete {
			return 1
		}
		return 0
	})
}

// countCache offers the counters of L1.
func (s *Server) countCache() {
	m := s.metrics
	m.Counter("curt_cache_loads_total", "Questions to the link store.", func() uint64 { return s.cache.Stats().Loads })
	m.Counter("curt_cache_load_failures_total", "Questions that the link store did not answer.",
		func() uint64 { return s.cache.Stats().Failures })
	m.Counter("curt_cache_stale_total", "Look-ups answered with what L1 still held, because the store failed.",
		func() uint64 { return s.cache.Stats().Stale })
	m.Counter("curt_cache_never_issued_total", "Look-ups of codes that were never issued, answered without the store.",
		func() uint64 { return s.cache.Stats().Never })
	m.Counter("curt_cache_changes_total", "Changes of links announced.", func() uint64 { return s.cache.Stats().Changes })
	m.Gauge("curt_cache_entries", "Links in L1.", func() float64 { return float64(s.cache.Stats().Entries) })
	m.Gauge("curt_cache_bytes", "Bytes of L1.", func() float64 { return float64(s.cache.Stats().Bytes) })
}

// countLists offers the counters of lists; their names stand here in full, for whoever
// looks for one.
func (s *Server) countLists() {
	if b := s.ready.blocked; b != nil {
		s.countList(b.Stats, "curt_blocklist_entries", "curt_blocklist_bytes", "curt_blocklist_passed_lines", "curt_blocklist_strange_lines",
			"curt_blocklists_unusable", "curt_blocklist_reloads_total", "curt_blocklist_failures_total")
		s.countList(b.AllowStats, "curt_allowlist_entries", "curt_allowlist_bytes", "curt_allowlist_passed_lines", "curt_allowlist_strange_lines",
			"curt_allowlists_unusable", "curt_allowlist_reloads_total", "curt_allowlist_failures_total")
	}
	if w := s.ready.words; w != nil {
		s.countList(w.ReservedStats, "curt_reserved_word_entries", "curt_reserved_word_bytes", "curt_reserved_word_passed_lines", "curt_reserved_word_strange_lines",
			"curt_reserved_words_unusable", "curt_reserved_word_reloads_total", "curt_reserved_word_failures_total")
		s.countList(w.RefusedStats, "curt_refused_word_entries", "curt_refused_word_bytes", "curt_refused_word_passed_lines", "curt_refused_word_strange_lines",
			"curt_refused_words_unusable", "curt_refused_word_reloads_total", "curt_refused_word_failures_total")
	}
	if f := s.ready.sources; f != nil {
		s.countList(f.Stats, "curt_signal_list_entries", "curt_signal_list_bytes", "curt_signal_list_passed_lines", "curt_signal_list_strange_lines",
			"curt_signal_lists_unusable", "curt_signal_list_reloads_total", "curt_signal_list_failures_total")
	}
}

func (s *Server) countList(stats func() abuse.Stats, entries, bytes, passed, strange, unusable, reloads, failures string) {
	gauge := func(name, help string, count func(abuse.Stats) int) {
		s.metrics.Gauge(name, help, func() float64 { return float64(count(stats())) })
	}
	gauge(entries, "Entries of the lists that are in use.", func(s abuse.Stats) int { return s.Entries })
	gauge(bytes, "Bytes that these entries take.", func(s abuse.Stats) int { return s.Bytes })
	gauge(passed, "Lines of these lists that are understood and passed over.", func(s abuse.Stats) int { return s.Passed })
	gauge(strange, "Lines of these lists that are not understood and have no effect.", func(s abuse.Stats) int { return s.Strange })
	gauge(unusable, "Lists whose newest version could not be used.", func(s abuse.Stats) int { return s.Unusable })
	s.metrics.Counter(reloads, "Versions of these lists taken into use.", func() uint64 { return stats().Reloads })
	s.metrics.Counter(failures, "Versions of these lists that could not be used.", func() uint64 { return stats().Failures })
}

// observe offers what tells whether this server is well.
func (s *Server) observe() {
	m := s.metrics
	m.Gauge("curt_ready", "1 while /readyz says that the server wants traffic.", func() float64 {
		if s.health.state().Status == healthy {
			return 1
		}
		return 0
	})
	m.Gauge("curt_data_free_bytes", "Room on the disk of CURT_DATA for this user.", func() float64 {
		return freeBytes(s.config.Data)
	})
	if s.clicks.fold != nil || s.clicks.counted != nil {
		started := time.Now()
		m.Gauge("curt_statistics_age_seconds", "Time since the statistics held every click of the click log, of all servers where clicks go through Kafka.", func() float64 {
			return max(0, time.Since(s.clicks.behind(started)).Seconds())
		})
	}
	if certs := s.ready.certs; certs != nil {
		until := certs.Certificates[0].Leaf.NotAfter
		m.Gauge("curt_tls_certificate_expires_seconds", "When CURT_TLS_CERT ends, in Unix seconds.",
			func() float64 { return float64(until.Unix()) })
	}
}

// countProblems offers how visits ended that were not redirected.
func (s *Server) countProblems(visitors *redirect.Handler) {
	for _, p := range redirect.Problems() {
		s.metrics.CounterOf("curt_redirect_problems_total", "Visits that were not redirected, by the problem they were told.",
			"problem", p.Name(), func() uint64 { return visitors.Met(p) })
	}
	s.metrics.Counter("curt_redirect_strange_hosts_total", "Requests for links at hosts that are not configured, which got 404.", visitors.Strange)
}

// countLeases offers the counters of the strategy range.
func (s *Server) countLeases() {
	s.metrics.Counter("curt_code_leases_waited_total", "Leases of codes that a create had to wait for.",
		func() uint64 { return s.ranges.Stats().Inline })
	s.metrics.Counter("curt_code_lease_failures_total", "Leases of codes that the link store refused.",
		func() uint64 { return s.ranges.Stats().Failures })
}

// countGrown offers the counter of the strategies random and hash.
func (s *Server) countGrown(grown func() uint64) {
	s.metrics.Counter("curt_code_grown_total", "Codes longer than CURT_CODE_LENGTH, because shorter ones were taken.", grown)
}

// countLane offers the lane's counters; without one, those of the main listener in the
// same terms.
func (s *Server) countLane(stats func() lane.Stats) {
	m := s.metrics
	m.Gauge("curt_lane_connections", "Open connections in the lane.", func() float64 { return float64(stats().Open) })
	m.Gauge("curt_lane_foreign_connections", "Open connections at net/http.",
		func() float64 { return float64(stats().Foreign) })
	m.Counter("curt_lane_accepted_total", "Connections accepted.", func() uint64 { return stats().Accepted })
	m.Counter("curt_lane_handed_over_total", "Connections given to net/http.", func() uint64 { return stats().Handed })
	m.Counter("curt_lane_taken_back_total", "Connections taken back from net/http.", func() uint64 { return stats().Returned })
	m.Counter("curt_lane_refused_total", "Connections for which there was no room.", func() uint64 { return stats().Refused })
	m.Counter("curt_lane_evicted_total", "Connections closed to make room: unfinished or idle.", func() uint64 { return stats().Evicted })
	m.Counter("curt_lane_late_total", "Connections closed because they were slow or idle.", func() uint64 { return stats().Late })
	m.Counter("curt_lane_panics_total", "Answers that failed by a fault of the program.", func() uint64 { return stats().Panics })
}
