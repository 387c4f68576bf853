package decisions

import (
	"net/http"
	"slices"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"curt/internal/auth"
	"curt/internal/httpapi/kernel"
	"curt/internal/link"
	"curt/internal/moderation"
	"curt/internal/moderation/moderator"
)

const (
	bansPath = "/api/v1/bans"
	// PreviewPath bans nothing.
	PreviewPath = bansPath + "/preview"
)

// Ban is a ban that stands.
type Ban struct {
	Sequence uint64    `json:"sequence" doc:"The number of the journal entry that created the ban; identifies the ban."`
	Kind     string    `json:"kind" enum:"link,workspace,key,host,domain,network"`
	Name     string    `json:"name"`
	Safety   string    `json:"safety" enum:"warn,quarantined,blocked,legal" doc:"The minimum safety of matching links."`
	Reason   *string   `json:"reason"`
	BannedAt time.Time `json:"banned_at"`
	BannedBy string    `json:"banned_by" doc:"The id of a key, or admin."`
	Walk     *BanWalk  `json:"walk,omitzero" doc:"Progress of the scan that applies the ban to existing links, newest first; absent once it is complete."`
}

// BanWalk is how far a ban has come.
type BanWalk struct {
	LinksSeen    uint64 `json:"links_seen"`
	LinksChanged uint64 `json:"links_changed"`
}

// BanTarget is the body that names what to ban.
type BanTarget struct {
	Kind string `json:"kind" enum:"link,workspace,key,host,domain,network" doc:"domain covers a host and its subdomains; network is an address range."`
	Name string `json:"name" minLength:"1" maxLength:"400" doc:"CODE or DOMAIN/CODE, the id of a workspace or of a key, a host, an address or a range such as 192.0.2.0/24."`
}

// BanCreate is the body that bans.
type BanCreate struct {
	BanTarget
	Safety kernel.Opt[string] `json:"safety" required:"false" enum:"warn,quarantined,blocked,legal" doc:"The minimum safety of matching links from now on. Default: blocked."`
	Reason string             `json:"reason" minLength:"1" maxLength:"1024" doc:"The reason, for the journal."`
}

// BanPreview is what a ban would mean for the links that there are.
type BanPreview struct {
	Kind     string       `json:"kind" enum:"link,workspace,key,host,domain,network"`
	Name     string       `json:"name" doc:"The name in canonical form."`
	Links    uint64       `json:"links" doc:"Number of matching links; a minimum unless complete."`
	Seen     uint64       `json:"links_seen" doc:"Number of links scanned, newest first."`
	Complete bool         `json:"complete"`
	Sample   []BannedLink `json:"sample" nullable:"false" maxItems:"10"`
	Note     string       `json:"note" doc:"The effect of the ban, in one sentence."`
}

// BannedLink is a link that a ban would mean.
type BannedLink struct {
	Domain    string `json:"domain"`
	ShortCode string `json:"short_code"`
	ShortURL  string `json:"short_url" format:"uri"`
	LongURL   string `json:"long_url" format:"uri"`
}

// BanList is a page of bans.
type BanList struct {
	Bans       []Ban  `json:"bans" nullable:"false"`
	NextCursor string `json:"next_cursor,omitzero" doc:"Cursor of the next page; absent on the last page."`
}

func (m *Moderation) banOperations(d kernel.Describer) []*kernel.Operation {
	return []*kernel.Operation{
		{
			Operation: huma.Operation{
				Method: http.MethodPost, Path: bansPath, OperationID: "create-ban", Summary: "Ban a link, a workspace, a key, a host, a domain or a network",
				Description: "Takes effect with this response: matching links can no longer be created, and existing ones get at least the ban's safety, newest " +
					"first. A network ban only stops new requests from that network: links do not store where they were created. An existing ban of the same entity is replaced.",
				MaxBodyBytes: MaxBody, RequestBody: d.Body(BanCreate{}, "application/json"),
				Responses: d.Answers(201, "The ban.", Ban{}, nil, 404, 408, 413, 415, 507),
			},
			Action: auth.Moderate, Serve: kernel.Take(http.StatusCreated, m.createBan),
			Examples: []kernel.Example{{Name: "domain", Summary: "A host and its subdomains", Body: `{"kind":"domain","name":"evil.example","reason":"phishing kits on every host"}`}},
		},
		{
			Operation: huma.Operation{
				Method: http.MethodPost, Path: PreviewPath, OperationID: "preview-ban", Summary: "Preview the effect of a ban",
				Description:  "Bans nothing. Scans the newest links first, for at most two seconds.",
				MaxBodyBytes: MaxBody, RequestBody: d.Body(BanTarget{}, "application/json"),
				Responses: d.Answers(200, "The effect of the ban.", BanPreview{}, nil, 404, 408, 413, 415),
			},
			Action: auth.Moderate, Serve: kernel.Take(http.StatusOK, m.previewBan),
			Examples: []kernel.Example{{Name: "host", Summary: "One host", Body: `{"kind":"host","name":"example.com"}`}},
		},
		{
			Operation: huma.Operation{
				Method: http.MethodGet, Path: bansPath, OperationID: "list-bans", Summary: "List active bans, newest first",
				Parameters: append(pageParams("bans"), entityParam("Only the ban on this entity: KIND:NAME, such as host:evil.example.")),
				Responses:  d.Answers(200, "A page of bans.", BanList{}, nil),
			},
			Action: auth.Moderate, Serve: kernel.Reply(http.StatusOK, m.listBans),
		},
		{
			Operation: huma.Operation{
				Method: http.MethodDelete, Path: bansPath + "/{sequence}", OperationID: "lift-ban", Summary: "Lift a ban",
				Description: "Affected links return to the safety that they have without the ban.",
				Parameters: []*huma.Param{
					sequenceParam("The number of the ban.", 3),
					kernel.QueryParam("reason", "The reason, for the journal.", &huma.Schema{Type: huma.TypeString}),
				},
				Responses: d.Answers(204, "The ban was lifted.", nil, nil, 404, 507),
			},
			Action: auth.Moderate, Serve: kernel.Done(http.StatusNoContent, m.liftBan),
		},
	}
}

