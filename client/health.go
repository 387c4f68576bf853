package client

import (
	"context"
	"net/http"
	"time"
)

// Health is how the server does. Counts are of the time since its start.
type Health struct {
	Status    string    `json:"status"`   // ok, starting, draining or unavailable
	Concerns  []Concern `json:"concerns"` // what an operator should look at, the gravest first
	Version   string    `json:"version"`
	StartedAt time.Time `json:"started_at"`
	At        time.Time `json:"at"` // the clock of the server

	Disk struct {
		FreeBytes *uint64 `json:"free_bytes"` // nil = the disk does not say
		Files     []struct {
			Name  string `json:"name"`
			Bytes uint64 `json:"bytes"`
		} `json:"files"`
	} `json:"disk"`
	Clicks struct {
		Captured      uint64     `json:"captured"`
		Counted       uint64     `json:"counted"`
		Dropped       uint64     `json:"dropped"`
		Lost          uint64     `json:"lost"`
		UnstoredSince *time.Time `json:"unstored_since"` // nil = counts are written
		UpdatedAt     *time.Time `json:"updated_at"`
		CompleteUntil *time.Time `json:"complete_until"`
	} `json:"clicks"`
	Search struct {
		Complete bool   `json:"complete"`
		Indexed  uint64 `json:"indexed"`
	} `json:"search"`
	Cache struct {
		Links    uint64 `json:"links"`
		Bytes    uint64 `json:"bytes"`
		Failures uint64 `json:"failures"`

		FailedAt *time.Time `json:"failed_at"` // nil = none
	} `json:"cache"`
	Links struct {
		Damaged int    `json:"damaged"`         // found since the start, up to 1,000
		Example string `json:"damaged_example"` // one of them, for people
	} `json:"links"`
	Reviews struct {
		Open    int `json:"open"`
		Overdue int `json:"overdue"`
	} `json:"reviews"`
	Lists []struct {
		Name         string     `json:"name"`
		Entries      int        `json:"entries"`
		StrangeLines int        `json:"strange_lines"`
		Unusable     int        `json:"unusable"`
		OldestAt     *time.Time `json:"oldest_at"` // nil = none could be used
	} `json:"lists"`
	CertificateExpiresAt *time.Time `json:"certificate_expires_at"` // nil = the server speaks no TLS itself
	LastBackupAt         *time.Time `json:"last_backup_at"`         // nil = none is noted
}

// Concern is something that an operator should look at.
type Concern struct {
	Name  string `json:"name"`
	Grave bool   `json:"grave"`
	Text  string `json:"text"` // for people
}

// Health returns how the server does. It takes the scope admin.
func (c *Client) Health(ctx context.Context) (Health, error) {
	var h Health
	err := c.call(ctx, http.MethodGet, "/api/v1/health", nil, nil, &h)
	return h, err
}
