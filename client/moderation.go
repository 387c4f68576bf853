package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// Entity is what a ban or an entry of the journal is about.
type Entity struct {
	Kind string `json:"kind"` // link, workspace, key, host, domain or network
	Name string `json:"name"` // of a link "CODE" or "DOMAIN/CODE"
}

// String returns "kind:name".
func (e Entity) String() string { return e.Kind + ":" + e.Name }

// JournalEntry is one line of the journal of moderation.
type JournalEntry struct {
	Sequence uint64    `json:"sequence"`
	At       time.Time `json:"at"`
	Entity   Entity    `json:"entity"`
	LinkID   string    `json:"link_id"`
	Action   string    `json:"action"` // decide, ban, lift, answer, erase, list or unlist
	Safety   string    `json:"safety"`
	Score    int       `json:"score"`
	Actor    string    `json:"actor"`
	Reason   string    `json:"reason"`
	Evidence string    `json:"evidence"`
	Erased   bool      `json:"erased"`
	Hash     string    `json:"hash"`
}

// Ban is a ban that stands; Walk is nil once every link was looked at.
type Ban struct {
	Sequence uint64    `json:"sequence"`
	Kind     string    `json:"kind"`
	Name     string    `json:"name"`
	Safety   string    `json:"safety"`
	Reason   string    `json:"reason"`
	BannedAt time.Time `json:"banned_at"`
	BannedBy string    `json:"banned_by"`
	Walk     *BanWalk  `json:"walk"`
}

// BanWalk is how far a ban has come.
type BanWalk struct {
	LinksSeen    uint64 `json:"links_seen"`
	LinksChanged uint64 `json:"links_changed"`
}

// NewBan asks for a ban.
type NewBan struct {
	Entity

	Safety string `json:"safety,omitempty"` // of the links that it means; "" = blocked
	Reason string `json:"reason"`
}

// BanPreview is what a ban would mean.
type BanPreview struct {
	Entity

	Links     uint64       `json:"links"` // at least, unless Complete
	LinksSeen uint64       `json:"links_seen"`
	Complete  bool         `json:"complete"`
	Sample    []BannedLink `json:"sample"`
	Note      string       `json:"note"`
}

// BannedLink is a link that a ban would mean.
type BannedLink struct {
	Domain    string `json:"domain"`
	ShortCode string `json:"short_code"`
	ShortURL  string `json:"short_url"`
	LongURL   string `json:"long_url"`
}

// LinkSafety is what moderation says of a link.
type LinkSafety struct {
	Domain    string         `json:"domain"`
	ShortCode string         `json:"short_code"`
	Safety    string         `json:"safety"`
	Decision  *JournalEntry  `json:"decision"` // nil = nothing was ever decided
	Bans      []Ban          `json:"bans"`
	History   []JournalEntry `json:"history"`
}

// JournalQuery chooses entries; zero fields choose all.
type JournalQuery struct {
	Entity string // "kind:name"
	Actor  string
	Since  time.Time
	Cursor string
	Limit  int // 1–100; 0 = the server's choice
}

// JournalPage is one page of the journal; NextCursor is empty at the end.
type JournalPage struct {
	Entries    []JournalEntry `json:"entries"`
	NextCursor string         `json:"next_cursor"`
}

// BanPage is one page of bans; NextCursor is empty at the end.
type BanPage struct {
	Bans       []Ban  `json:"bans"`
	NextCursor string `json:"next_cursor"`
}

const (
	bansPath    = "/api/v1/bans"
	journalPath = "/api/v1/journal"
)

// Safety returns what moderation says of a link. It takes the scope admin, as all calls
// of moderation do.
func (c *Moderation) Safety(ctx context.Context, code string, options ...LinkOption) (LinkSafety, error) {
	var s LinkSafety
	err := c.below(ctx, http.MethodGet, code, "/safety", options, nil, &s)
	return s, err
}

// Decide gives a link a safety: clean, warn, quarantined, blocked or legal. When it
// returns, this server answers accordingly.
func (c *Moderation) Decide(ctx context.Context, code, safety, reason string, options ...LinkOption) (LinkSafety, error) {
	var s LinkSafety
	err := c.below(ctx, http.MethodPut, code, "/safety", options, map[string]string{"safety": safety, "reason": reason}, &s)
	return s, err
}

// Ban bans from now on. Links that are there already are looked for behind the answer.
func (c *Moderation) Ban(ctx context.Context, b NewBan) (Ban, error) {
	var made Ban
	err := c.call(ctx, http.MethodPost, bansPath, nil, b, &made)
	return made, err
}

// PreviewBan counts the links that a ban would mean, and bans nothing.
func (c *Moderation) PreviewBan(ctx context.Context, e Entity) (BanPreview, error) {
	var p BanPreview
	err := c.call(ctx, http.MethodPost, bansPath+"/preview", nil, e, &p)
	return p, err
}

// Bans returns up to limit bans (1–100; 0 = the server's choice), newest first; entity
// "kind:name" asks for the one that it has.
func (c *Moderation) Bans(ctx context.Context, entity, cursor string, limit int) (BanPage, error) {
	var p BanPage
	err := c.call(ctx, http.MethodGet, bansPath, pageQuery(limit, map[string]string{"entity": entity, "cursor": cursor}), nil, &p)
	return p, err
}

// LiftBan ends a ban.
func (c *Moderation) LiftBan(ctx context.Context, sequence uint64, reason string) error {
	return c.call(ctx, http.MethodDelete, bansPath+"/"+strconv.FormatUint(sequence, 10), pageQuery(0, map[string]string{"reason": reason}), nil, nil)
}

// Journal returns a page of the journal, newest first.
func (c *Moderation) Journal(ctx context.Context, q JournalQuery) (JournalPage, error) {
	since := ""
	if !q.Since.IsZero() {
		since = q.Since.Format(time.RFC3339Nano)
	}
	var p JournalPage
	query := pageQuery(q.Limit, map[string]string{"entity": q.Entity, "actor": q.Actor, "since": since, "cursor": q.Cursor})
	err := c.call(ctx, http.MethodGet, journalPath, query, nil, &p)
	return p, err
}

// EraseEntry erases the texts of an entry for good, and returns the entry that says so.
func (c *Moderation) EraseEntry(ctx context.Context, sequence uint64, reason string) (JournalEntry, error) {
	var e JournalEntry
	path := journalPath + "/" + strconv.FormatUint(sequence, 10) + "/erase"
	err := c.call(ctx, http.MethodPost, path, nil, map[string]string{"reason": reason}, &e)
	return e, err
}

// RebuildSafety lets the server look at every link and give it the safety that the
// journal says, behind the answer. A journal that was changed behind the server's back is
// refused, unless force is set.
func (c *Moderation) RebuildSafety(ctx context.Context, force bool) error {
	q := url.Values{}
	if force {
		q.Set("force", "true")
	}
	return c.call(ctx, http.MethodPost, journalPath+"/rebuild", q, nil, nil)
}

// pageQuery returns the parameters that are not empty, and a limit unless it is 0.
func pageQuery(limit int, parameters map[string]string) url.Values {
	q := url.Values{}
	for name, v := range parameters {
		if v != "" {
			q.Set(name, v)
		}
	}
	if limit > 0 {
		q.Set("limit", strconv.Itoa(limit))
	}
	return q
}
