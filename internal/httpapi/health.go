package httpapi

import (
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"curt/internal/auth"
)

const healthPath = "/api/v1/health"

// Health is how the server does, for its operator. Counts are of the time since the start.
type Health struct {
	Status    string    `json:"status" enum:"ok,starting,draining,unavailable" doc:"What /readyz says."`
	Concerns  []Concern `json:"concerns" nullable:"false" doc:"What an operator should look at, the gravest first; empty: nothing."`
	Version   string    `json:"version"`
	StartedAt time.Time `json:"started_at"`
	At        time.Time `json:"at" doc:"The clock of the server."`

	Disk    DiskHealth   `json:"disk"`
	Clicks  ClickHealth  `json:"clicks"`
	Search  SearchHealth `json:"search"`
	Cache   CacheHealth  `json:"cache"`
	Links   LinkHealth   `json:"links"`
	Reviews ReviewHealth `json:"reviews"`
	Lists   []ListHealth `json:"lists" nullable:"false" doc:"Those that the settings name."`

	CertificateExpiresAt *time.Time `json:"certificate_expires_at" doc:"The end of CURT_TLS_CERT; null: the server speaks no TLS itself."`
	LastBackupAt         *time.Time `json:"last_backup_at" doc:"The moment that the last backup by curt backup shows; null: none is noted in the data folder. What other programs copy is not known."`
}

// Concern is something that an operator should look at.
type Concern struct {
	Name  string `json:"name" enum:"not-ready,disk,clicks-dropped,clicks-lost,clicks-killed,clicks-unsent,clicks-unknown,servers-silent,statistics-not-stored,links-damaged,links-unanswered,statistics-behind,list-unusable,certificate,reviews-overdue,search-incomplete"`
	Grave bool   `json:"grave" doc:"Something is broken or lost, or is about to be."`
	Text  string `json:"text" doc:"For people to read."`
}

// DiskHealth is the room in the data folder.
type DiskHealth struct {
	FreeBytes *uint64    `json:"free_bytes" doc:"For the user of the server; null: the disk does not say."`
	Files     []DataFile `json:"files" nullable:"false" doc:"What the data folder holds."`
}

// DataFile is one of the data folder, with what belongs to it.
type DataFile struct {
	Name  string `json:"name" enum:"curt.db,clicks.db,search.db,clicks"`
	Bytes uint64 `json:"bytes"`
}

// ClickHealth is the way of the clicks into the statistics.
type ClickHealth struct {
	Captured      uint64     `json:"captured" doc:"Written to the click log."`
	Counted       uint64     `json:"counted" doc:"In the statistics."`
	Dropped       uint64     `json:"dropped" doc:"Gone because the memory for them was full."`
	Lost          uint64     `json:"lost" doc:"Gone because the click log was full before they were counted."`
	Killed        uint64     `json:"killed" doc:"Gone with the process before, which was killed before it wrote them."`
	KilledUnknown bool       `json:"killed_unknown" doc:"The process before was killed, or its machine went down, and nobody knows how many clicks that cost."`
	UnstoredSince *time.Time `json:"unstored_since" doc:"Since when counts are in memory and in the click log alone, because they cannot be written; null: they are written."`
	UpdatedAt     *time.Time `json:"updated_at" doc:"When the statistics held every click last; null: not yet since the start."`
	CompleteUntil *time.Time `json:"complete_until" doc:"Every click before it is counted; null: not known yet."`
}

// LinkHealth is what was seen of the links themselves.
type LinkHealth struct {
	Damaged int    `json:"damaged" doc:"Links that were found damaged since the start, up to 1,000. curt doctor finds all."`
	Example string `json:"damaged_example" doc:"One of them, for people to read; empty: none was found."`
}

// SearchHealth is the index of the links.
type SearchHealth struct {
	Complete bool   `json:"complete" doc:"It knows every link; until then searches miss some."`
	Indexed  uint64 `json:"indexed" doc:"Links that were brought in, new and changed ones."`
}

// CacheHealth is what is known of links in memory.
type CacheHealth struct {
	Links    uint64 `json:"links"`
	Bytes    uint64 `json:"bytes"`
	Failures uint64 `json:"failures" doc:"Questions that the link store did not answer."`

	FailedAt *time.Time `json:"failed_at" doc:"The last of these; null: there was none."`
}

// ReviewHealth is what waits for moderators.
type ReviewHealth struct {
	Open    int `json:"open"`
	Overdue int `json:"overdue" doc:"Those that have waited too long."`
}

// ListHealth is the lists of one setting, taken together.
type ListHealth struct {
	Name     string     `json:"name" enum:"blocklists,allowlists,reserved_words,refused_words"`
	Entries  int        `json:"entries"`
	Strange  int        `json:"strange_lines" doc:"Lines that are not understood and have no effect."`
	Unusable int        `json:"unusable" doc:"Lists whose newest version could not be used; the one before stays."`
	OldestAt *time.Time `json:"oldest_at" doc:"When the oldest file was written; null: none could be used."`
}

func (a *api) healthOperation(d describer) *operation {
	return &operation{
		Operation: huma.Operation{
			Method: http.MethodGet, Path: healthPath, OperationID: "get-health", Summary: "Show how the server does",
			Description: "What the server knows without looking: it asks no store, and may be asked every second. `curt doctor` looks.",
			Responses:   d.answers(200, "How the server does.", Health{}, nil),
		},
		action: auth.Operate, serve: (*call).getHealth,
	}
}

func (c *call) getHealth() error { return c.json(http.StatusOK, c.api.health(c.now)) }
