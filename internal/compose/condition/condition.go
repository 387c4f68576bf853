// Package condition says how a server does: to probes, and in the report of the API.
package condition

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"time"

	"curt/internal/abuse/listfile"
	"curt/internal/backup"
	"curt/internal/compose"
	"curt/internal/compose/finding"
	"curt/internal/compose/judging"
	"curt/internal/compose/pipeline"
	"curt/internal/compose/stores"
	"curt/internal/config"
	"curt/internal/datafolder"
	"curt/internal/httpapi/health"
)

// From when on an operator should look. The disk's are those of curt doctor.
const (
	leastRoom, littleRoom = 128 << 20, 1 << 30
	behind, farBehind     = 10 * time.Second, time.Minute
	justStarted           = 2 * time.Second
	lately                = 10 * time.Minute
	endsSoon, endsNow     = 14 * 24 * time.Hour, 3 * 24 * time.Hour
)

// Sources are what a report is about.
type Sources struct {
	Env      *compose.Env
	Probes   *Probes
	Stores   *stores.Stores
	Cache    *stores.Cache
	Pipeline *pipeline.Pipeline
	Finder   *finding.Finder
	Judging  *judging.Judging
}

// Report returns how the server does at now: counters, the sizes of six files, and a note.
func (s Sources) Report(now time.Time) health.Health {
	now = now.UTC().Truncate(time.Millisecond)
	h := health.Health{
		Status: s.Probes.Status(), Version: s.Env.Version, StartedAt: s.Env.Began, At: now,
		Disk: s.disk(), Clicks: s.Pipeline.Health(), Lists: s.lists(),
	}
	indexed := s.Finder.Stats()
	h.Search.Indexed, h.Search.Complete = indexed.Indexed, indexed.Complete
	cached := s.Cache.Stats()
	h.Cache = health.CacheHealth{Links: uint64(max(0, cached.Entries)), Bytes: cached.Bytes, Failures: cached.Failures, FailedAt: health.Moment(cached.Failed)}
	if l, ok := s.Stores.Links.(interface{ Damaged() (int, string) }); ok {
		h.Links.Damaged, h.Links.Example = l.Damaged()
	}
	h.Reviews.Open, h.Reviews.Overdue = s.Judging.Review.Waiting()
	if certs := s.Env.Certs; certs != nil {
		h.CertificateExpiresAt = health.Moment(certs.Certificates[0].Leaf.NotAfter)
	}
	h.LastBackupAt = health.Moment(backup.Last(s.Env.Config.Data).Taken)
	h.Concerns = concerns(&h, s.Pipeline.Sending())
	return h
}

// unsent returns how long clicks of this server have gone nowhere.
func unsent(w *pipeline.Sending, h *health.Health) (age time.Duration, is bool) {
	since := w.Reached
	if since.IsZero() {
		since = h.StartedAt
	}
	age = h.At.Sub(since)
	return age, w.Sends && (w.Failing || age > behind || w.Reached.IsZero() && age > justStarted)
}

