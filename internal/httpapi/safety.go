package httpapi

import (
	"errors"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"curt/internal/auth"
	"curt/internal/link"
	"curt/internal/moderation"
)

// maxDecisionBody bounds the body of a decision or a ban in bytes: a reason and a name,
// even when JSON escapes each byte.
const maxDecisionBody = 16 << 10

// historySize is how many entries the safety of a link shows.
const historySize = 20

const safeties = "clean,warn,quarantined,blocked,legal"

// LinkModeration is what moderation says of a link, for moderators.
type LinkModeration struct {
	Domain    string         `json:"domain"`
	ShortCode string         `json:"short_code"`
	Safety    string         `json:"safety" enum:"clean,warn,quarantined,blocked,legal" doc:"As it stands: that of decision or of one of bans, whichever is graver."`
	Decision  *JournalEntry  `json:"decision,omitzero" doc:"The link's own decision that stands; absent where nothing was ever decided."`
	Bans      []Ban          `json:"bans" nullable:"false" doc:"The bans that mean the link."`
	History   []JournalEntry `json:"history" nullable:"false" doc:"The newest entries about the link."`
}

// SafetyChange is the body that decides about a link.
type SafetyChange struct {
	Safety string `json:"safety" enum:"clean,warn,quarantined,blocked,legal" doc:"warn and quarantined warn visitors, blocked and legal stop them (403 and 451)."`
	Reason string `json:"reason" minLength:"1" maxLength:"1024" doc:"Why, for the journal."`
}

func (a *api) safetyOperations(d describer) []*operation {
	params := []*huma.Param{codeParam(), domainParam()}
	return []*operation{
		{
			Operation: huma.Operation{
				Method: http.MethodGet, Path: linksPath + "/{code}/safety", OperationID: "link-safety", Summary: "Show what moderation says of a link",
				Parameters: params, Responses: d.answers(200, "What stands, and how it came to that.", LinkModeration{}, nil, 404),
			},
			action: auth.Moderate, serve: (*call).getSafety,
		},
		{
			Operation: huma.Operation{
				Method: http.MethodPut, Path: linksPath + "/{code}/safety", OperationID: "decide-link", Summary: "Decide about a link",
				Description: "The decision is on the journal, then in every answer of this server, then in this answer. It stands until " +
					"the next one; where a ban wants more, that holds.",
				MaxBodyBytes: maxDecisionBody, RequestBody: d.body(SafetyChange{}, "application/json"),
				Parameters: params, Responses: d.answers(200, "What stands now.", LinkModeration{}, nil, 404, 408, 413, 415, 507),
			},
			action: auth.Moderate, serve: (*call).putSafety,
			examples: []example{{name: "block", summary: "Nobody is led there any more", body: `{"safety":"blocked","reason":"imitates the login of a bank"}`}},
		},
	}
}

func (c *call) getSafety() error {
	k, err := c.key()
	if err != nil {
		return err
	}
	return c.showSafety(k)
}

// showSafety answers with what stands.
func (c *call) showSafety(k link.Key) error {
	l, err := c.api.links.Get(c.r.Context(), c.who, k)
	if err != nil {
		return err
	}
	journal := c.api.moderator.Journal()
	shown := LinkModeration{
		Domain: c.api.sites.name(k.Domain), ShortCode: string(k.Code), Safety: l.Safety.String(),
		Bans: c.api.bans(c.api.moderator.BansOf(&l)),
	}
	switch own, err := journal.Standing(c.r.Context(), l.ID); {
	case err == nil:
		entry := c.api.entry(&own)
		shown.Decision = &entry
	case !errors.Is(err, moderation.ErrNotFound):
		return err
	}
	history, err := journal.Find(c.r.Context(), moderation.Filter{Entity: moderation.OfLink(k)}, 0, historySize)
	if err != nil {
		return err
	}
	shown.History = c.api.entries(history)
	return c.json(http.StatusOK, shown)
}

func (c *call) putSafety() error {
	k, err := c.key()
	if err != nil {
		return err
	}
	var body SafetyChange
	if err := decode(c.body, &body); err != nil {
		return err
	}
	safety, ok := link.ParseSafety(body.Safety)
	if !ok {
		return badField("safety", "want one of "+safeties)
	}
	done, err := c.api.moderator.Decide(c.r.Context(), c.now, c.who.KeyID, []moderation.Order{{Key: k, Safety: safety, Reason: body.Reason}})
	if err == nil {
		err = done[0].Err
	}
	if err != nil {
		return err
	}
	return c.showSafety(k)
}
