package httpapi

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"curt/internal/auth"
	"curt/internal/link"
	"curt/internal/moderation"
)

const journalPath = "/api/v1/journal"

// JournalEntry is one line of the journal of moderation.
type JournalEntry struct {
	Sequence uint64    `json:"sequence" doc:"From 1, without a gap."`
	At       time.Time `json:"at"`
	Entity   Entity    `json:"entity"`
	LinkID   *string   `json:"link_id" format:"uuid" doc:"Of an entity that is a link. An entry about the key of another link says nothing about the one that has it."`
	Action   string    `json:"action" enum:"decide,ban,lift,answer,erase" doc:"What the entry does: decides about a link, bans, ends a ban, answers an appeal, erases the texts of another entry."`
	Safety   string    `json:"safety" enum:"clean,warn,quarantined,blocked,legal"`
	Score    int       `json:"score" minimum:"0" maximum:"100" doc:"Of decisions of the policy."`
	Actor    string    `json:"actor" doc:"The id of a key, admin, or policy: no person decided."`
	Reason   *string   `json:"reason"`
	Evidence *string   `json:"evidence" doc:"What was found, as JSON, or what was reported."`
	Erased   bool      `json:"erased" doc:"There were texts, and they are gone."`
	Hash     string    `json:"hash" pattern:"^[0-9a-f]{64}$" doc:"SHA-256 of the entry and of the hash before."`
}

// Entity is what an entry or a ban is about.
type Entity struct {
	Kind string `json:"kind" enum:"link,workspace,key,host,domain,network"`
	Name string `json:"name"`
}

// JournalPage is a page of the journal.
type JournalPage struct {
	Entries    []JournalEntry `json:"entries" nullable:"false"`
	NextCursor string         `json:"next_cursor,omitzero" doc:"Continues the walk; absent at its end."`
}

// EraseRequest is the body that erases the texts of an entry.
type EraseRequest struct {
	Reason string `json:"reason" minLength:"1" maxLength:"1000" doc:"Why, for the journal."`
}

func (a *api) journalOperations(d describer) []*operation {
	return []*operation{
		{
			Operation: huma.Operation{
				Method: http.MethodGet, Path: journalPath, OperationID: "list-journal", Summary: "Read the journal of moderation, newest first",
				Parameters: append(pageParams("entries"),
					entityParam("Only entries about this entity: KIND:NAME, such as link:CODE, link:DOMAIN/CODE or host:evil.example."),
					queryParam("actor", "Only entries of this key, or of policy.", &huma.Schema{Type: huma.TypeString}),
					queryParam("since", "Only entries of this moment and later.", &huma.Schema{Type: huma.TypeString, Format: "date-time"})),
				Responses: d.answers(200, "A page of the journal.", JournalPage{}, nil),
			},
			action: auth.Moderate, serve: (*call).listJournal,
		},
		{
			Operation: huma.Operation{
				Method: http.MethodPost, Path: journalPath + "/{sequence}/erase", OperationID: "erase-entry", Summary: "Erase the texts of an entry for good",
				Description: "Reason and evidence are taken out of the entry, which names a person or what is nobody's business. What was " +
					"decided, when and by whom stays, and the chain of hashes verifies as before. The erasure has an entry of its own.",
				MaxBodyBytes: maxDecisionBody, RequestBody: d.body(EraseRequest{}, "application/json"),
				Parameters: []*huma.Param{sequenceParam("The number of the entry.", 1)},
				Responses:  d.answers(200, "The entry that says so.", JournalEntry{}, nil, 404, 408, 413, 415, 507),
			},
			action: auth.Moderate, serve: (*call).eraseEntry,
			examples: []example{{name: "person", summary: "A person asked for it", body: `{"reason":"names a person who asked to be forgotten"}`}},
		},
		{
			Operation: huma.Operation{
				Method: http.MethodPost, Path: journalPath + "/rebuild", OperationID: "rebuild-links", Summary: "Give every link the safety that the journal says",
				Description: "For links that were changed behind this service's back, as curt doctor tells. The journal is read first: one that was " +
					"changed, or lacks entries that took effect, is answered with 409 and changes no link. It goes on behind the answer, and after a restart.",
				Parameters: []*huma.Param{queryParam("force", "Whether to follow a journal that would be refused, unread.", &huma.Schema{Type: huma.TypeBoolean, Default: false})},
				Responses:  d.answers(202, "The links are being looked at.", nil, nil, 409),
			},
			action: auth.Moderate, serve: (*call).rebuildLinks,
		},
	}
}

// pageParams are those of a list that is no list of links.
func pageParams(of string) []*huma.Param {
	one, most := 1.0, 100.0
	return []*huma.Param{
		queryParam("cursor", "Where to go on: the next_cursor of the page before, with the same filters.", &huma.Schema{Type: huma.TypeString}),
		queryParam("limit", "The most "+of+" of a page.", &huma.Schema{Type: huma.TypeInteger, Minimum: &one, Maximum: &most, Default: 50}),
	}
}

func entityParam(description string) *huma.Param {
	return queryParam("entity", description, &huma.Schema{Type: huma.TypeString})
}

