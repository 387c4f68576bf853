package httpapi

import (
	"net/http"
	"slices"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"curt/internal/auth"
	"curt/internal/link"
	"curt/internal/moderation"
)

const (
	bansPath    = "/api/v1/bans"
	previewPath = bansPath + "/preview"
)

// Ban is a ban that stands.
type Ban struct {
	Sequence uint64    `json:"sequence" doc:"Of its entry in the journal; names the ban."`
	Kind     string    `json:"kind" enum:"link,workspace,key,host,domain,network"`
	Name     string    `json:"name"`
	Safety   string    `json:"safety" enum:"warn,quarantined,blocked,legal" doc:"What links that it means are at least."`
	Reason   *string   `json:"reason"`
	BannedAt time.Time `json:"banned_at"`
	BannedBy string    `json:"banned_by" doc:"The id of a key, or admin."`
	Walk     *BanWalk  `json:"walk,omitzero" doc:"While links that were there before are looked for, newest first; absent once that is over."`
}

// BanWalk is how far a ban has come.
type BanWalk struct {
	LinksSeen    uint64 `json:"links_seen"`
	LinksChanged uint64 `json:"links_changed"`
}

// BanTarget is the body that names what to ban.
type BanTarget struct {
	Kind string `json:"kind" enum:"link,workspace,key,host,domain,network" doc:"domain means a host and all below it; network an address range."`
	Name string `json:"name" minLength:"1" maxLength:"400" doc:"CODE or DOMAIN/CODE, the id of a workspace or of a key, a host, an address or a range such as 192.0.2.0/24."`
}

// BanCreate is the body that bans.
type BanCreate struct {
	BanTarget
	Safety opt[string] `json:"safety" required:"false" enum:"warn,quarantined,blocked,legal" doc:"What links that it means are at least from now on. Default: blocked."`
	Reason string      `json:"reason" minLength:"1" maxLength:"1024" doc:"Why, for the journal."`
}

// BanPreview is what a ban would mean for the links that there are.
type BanPreview struct {
	Kind     string       `json:"kind" enum:"link,workspace,key,host,domain,network"`
	Name     string       `json:"name" doc:"As the ban would have it."`
	Links    uint64       `json:"links" doc:"That it means; at least so many unless complete."`
	Seen     uint64       `json:"links_seen" doc:"That were looked at, the newest first."`
	Complete bool         `json:"complete"`
	Sample   []BannedLink `json:"sample" nullable:"false" maxItems:"10"`
	Note     string       `json:"note" doc:"What the ban would do, in a sentence."`
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
	NextCursor string `json:"next_cursor,omitzero" doc:"Continues the walk; absent at its end."`
}

func (a *api) banOperations(d describer) []*operation {
	return []*operation{
		{
			Operation: huma.Operation{
				Method: http.MethodPost, Path: bansPath, OperationID: "create-ban", Summary: "Ban a link, a workspace, a key, a host, a domain or a network",
				Description: "From this answer on no link is made that the ban means, and those that are there get at least its safety, newest " +
					"first. A network stops what comes from there only: no link says where it was made. A ban that stands is replaced.",
				MaxBodyBytes: maxDecisionBody, RequestBody: d.body(BanCreate{}, "application/json"),
				Responses: d.answers(201, "The ban.", Ban{}, nil, 404, 408, 413, 415, 507),
			},
			action: auth.Moderate, serve: (*call).createBan,
			examples: []example{{name: "domain", summary: "A host and all below it", body: `{"kind":"domain","name":"evil.example","reason":"phishing kits on every host"}`}},
		},
		{
			Operation: huma.Operation{
				Method: http.MethodPost, Path: previewPath, OperationID: "preview-ban", Summary: "Count the links that a ban would mean",
				Description:  "Nothing is banned. The newest links are looked at first, for two seconds at most.",
				MaxBodyBytes: maxDecisionBody, RequestBody: d.body(BanTarget{}, "application/json"),
				Responses: d.answers(200, "What the ban would mean.", BanPreview{}, nil, 404, 408, 413, 415),
			},
			action: auth.Moderate, serve: (*call).previewBan,
			examples: []example{{name: "host", summary: "One host", body: `{"kind":"host","name":"example.com"}`}},
		},
		{
			Operation: huma.Operation{
				Method: http.MethodGet, Path: bansPath, OperationID: "list-bans", Summary: "List the bans that stand, newest first",
				Parameters: append(pageParams("bans"), entityParam("Only the ban of this entity: KIND:NAME, such as host:evil.example.")),
				Responses:  d.answers(200, "A page of bans.", BanList{}, nil),
			},
			action: auth.Moderate, serve: (*call).listBans,
		},
		{
			Operation: huma.Operation{
				Method: http.MethodDelete, Path: bansPath + "/{sequence}", OperationID: "lift-ban", Summary: "End a ban",
				Description: "Links that it meant get the safety that they have without it.",
				Parameters: []*huma.Param{
					sequenceParam("The number of the ban.", 3),
					queryParam("reason", "Why, for the journal.", &huma.Schema{Type: huma.TypeString}),
				},
				Responses: d.answers(204, "The ban has ended.", nil, nil, 404, 507),
			},
			action: auth.Moderate, serve: (*call).liftBan,
		},
	}
}

