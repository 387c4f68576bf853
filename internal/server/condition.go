package server

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"time"

	"curt/internal/abuse"
	"curt/internal/backup"
	"curt/internal/config"
	"curt/internal/httpapi"
)

// From when on an operator should look. The disk's are those of curt doctor.
const (
	leastRoom, littleRoom = 128 << 20, 1 << 30
	behind, farBehind     = 10 * time.Second, time.Minute
	justStarted           = 2 * time.Second
	lately                = 10 * time.Minute
	endsSoon, endsNow     = 14 * 24 * time.Hour, 3 * 24 * time.Hour
)

// condition is how the server does at now: counters, the sizes of six files, and a note.
func (s *Server) condition(now time.Time) httpapi.Health {
	now = now.UTC().Truncate(time.Millisecond)
	h := httpapi.Health{
		Status: s.health.state().Status, Version: s.version, StartedAt: s.began, At: now,
		Disk: s.diskCondition(), Clicks: s.clickCondition(), Lists: s.listConditions(),
	}
	h.Search.Indexed, h.Search.Complete = s.finder.indexer.Stats().Indexed, s.finder.indexer.Stats().Complete
	cached := s.cache.Stats()
	h.Cache = httpapi.CacheHealth{Links: uint64(max(0, cached.Entries)), Bytes: cached.Bytes, Failures: cached.Failures, FailedAt: moment(cached.Failed)}
	if l, ok := s.links.(interface{ Damaged() (int, string) }); ok {
		h.Links.Damaged, h.Links.Example = l.Damaged()
	}
	h.Reviews.Open, h.Reviews.Overdue = s.desk.Waiting()
	if certs := s.ready.certs; certs != nil {
		h.CertificateExpiresAt = moment(certs.Certificates[0].Leaf.NotAfter)
	}
	h.LastBackupAt = moment(backup.Last(s.config.Data).Taken)
	h.Concerns = concerns(&h, s.sending())
	return h
}

// sending is how the way of clicks to those who count them does.
type sending struct {
	sends   bool      // they are counted elsewhere
	reached time.Time // they have all from before; zero = nothing was told since the start
	failing bool
	waiting int64 // bytes
	unknown bool  // nobody waits for those of this server
	silent  int   // other servers that are waited for
}

func (s *Server) sending() sending {
	w := sending{silent: len(s.clicks.silent())}
	if e := s.events; e.shipper != nil {
		at := e.shipper.Stats()
		w.sends, w.reached, w.failing, w.waiting = true, at.Promised, at.Err != nil, s.clicks.log.Behind(at.Acked)
		w.unknown = e.enlister.Healthy() != nil
	}
	return w
}

// unsent says how long clicks of this server have gone nowhere.
func (w *sending) unsent(h *httpapi.Health) (age time.Duration, is bool) {
	since := w.reached
	if since.IsZero() {
		since = h.StartedAt
	}
	age = h.At.Sub(since)
	return age, w.sends && (w.failing || age > behind || w.reached.IsZero() && age > justStarted)
}

func (s *Server) diskCondition() httpapi.DiskHealth {
	var d httpapi.DiskHealth
	if free := freeBytes(s.config.Data); !math.IsNaN(free) {
		d.FreeBytes = new(uint64(free))
	}
	var names []string
	if s.config.Links == config.SQLite {
		names = append(names, "curt.db")
	}
	if s.config.Analytics == "" {
		names = append(names, "clicks.db")
	}
	names = append(names, "search.db")
	for _, name := range names {
		d.Files = append(d.Files, httpapi.DataFile{Name: name, Bytes: sizeOf(s.config.Data, name, name+"-wal")})
	}
	d.Files = append(d.Files, httpapi.DataFile{Name: "clicks", Bytes: uint64(max(0, s.clicks.log.Stats().Bytes))})
	return d
}

// sizeOf returns the bytes of files of a folder; one that is not there has none.
func sizeOf(folder string, names ...string) (n uint64) {
	for _, name := range names {
		if info, err := os.Stat(filepath.Join(folder, name)); err == nil {
			n += uint64(max(0, info.Size()))
		}
	}
	return n
}

func (s *Server) clickCondition() httpapi.ClickHealth {
	p, fresh := &s.clicks, s.clicks.freshness()
	h := httpapi.ClickHealth{
		Captured: p.capture.Stats().Clicks, Dropped: p.ring.Dropped(), Lost: p.log.Stats().LostClicks, Killed: p.taken.Clicks, KilledUnknown: p.taken.Unknown,
		UpdatedAt: moment(fresh.Updated), CompleteUntil: moment(fresh.Complete),
	}
	if p.fold != nil {
		stats := p.fold.Stats()
		h.Counted, h.UnstoredSince = stats.Events, moment(stats.Unstored)
	} else {
		h.Counted = s.events.shipper.Stats().Events // what is counted elsewhere was sent there
	}
	return h
}

// moment returns a time as the API has it; nil for none.
func moment(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return new(t.UTC().Truncate(time.Millisecond))
}