func sequenceParam(description string, shown int) *huma.Param {
	one := 1.0
	return &huma.Param{
		Name: "sequence", In: "path", Required: true, Description: description, Example: shown,
		Schema: &huma.Schema{Type: huma.TypeInteger, Minimum: &one},
	}
}

// entry returns an entry as the API shows it. It points into e.
func (a *api) entry(e *moderation.Entry) JournalEntry {
	shown := JournalEntry{
		Sequence: e.Sequence, At: e.At, Entity: a.entity(e.Entity), Action: string(e.Action), Safety: e.Safety.String(), Score: e.Score,
		Actor: e.Actor, Reason: text(&e.Reason.Body), Evidence: text(&e.Evidence.Body), Erased: e.Reason.Erased || e.Evidence.Erased,
		Hash: hex.EncodeToString(e.Hash[:]),
	}
	if !e.Link.IsZero() {
		id := e.Link.String()
		shown.LinkID = &id
	}
	return shown
}

func (a *api) entries(list []moderation.Entry) []JournalEntry {
	shown := make([]JournalEntry, len(list))
	for i := range list {
		shown[i] = a.entry(&list[i])
	}
	return shown
}

// entity returns an entity as people call it: the domain of a link by its name.
func (a *api) entity(e moderation.Entity) Entity {
	if k, ok := e.Key(); ok {
		e.Name = a.sites.name(k.Domain) + "/" + string(k.Code)
	}
	return Entity{Kind: string(e.Kind), Name: e.Name}
}

// entityOf returns the entity that somebody means.
func (c *call) entityOf(kind, name string) (moderation.Entity, error) {
	if domain, code, cut := strings.Cut(name, "/"); kind == string(moderation.KindLink) && cut {
		d, ok := c.api.links.Domain(domain)
		if !ok {
			return moderation.Entity{}, &moderation.InvalidError{Field: "name", Reason: "is on no domain of this service"}
		}
		name = link.Key{Domain: d, Code: link.Code(code)}.String()
	}
	return moderation.ParseEntity(moderation.Kind(kind), name)
}

// entityFilter returns the entity that the query asks for; zero = any.
func (c *call) entityFilter() (moderation.Entity, error) {
	text := c.query.Get("entity")
	if text == "" {
		return moderation.Entity{}, nil
	}
	kind, name, _ := strings.Cut(text, ":")
	e, err := c.entityOf(kind, name)
	if err != nil {
		return e, badField("entity", "want KIND:NAME, such as host:evil.example")
	}
	return e, nil
}

// after returns the sequence that a cursor of a walk goes on before; 0 = from the newest.
func (c *call) after(walk []string) (uint64, error) {
	sealed := c.query.Get("cursor")
	if sealed == "" {
		return 0, nil
	}
	at, ok := c.api.cursors.openWalk(walk, sealed)
	if !ok || len(at) != 8 {
		return 0, badField("cursor", "is not a cursor of this list")
	}
	return binary.BigEndian.Uint64([]byte(at)), nil
}

// sealSequence returns the cursor that goes on before a sequence.
func (a *api) sealSequence(walk []string, sequence uint64) string {
	return a.cursors.sealWalk(walk, string(binary.BigEndian.AppendUint64(nil, sequence)))
}

func (c *call) listJournal() error {
	limit, err := c.integer("limit")
	if err != nil {
		return err
	}
	f := moderation.Filter{Actor: c.query.Get("actor")}
	if f.Entity, err = c.entityFilter(); err != nil {
		return err
	}
	if f.Since, err = c.instant("since", time.Time{}); err != nil {
		return err
	}
	walk := []string{"journal", string(f.Entity.Kind), f.Entity.Name, f.Actor, f.Since.UTC().Format(time.RFC3339Nano)}
	before, err := c.after(walk)
	if err != nil {
		return err
	}
	found, err := c.api.moderator.Journal().Find(c.r.Context(), f, before, limit+1)
	if err != nil {
		return err
	}
	var page JournalPage
	if len(found) > limit {
		found = found[:limit]
		page.NextCursor = c.api.sealSequence(walk, found[limit-1].Sequence)
	}
	page.Entries = c.api.entries(found)
	return c.json(http.StatusOK, page)
}

// sequence returns the number that the path names. What is none is no entry's.
func (c *call) sequence() (uint64, error) {
	n, err := strconv.ParseUint(c.r.PathValue("sequence"), 10, 64)
	if err != nil || n == 0 {
		return 0, moderation.ErrNotFound
	}
	return n, nil
}

func (c *call) eraseEntry() error {
	n, err := c.sequence()
	if err != nil {
		return err
	}
	var body EraseRequest
	if err := decode(c.body, &body); err != nil {
		return err
	}
	said, err := c.api.moderator.Erase(c.r.Context(), c.now, c.who.KeyID, n, body.Reason)
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, c.api.entry(&said))
}

func (c *call) rebuildLinks() error {
	force, err := c.flag("force")
	if err != nil {
		return err
	}
	err = c.api.moderator.Rebuild(c.r.Context(), force)
	if errors.Is(err, moderation.ErrBroken) { // which entry, is for whoever may ask for this
		return &refusal{kind: kindBroken(), detail: err.Error()}
	}
	if err != nil {
		return err
	}
	commonHeaders(c.w.Header())
	c.w.WriteHeader(http.StatusAccepted)
	return nil
}
