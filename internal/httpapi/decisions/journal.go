package decisions

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
	"curt/internal/httpapi/kernel"
	"curt/internal/link"
	"curt/internal/moderation"
)

// maxName bounds the name of an entity in a filter, in bytes.
const maxName = 400

const journalPath = "/api/v1/journal"

// JournalEntry is one line of the journal of moderation.
type JournalEntry struct {
	Sequence uint64    `json:"sequence" doc:"Consecutive, starting at 1."`
	At       time.Time `json:"at"`
	Entity   Entity    `json:"entity"`
	LinkID   *string   `json:"link_id" format:"uuid" doc:"The id of the link, if the entity is one. Entries about another link with the same code do not apply."`
	Action   string    `json:"action" enum:"decide,ban,lift,answer,erase,list,unlist" doc:"The action: a decision about a link, a ban, the lift of a ban, the answer to an appeal, the erasure of the texts of another entry, or an entry that was added to a list or removed."`
	Safety   string    `json:"safety" enum:"clean,warn,quarantined,blocked,legal"`
	Score    int       `json:"score" minimum:"0" maximum:"100" doc:"The score; policy decisions only."`
	Actor    string    `json:"actor" doc:"The id of a key, admin, or policy for an automatic decision."`
	Reason   *string   `json:"reason"`
	Evidence *string   `json:"evidence" doc:"The findings as JSON, or the report."`
	Erased   bool      `json:"erased" doc:"The texts of this entry were erased."`
	Hash     string    `json:"hash" pattern:"^[0-9a-f]{64}$" doc:"SHA-256 of the entry and the previous hash."`
}

// Entity is what an entry or a ban is about.
type Entity struct {
	Kind string `json:"kind" enum:"link,workspace,key,host,domain,network,destination,refused_word,look_alike,allowed_destination"`
	Name string `json:"name"`
}

// JournalPage is a page of the journal.
type JournalPage struct {
	Entries    []JournalEntry `json:"entries" nullable:"false"`
	NextCursor string         `json:"next_cursor,omitzero" doc:"Cursor of the next page; absent on the last page."`
}

// EraseRequest is the body that erases the texts of an entry.
type EraseRequest struct {
	Reason string `json:"reason" minLength:"1" maxLength:"1000" doc:"The reason, for the journal."`
}

func (m *Moderation) journalOperations(d kernel.Describer) []*kernel.Operation {
	return []*kernel.Operation{
		{
			Operation: huma.Operation{
				Method: http.MethodGet, Path: journalPath, OperationID: "list-journal", Summary: "List journal entries, newest first",
				Parameters: append(pageParams("entries"),
					entityParam("Only entries about this entity: KIND:NAME, such as link:CODE, link:DOMAIN/CODE or host:evil.example."),
					kernel.QueryParam("actor", "Only entries by this key, or by policy.", &huma.Schema{Type: huma.TypeString}),
					kernel.QueryParam("since", "Only entries at or after this time.", &huma.Schema{Type: huma.TypeString, Format: "date-time"})),
				Responses: d.Answers(200, "A page of the journal.", JournalPage{}, nil),
			},
			Action: auth.Moderate, Serve: kernel.Reply(http.StatusOK, m.listJournal),
		},
		{
			Operation: huma.Operation{
				Method: http.MethodPost, Path: journalPath + "/{sequence}/erase", OperationID: "erase-entry", Summary: "Permanently erase the texts of a journal entry",
				Description: "Removes the reason and evidence of an entry, for example because they contain personal data. The decision, " +
					"its time and its actor stay, and the hash chain still verifies. The erasure is recorded as an entry.",
				MaxBodyBytes: MaxBody, RequestBody: d.Body(EraseRequest{}, "application/json"),
				Parameters: []*huma.Param{sequenceParam("The number of the entry.", 1)},
				Responses:  d.Answers(200, "The entry that records the erasure.", JournalEntry{}, nil, 404, 408, 413, 415, 507),
			},
			Action: auth.Moderate, Serve: kernel.Reply(http.StatusOK, m.eraseEntry),
			Examples: []kernel.Example{{Name: "person", Summary: "Erasure request", Body: `{"reason":"names a person who asked to be forgotten"}`}},
		},
		{
			Operation: huma.Operation{
				Method: http.MethodPost, Path: journalPath + "/rebuild", OperationID: "rebuild-links", Summary: "Rebuild the safety of all links from the journal",
				Description: "For links that were changed outside this service, as reported by curt doctor. The journal is verified first: if it was " +
					"changed or lacks entries, the response is 409 and no link changes. The rebuild continues in the background and after a restart.",
				Parameters: []*huma.Param{kernel.QueryParam("force", "Skip the verification and use the journal as it is.", &huma.Schema{Type: huma.TypeBoolean, Default: false})},
				Responses:  d.Answers(202, "The rebuild has started.", nil, nil, 409),
			},
			Action: auth.Moderate, Serve: kernel.Done(http.StatusAccepted, m.rebuildLinks),
		},
	}
}

// pageParams are those of a list that is no list of links.
func pageParams(of string) []*huma.Param {
	one, most := 1.0, 100.0
	return []*huma.Param{
		kernel.QueryParam("cursor", "The next_cursor of the previous page; use it with the same filters.", &huma.Schema{Type: huma.TypeString}),
		kernel.QueryParam("limit", "Maximum number of "+of+" per page.", &huma.Schema{Type: huma.TypeInteger, Minimum: &one, Maximum: &most, Default: 50}),
	}
}

func entityParam(description string) *huma.Param {
	return kernel.QueryParam("entity", description, &huma.Schema{Type: huma.TypeString})
}

