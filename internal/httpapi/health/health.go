// Package health is how the server says what needs its operator's attention.
package health

import (
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"curt/internal/auth"
	"curt/internal/httpapi/kernel"
)

// Health is how the server does, for its operator. Counts are of the time since the start.
type Health struct {
	Status    string    `json:"status" enum:"ok,starting,draining,unavailable" doc:"The same as /readyz."`
	Concerns  []Concern `json:"concerns" nullable:"false" doc:"Conditions that need the operator's attention, most severe first; empty: none."`
	Version   string    `json:"version"`
	StartedAt time.Time `json:"started_at"`
	At        time.Time `json:"at" doc:"The time on the server."`

	Disk    DiskHealth   `json:"disk"`
	Clicks  ClickHealth  `json:"clicks"`
	Search  SearchHealth `json:"search"`
	Cache   CacheHealth  `json:"cache"`
	Links   LinkHealth   `json:"links"`
	Reviews ReviewHealth `json:"reviews"`
	Lists   []ListHealth `json:"lists" nullable:"false" doc:"The lists configured in the settings."`

	CertificateExpiresAt *time.Time `json:"certificate_expires_at" doc:"When CURT_TLS_CERT expires; null: the server does not terminate TLS."`
	LastBackupAt         *time.Time `json:"last_backup_at" doc:"The time of the last backup by curt backup; null: none is recorded in the data folder. Backups by other programs are not known."`
}

// Concern is something that an operator should look at.
type Concern struct {
	Name  string `json:"name" enum:"not-ready,disk,clicks-dropped,clicks-lost,clicks-killed,clicks-unsent,clicks-unknown,servers-silent,statistics-not-stored,links-damaged,links-unanswered,statistics-behind,list-unusable,certificate,reviews-overdue,search-incomplete"`
	Grave bool   `json:"grave" doc:"Critical: something is broken or lost, or is about to be."`
	Text  string `json:"text" doc:"The description as text."`
}

// DiskHealth is the room in the data folder.
type DiskHealth struct {
	FreeBytes *uint64    `json:"free_bytes" doc:"Free space available to the server's user; null: unknown."`
	Files     []DataFile `json:"files" nullable:"false" doc:"The parts of the data folder."`
}

// DataFile is one of the data folder, with what belongs to it.
type DataFile struct {
	Name  string `json:"name" enum:"curt.db,clicks.db,search.db,clicks"`
	Bytes uint64 `json:"bytes"`
}

// ClickHealth is the way of the clicks into the statistics.
type ClickHealth struct {
	Captured      uint64     `json:"captured" doc:"Clicks written to the click log."`
	Counted       uint64     `json:"counted" doc:"Clicks counted in the statistics."`
	Dropped       uint64     `json:"dropped" doc:"Clicks lost because the in-memory buffer was full."`
	Lost          uint64     `json:"lost" doc:"Clicks lost because the click log was full before they were counted."`
	Killed        uint64     `json:"killed" doc:"Clicks lost because the previous process was killed before it wrote them."`
	KilledUnknown bool       `json:"killed_unknown" doc:"The previous process was killed or its machine went down, and the number of lost clicks is unknown."`
	UnstoredSince *time.Time `json:"unstored_since" doc:"Since when counts exist only in memory and in the click log because writes to the statistics fail; null: writes succeed."`
	UpdatedAt     *time.Time `json:"updated_at" doc:"When the statistics were last complete; null: not yet since the start."`
	CompleteUntil *time.Time `json:"complete_until" doc:"Every click before this time is counted; null: not known yet."`
}

// LinkHealth is what was seen of the links themselves.
type LinkHealth struct {
	Damaged int    `json:"damaged" doc:"Damaged links found since the start, up to 1,000. curt doctor finds all."`
	Example string `json:"damaged_example" doc:"One of the damaged links; empty: none."`
}

// SearchHealth is the index of the links.
type SearchHealth struct {
	Complete bool   `json:"complete" doc:"The index covers every link; until then searches may miss some."`
	Indexed  uint64 `json:"indexed" doc:"Links indexed, new and changed."`
}

// CacheHealth is what is known of links in memory.
type CacheHealth struct {
	Links    uint64 `json:"links"`
	Bytes    uint64 `json:"bytes"`
	Failures uint64 `json:"failures" doc:"Failed queries to the link store."`

	FailedAt *time.Time `json:"failed_at" doc:"When a query last failed; null: never."`
}

// ReviewHealth is what waits for moderators.
type ReviewHealth struct {
	Open    int `json:"open"`
	Overdue int `json:"overdue" doc:"Reviews past their due time."`
}

// ListHealth is the lists of one setting, taken together.
type ListHealth struct {
	Name     string     `json:"name" enum:"blocklists,allowlists,reserved_words,refused_words"`
	Entries  int        `json:"entries"`
	Strange  int        `json:"strange_lines" doc:"Invalid lines, which have no effect."`
	Unusable int        `json:"unusable" doc:"Lists whose newest version could not be loaded; the previous one stays in use."`
	OldestAt *time.Time `json:"oldest_at" doc:"Modification time of the oldest file; null: none is in use."`
}

// Operation is what the API says about the server, as report does.
func Operation(d kernel.Describer, report func(now time.Time) Health) *kernel.Operation {
	return &kernel.Operation{
		Operation: huma.Operation{
			Method: http.MethodGet, Path: "/api/v1/health", OperationID: "get-health", Summary: "Get the health of the server",
			Description: "What the server knows without a check: it queries no store and may be polled every second. `curt doctor` checks.",
			Responses:   d.Answers(200, "The health of the server.", Health{}, nil),
		},
		Action: auth.Operate, Serve: kernel.Reply(http.StatusOK, func(c *kernel.Call) (Health, error) { return report(c.Now), nil }),
	}
}

// Moment returns a time as the API has it; nil for none.
func Moment(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return new(t.UTC().Truncate(time.Millisecond))
}