func (s Sources) disk() health.DiskHealth {
	var d health.DiskHealth
	if free := datafolder.FreeBytes(s.Env.Config.Data); !math.IsNaN(free) {
		d.FreeBytes = new(uint64(free))
	}
	var names []string
	if s.Env.Config.Links == config.SQLite {
		names = append(names, "curt.db")
	}
	if s.Env.Config.Analytics == "" {
		names = append(names, "clicks.db")
	}
	names = append(names, "search.db")
	for _, name := range names {
		d.Files = append(d.Files, health.DataFile{Name: name, Bytes: sizeOf(s.Env.Config.Data, name, name+"-wal")})
	}
	d.Files = append(d.Files, health.DataFile{Name: "clicks", Bytes: uint64(max(0, s.Pipeline.LogBytes()))})
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

func (s Sources) lists() []health.ListHealth {
	all := []health.ListHealth{}
	add := func(name string, named []string, stats func() listfile.Stats) {
		if len(named) == 0 {
			return
		}
		of := stats()
		all = append(all, health.ListHealth{Name: name, Entries: of.Entries, Strange: of.Invalid, Unusable: of.Unusable, OldestAt: health.Moment(of.Oldest)})
	}
	if b := s.Env.Lists; b != nil {
		add("blocklists", s.Env.Config.Blocklists, b.Stats)
		add("allowlists", s.Env.Config.Allowlists, b.AllowStats)
	}
	if w := s.Env.Words; w != nil {
		add("reserved_words", s.Env.Config.ReservedWords, w.ReservedStats)
		add("refused_words", s.Env.Config.RefusedWords, w.RefusedStats)
	}
	return all
}

// concernList is what an operator should look at, the gravest apart.
type concernList struct{ grave, others []health.Concern }

func (l *concernList) add(name string, grave bool, text string, args ...any) {
	c := health.Concern{Name: name, Grave: grave, Text: fmt.Sprintf(text, args...)}
	if grave {
		l.grave = append(l.grave, c)
	} else {
		l.others = append(l.others, c)
	}
}

// concerns says what of a condition an operator should look at, the gravest first.
func concerns(h *health.Health, w pipeline.Sending) []health.Concern {
	l := &concernList{grave: []health.Concern{}}
	if h.Status != healthy {
		l.add("not-ready", true, "The server is not ready: %s.", h.Status)
	}
	if free := h.Disk.FreeBytes; free != nil && *free < littleRoom {
		l.add("disk", *free < leastRoom, "%d MiB free on the disk of the data folder.", *free>>20)
	}
	l.addLost(&h.Clicks)
	l.addUnsent(h, w)
	l.addUncounted(h)
	l.addLinks(h)
	l.addUpkeep(h)
	return append(l.grave, l.others...)
}

// addLost is about clicks that no statistics will ever have.
func (l *concernList) addLost(c *health.ClickHealth) {
	if n := c.Dropped; n > 0 {
		l.add("clicks-dropped", true, "%d clicks were lost: the in-memory buffer was full.", n)
	}
	if n := c.Lost; n > 0 {
		l.add("clicks-lost", true, "%d clicks were lost: the click log was full before they were counted.", n)
	}
	if n := c.Killed; n > 0 {
		l.add("clicks-killed", false, "%d clicks were lost: the previous server was killed.", n)
	}
	if c.KilledUnknown {
		l.add("clicks-killed", false, "The previous server was killed or its machine went down; an unknown number of clicks was lost, at most those of 1.1 seconds if the machine kept running.")
	}
}

// addUnsent is about clicks on their way to Kafka, here and at other servers.
func (l *concernList) addUnsent(h *health.Health, w pipeline.Sending) {
	if age, is := unsent(&w, h); is {
		l.add("clicks-unsent", age > farBehind || w.Reached.IsZero(), "Kafka has accepted no clicks from this server for %s; %d KiB are waiting. See /readyz and the log.", age.Round(time.Second), w.Waiting>>10)
	}
	if w.Unknown {
		l.add("clicks-unknown", true, "This server could not register as a sender of clicks: other servers may show incomplete statistics as complete. See the log.")
	}
	if w.Silent > 0 {
		l.add("servers-silent", true, "%d servers have been silent for ten minutes and may hold clicks: statistics are incomplete until they return. List them with curt clicks servers, give one up with curt clicks forget.", w.Silent)
	}
}

// addUncounted is about statistics that lack clicks for now.
func (l *concernList) addUncounted(h *health.Health) {
	if since := h.Clicks.UnstoredSince; since != nil {
		l.add("statistics-not-stored", true, "Click counts could not be written for %s: they are only in memory and in the click log. See the log.", h.At.Sub(*since).Round(time.Second))
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

func (l *concernList) addLinks(h *health.Health) {
	if n := h.Links.Damaged; n > 0 {
		l.add("links-damaged", true, "%d links are damaged, among them %s. Run curt doctor for a list.", n, h.Links.Example)
	}
	if failed := h.Cache.FailedAt; failed != nil && h.At.Sub(*failed) < lately {
		l.add("links-unanswered", true, "Visitors got 503 in the last ten minutes: the link store did not respond. See the log.")
	}
	if !h.Search.Complete {
		l.add("search-incomplete", false, "The search index is incomplete.")
	}
}

// addUpkeep is about what operators and moderators have to renew or decide.
func (l *concernList) addUpkeep(h *health.Health) {
	for _, list := range h.Lists {
		if list.Unusable > 0 {
			l.add("list-unusable", true, "The newest version of %d of the %s could not be loaded. See the log.", list.Unusable, list.Name)
		}
	}
	if ends := h.CertificateExpiresAt; ends != nil && ends.Sub(h.At) < endsSoon {
		l.add("certificate", ends.Sub(h.At) < endsNow, "The certificate expires on %s.", ends.Format(time.DateOnly))
	}
	if n := h.Reviews.Overdue; n > 0 {
		l.add("reviews-overdue", false, "%d reviews are overdue.", n)
	}
}