func sequenceParam(description string, shown int) *huma.Param {
	one := 1.0
	return &huma.Param{
		Name: "sequence", In: "path", Required: true, Description: description, Example: shown,
		Schema: &huma.Schema{Type: huma.TypeInteger, Minimum: &one},
	}
}

// entry returns an entry as the API shows it. It points into e.
func (m *Moderation) entry(e *moderation.Entry) JournalEntry {
	shown := JournalEntry{
		Sequence: e.Sequence, At: e.At, Entity: m.entity(e.Entity), Action: string(e.Action), Safety: e.Safety.String(), Score: e.Score,
		Actor: e.Actor, Reason: kernel.Optional(&e.Reason.Body), Evidence: kernel.Optional(&e.Evidence.Body), Erased: e.Reason.Erased || e.Evidence.Erased,
		Hash: hex.EncodeToString(e.Hash[:]),
	}
	if !e.Link.IsZero() {
		id := e.Link.String()
		shown.LinkID = &id
	}
	return shown
}

// Entries returns entries as the API shows them.
func (m *Moderation) Entries(list []moderation.Entry) []JournalEntry {
	shown := make([]JournalEntry, len(list))
	for i := range list {
		shown[i] = m.entry(&list[i])
	}
	return shown
}

// entity returns an entity as people call it: the domain of a link by its name.
func (m *Moderation) entity(e moderation.Entity) Entity {
	if k, ok := e.Key(); ok {
		e.Name = m.Links.Host(k.Domain) + "/" + string(k.Code)
	}
	return Entity{Kind: string(e.Kind), Name: e.Name}
}

// entityOf returns the entity that somebody means.
func (m *Moderation) entityOf(kind, name string) (moderation.Entity, error) {
	if domain, code, cut := strings.Cut(name, "/"); kind == string(moderation.KindLink) && cut {
		d, ok := m.Links.Service.Domain(domain)
		if !ok {
			return moderation.Entity{}, &moderation.InvalidError{Field: "name", Reason: "unknown domain"}
		}
		name = link.Key{Domain: d, Code: link.Code(code)}.String()
	}
	return moderation.ParseEntity(moderation.Kind(kind), name)
}

// entityFilter returns the entity that the query asks for; zero = any.
func (m *Moderation) entityFilter(c *kernel.Call) (moderation.Entity, error) {
	text := c.Query.Get("entity")
	if text == "" {
		return moderation.Entity{}, nil
	}
	kind, name, _ := strings.Cut(text, ":")
	if e := (moderation.Entity{Kind: moderation.Kind(kind), Name: name}); e.Kind == moderation.KindDestination {
		if _, _, ok := e.Destination(); ok { // as the journal shows it; no other spelling exists
			return e, nil
		}
	}
	if listed := (moderation.Entity{Kind: moderation.Kind(kind), Name: name}); listed.Kind.Listed() && name != "" && len(name) <= maxName {
		return listed, nil
	}
	e, err := m.entityOf(kind, name)
	if err != nil {
		return e, kernel.BadField("entity", "expected KIND:NAME, such as host:evil.example")
	}
	return e, nil
}

// before returns the sequence that the query's cursor continues before; 0 = from the newest.
func before(c *kernel.Call, walk []string) (uint64, error) {
	at, err := c.Unseal(walk)
	switch {
	case err != nil || at == "":
		return 0, err
	case len(at) != 8:
		return 0, kernel.BadCursor()
	}
	return binary.BigEndian.Uint64([]byte(at)), nil
}

// seal returns the cursor that continues before a sequence.
func seal(c *kernel.Call, walk []string, sequence uint64) string {
	return c.Seal(walk, string(binary.BigEndian.AppendUint64(nil, sequence)))
}

func (m *Moderation) listJournal(c *kernel.Call) (page JournalPage, err error) {
	limit, err := c.Integer("limit")
	if err != nil {
		return page, err
	}
	f := moderation.Filter{Actor: c.Query.Get("actor")}
	if f.Entity, err = m.entityFilter(c); err != nil {
		return page, err
	}
	if f.Since, err = c.Instant("since", time.Time{}); err != nil {
		return page, err
	}
	walk := []string{"journal", string(f.Entity.Kind), f.Entity.Name, f.Actor, f.Since.UTC().Format(time.RFC3339Nano)}
	until, err := before(c, walk)
	if err != nil {
		return page, err
	}
	found, err := m.Moderator.Journal().Find(c.R.Context(), f, until, limit+1)
	if err != nil {
		return page, err
	}
	if len(found) > limit {
		found = found[:limit]
		page.NextCursor = seal(c, walk, found[limit-1].Sequence)
	}
	page.Entries = m.Entries(found)
	return page, nil
}

// sequence returns the number that the path names. What is none is no entry's.
func sequence(c *kernel.Call) (uint64, error) {
	n, err := strconv.ParseUint(c.R.PathValue("sequence"), 10, 64)
	if err != nil || n == 0 {
		return 0, moderation.ErrNotFound
	}
	return n, nil
}

func (m *Moderation) eraseEntry(c *kernel.Call) (shown JournalEntry, err error) {
	n, err := sequence(c)
	if err != nil {
		return shown, err
	}
	var body EraseRequest
	if err := kernel.Decode(c.Body, &body); err != nil {
		return shown, err
	}
	said, err := m.Moderator.Erase(c.R.Context(), c.Now, c.Who.KeyID, n, body.Reason)
	if err != nil {
		return shown, err
	}
	return m.entry(&said), nil
}

func (m *Moderation) rebuildLinks(c *kernel.Call) error {
	force, err := c.Flag("force")
	if err != nil {
		return err
	}
	err = m.Moderator.Rebuild(c.R.Context(), force)
	if errors.Is(err, moderation.ErrBroken) { // which entry, is for whoever may ask for this
		return kernel.Refuse(kernel.KindBroken(), err.Error())
	}
	return err
}