func (s *Server) listConditions() []httpapi.ListHealth {
	all := []httpapi.ListHealth{}
	add := func(name string, named []string, stats func() abuse.Stats) {
		if len(named) == 0 {
			return
		}
		of := stats()
		all = append(all, httpapi.ListHealth{Name: name, Entries: of.Entries, Strange: of.Strange, Unusable: of.Unusable, OldestAt: moment(of.Oldest)})
	}
	if b := s.ready.blocked; b != nil {
		add("blocklists", s.config.Blocklists, b.Stats)
		add("allowlists", s.config.Allowlists, b.AllowStats)
	}
	if w := s.ready.words; w != nil {
		add("reserved_words", s.config.ReservedWords, w.ReservedStats)
		add("refused_words", s.config.RefusedWords, w.RefusedStats)
	}
	return all
}

// concernList is what an operator should look at, the gravest apart.
type concernList struct{ grave, others []httpapi.Concern }

func (l *concernList) add(name string, grave bool, text string, args ...any) {
	c := httpapi.Concern{Name: name, Grave: grave, Text: fmt.Sprintf(text, args...)}
	if grave {
		l.grave = append(l.grave, c)
	} else {
		l.others = append(l.others, c)
	}
}

// concerns says what of a condition an operator should look at, the gravest first.
func concerns(h *httpapi.Health, w sending) []httpapi.Concern {
	l := &concernList{grave: []httpapi.Concern{}}
	if h.Status != healthy {
		l.add("not-ready", true, "The server wants no traffic: it is %s.", h.Status)
	}
	if free := h.Disk.FreeBytes; free != nil && *free < littleRoom {
		l.add("disk", *free < leastRoom, "%d MiB are free on the disk of the data folder.", *free>>20)
	}
	l.addLost(&h.Clicks)
	l.addUnsent(h, w)
	l.addUncounted(h)
	l.addLinks(h)
	l.addUpkeep(h)
	return append(l.grave, l.others...)
}

// addLost is about clicks that no statistics will ever have.
func (l *concernList) addLost(c *httpapi.ClickHealth) {
	if n := c.Dropped; n > 0 {
		l.add("clicks-dropped", true, "%d clicks are in no statistics: the memory for them was full.", n)
	}
	if n := c.Lost; n > 0 {
		l.add("clicks-lost", true, "%d clicks are in no statistics: the click log was full before they were counted.", n)
	}
	if n := c.Killed; n > 0 {
		l.add("clicks-killed", false, "%d clicks are in no statistics: the server before was killed.", n)
	}
	if c.KilledUnknown {
		l.add("clicks-killed", false, "The server before was killed or its machine went down; nobody knows how many clicks that cost, 1.1 seconds of them at most while the machine ran.")
	}
}

// addUnsent is about clicks on their way to Kafka, here and at other servers.
func (l *concernList) addUnsent(h *httpapi.Health, w sending) {
	if age, is := w.unsent(h); is {
		l.add("clicks-unsent", age > farBehind || w.reached.IsZero(), "Kafka has taken nothing of this server for %s; %d KiB of clicks wait. /readyz and the log say why.", age.Round(time.Second), w.waiting>>10)
	}
	if w.unknown {
		l.add("clicks-unknown", true, "The database of links cannot be told that this server takes clicks: other servers may call statistics complete that lack them. The log says why.")
	}
	if w.silent > 0 {
		l.add("servers-silent", true, "%d servers have said nothing for ten minutes, and may hold clicks: statistics are not complete until they are back. curt clicks servers names them, curt clicks forget gives one up.", w.silent)
	}
}

// addUncounted is about statistics that lack clicks for now.
func (l *concernList) addUncounted(h *httpapi.Health) {
	if since := h.Clicks.UnstoredSince; since != nil {
		l.add("statistics-not-stored", true, "For %s counts cannot be written: they are in memory and in the click log alone. The log says why.", h.At.Sub(*since).Round(time.Second))
	}
	since := h.StartedAt
	if h.Clicks.UpdatedAt != nil {
		since = *h.Clicks.UpdatedAt
	}
	if c := h.Clicks.CompleteUntil; c != nil && c.Before(since) {
		since = *c
	}
	if age := h.At.Sub(since); age > behind {
		l.add("statistics-behind", age > farBehind, "The statistics are %s behind.", age.Round(time.Second))
	}
}

func (l *concernList) addLinks(h *httpapi.Health) {
	if n := h.Links.Damaged; n > 0 {
		l.add("links-damaged", true, "%d links are damaged, among them %s. curt doctor names them.", n, h.Links.Example)
	}
	if failed := h.Cache.FailedAt; failed != nil && h.At.Sub(*failed) < lately {
		l.add("links-unanswered", true, "Visitors were answered 503 within the last ten minutes: the link store did not answer. The log says why.")
	}
	if !h.Search.Complete {
		l.add("search-incomplete", false, "The search does not know every link yet.")
	}
}

// addUpkeep is about what operators and moderators have to renew or decide.
func (l *concernList) addUpkeep(h *httpapi.Health) {
	for _, list := range h.Lists {
		if list.Unusable > 0 {
			l.add("list-unusable", true, "The newest version of %d of the %s cannot be used; the log says why.", list.Unusable, list.Name)
		}
	}
	if ends := h.CertificateExpiresAt; ends != nil && ends.Sub(h.At) < endsSoon {
		l.add("certificate", ends.Sub(h.At) < endsNow, "The certificate ends on %s.", ends.Format(time.DateOnly))
	}
	if n := h.Reviews.Overdue; n > 0 {
		l.add("reviews-overdue", false, "%d reviews have waited too long.", n)
	}
}