// bans returns bans as the API shows them. It points into list.
func (a *api) bans(list []moderation.Ban) []Ban {
	shown := make([]Ban, len(list))
	for i := range list {
		b, e := &list[i], a.entity(list[i].Entry.Entity)
		shown[i] = Ban{
			Sequence: b.Entry.Sequence, Kind: e.Kind, Name: e.Name, Safety: b.Entry.Safety.String(),
			Reason: text(&b.Entry.Reason.Body), BannedAt: b.Entry.At, BannedBy: b.Entry.Actor,
		}
		if b.Walk != nil {
			shown[i].Walk = &BanWalk{LinksSeen: b.Walk.Seen, LinksChanged: b.Walk.Changed}
		}
	}
	return shown
}

func (c *call) createBan() error {
	var body BanCreate
	if err := decode(c.body, &body); err != nil {
		return err
	}
	safety := link.Blocked
	if f := body.Safety; f.Given && !f.Null {
		var ok bool
		if safety, ok = link.ParseSafety(f.Value); !ok {
			return badField("safety", "want warn, quarantined, blocked or legal")
		}
	}
	e, err := c.entityOf(body.Kind, body.Name)
	if err != nil {
		return err
	}
	ban, err := c.api.moderator.Ban(c.r.Context(), c.now, c.who.KeyID, e, safety, body.Reason)
	if err != nil {
		return err
	}
	return c.json(http.StatusCreated, c.api.bans([]moderation.Ban{ban})[0])
}

func (c *call) previewBan() error {
	var body BanTarget
	if err := decode(c.body, &body); err != nil {
		return err
	}
	e, err := c.entityOf(body.Kind, body.Name)
	if err != nil {
		return err
	}
	p, err := c.api.moderator.Preview(c.r.Context(), e)
	if err != nil {
		return err
	}
	named := c.api.entity(p.Entity)
	shown := BanPreview{
		Kind: named.Kind, Name: named.Name, Links: p.Links, Seen: p.Seen, Complete: p.Complete, Note: banNote(&p),
		Sample: make([]BannedLink, len(p.Sample)),
	}
	for i := range p.Sample {
		l := &p.Sample[i]
		shown.Sample[i] = BannedLink{
			Domain: c.api.sites.name(l.Key.Domain), ShortCode: string(l.Key.Code), ShortURL: c.api.sites.shortURL(l.Key), LongURL: l.Destination,
		}
	}
	return c.json(http.StatusOK, shown)
}

// banNote says what a ban would do.
func banNote(p *moderation.Preview) string {
	switch p.Entity.Kind {
	case moderation.KindNetwork:
		return "Further links, reports and appeals from there are refused. Links that were made from there stay: no link says where it was made."
	case moderation.KindLink:
		return "The link is stopped."
	case moderation.KindWorkspace, moderation.KindKey, moderation.KindHost, moderation.KindDomain:
	}
	note := "Further links like these are refused at once. Those that are there follow, the newest first; the list of bans shows how far."
	if p.Links == 0 && p.Complete && (p.Entity.Kind == moderation.KindWorkspace || p.Entity.Kind == moderation.KindKey) {
		note = "No link is of such a " + string(p.Entity.Kind) + ": look at its name again. " + note
	}
	return note
}

func (c *call) listBans() error {
	limit, err := c.integer("limit")
	if err != nil {
		return err
	}
	of, err := c.entityFilter()
	if err != nil {
		return err
	}
	walk := []string{"bans", string(of.Kind), of.Name}
	before, err := c.after(walk)
	if err != nil {
		return err
	}
	found := slices.DeleteFunc(c.api.moderator.Bans(), func(b moderation.Ban) bool {
		return of != (moderation.Entity{}) && b.Entry.Entity != of || before != 0 && b.Entry.Sequence >= before
	})
	var list BanList
	if len(found) > limit {
		found = found[:limit]
		list.NextCursor = c.api.sealSequence(walk, found[limit-1].Entry.Sequence)
	}
	list.Bans = c.api.bans(found)
	return c.json(http.StatusOK, list)
}

func (c *call) liftBan() error {
	n, err := c.sequence()
	if err != nil {
		return err
	}
	reason := c.query.Get("reason")
	if reason == "" {
		reason = "lifted"
	}
	if _, err := c.api.moderator.Lift(c.r.Context(), c.now, c.who.KeyID, n, reason); err != nil {
		return err
	}
	commonHeaders(c.w.Header())
	c.w.WriteHeader(http.StatusNoContent)
	return nil
}