// Bans returns bans as the API shows them. It points into list.
func (m *Moderation) Bans(list []moderator.Ban) []Ban {
	shown := make([]Ban, len(list))
	for i := range list {
		b, e := &list[i], m.entity(list[i].Entry.Entity)
		shown[i] = Ban{
			Sequence: b.Entry.Sequence, Kind: e.Kind, Name: e.Name, Safety: b.Entry.Safety.String(),
			Reason: kernel.Optional(&b.Entry.Reason.Body), BannedAt: b.Entry.At, BannedBy: b.Entry.Actor,
		}
		if b.Walk != nil {
			shown[i].Walk = &BanWalk{LinksSeen: b.Walk.Seen, LinksChanged: b.Walk.Changed}
		}
	}
	return shown
}

func (m *Moderation) createBan(c *kernel.Call, body *BanCreate) (shown Ban, err error) {
	safety := link.Blocked
	if f := body.Safety; f.Given && !f.Null {
		var ok bool
		if safety, ok = link.ParseSafety(f.Value); !ok {
			return shown, kernel.BadField("safety", "expected warn, quarantined, blocked or legal")
		}
	}
	e, err := m.entityOf(body.Kind, body.Name)
	if err != nil {
		return shown, err
	}
	ban, err := m.Moderator.Ban(c.R.Context(), c.Now, c.Who.KeyID, e, safety, body.Reason)
	if err != nil {
		return shown, err
	}
	return m.Bans([]moderator.Ban{ban})[0], nil
}

func (m *Moderation) previewBan(c *kernel.Call, body *BanTarget) (shown BanPreview, err error) {
	e, err := m.entityOf(body.Kind, body.Name)
	if err != nil {
		return shown, err
	}
	p, err := m.Moderator.Preview(c.R.Context(), e)
	if err != nil {
		return shown, err
	}
	named := m.entity(p.Entity)
	shown = BanPreview{
		Kind: named.Kind, Name: named.Name, Links: p.Links, Seen: p.Seen, Complete: p.Complete, Note: banNote(&p),
		Sample: make([]BannedLink, len(p.Sample)),
	}
	for i := range p.Sample {
		l := &p.Sample[i]
		shown.Sample[i] = BannedLink{
			Domain: m.Links.Host(l.Key.Domain), ShortCode: string(l.Key.Code), ShortURL: m.Links.ShortURL(l.Key), LongURL: l.Destination,
		}
	}
	return shown, nil
}

// banNote says what a ban would do.
func banNote(p *moderator.Preview) string {
	switch p.Entity.Kind {
	case moderation.KindNetwork:
		return "New links, reports and appeals from this network are refused. Existing links are not affected: links do not store where they were created."
	case moderation.KindLink:
		return "The link is blocked or flagged."
	default:
	}
	note := "New matching links are refused at once. Existing ones follow, newest first; the list of bans shows the progress."
	if p.Links == 0 && p.Complete && (p.Entity.Kind == moderation.KindWorkspace || p.Entity.Kind == moderation.KindKey) {
		note = "No links match this " + string(p.Entity.Kind) + ": check the name. " + note
	}
	return note
}

func (m *Moderation) listBans(c *kernel.Call) (list BanList, err error) {
	limit, err := c.Integer("limit")
	if err != nil {
		return list, err
	}
	of, err := m.entityFilter(c)
	if err != nil {
		return list, err
	}
	walk := []string{"bans", string(of.Kind), of.Name}
	until, err := before(c, walk)
	if err != nil {
		return list, err
	}
	found := slices.DeleteFunc(m.Moderator.Bans(), func(b moderator.Ban) bool {
		return of != (moderation.Entity{}) && b.Entry.Entity != of || until != 0 && b.Entry.Sequence >= until
	})
	if len(found) > limit {
		found = found[:limit]
		list.NextCursor = seal(c, walk, found[limit-1].Entry.Sequence)
	}
	list.Bans = m.Bans(found)
	return list, nil
}

func (m *Moderation) liftBan(c *kernel.Call) error {
	n, err := sequence(c)
	if err != nil {
		return err
	}
	reason := c.Query.Get("reason")
	if reason == "" {
		reason = "lifted"
	}
	_, err = m.Moderator.Lift(c.R.Context(), c.Now, c.Who.KeyID, n, reason)
	return err
}
