// Package decisions is the API of moderators: the safety of a link, bans, and the journal that
// both are written to.
//
// Read this file first; bans.go and journal.go have their resources.
package decisions

import (
	"errors"
	"net/http"
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"curt/internal/auth"
	"curt/internal/httpapi/kernel"
	"curt/internal/httpapi/links"
	"curt/internal/link"
	"curt/internal/moderation"
	"curt/internal/moderation/moderator"
)

// MaxBody bounds the body of a decision or a ban in bytes: a reason and a name,
// even when JSON escapes each byte.
const MaxBody = 16 << 10

// historySize is how many entries the safety of a link shows.
const historySize = 20

const safeties = "clean,warn,quarantined,blocked,legal"

// Moderation are the operations of moderators on links, bans and the journal.
type Moderation struct {
	Links     *links.Links
	Moderator *moderator.Moderator
}

// Operations are what the API can do with decisions, bans and the journal.
func (m *Moderation) Operations(d kernel.Describer) []*kernel.Operation {
	return slices.Concat(m.safetyOperations(d), m.banOperations(d), m.journalOperations(d))
}

// LinkModeration is what moderation says of a link, for moderators.
type LinkModeration struct {
	Domain    string         `json:"domain"`
	ShortCode string         `json:"short_code"`
	Safety    string         `json:"safety" enum:"clean,warn,quarantined,blocked,legal" doc:"The effective safety: the strictest of the decision and the bans."`
	Decision  *JournalEntry  `json:"decision,omitzero" doc:"The decision in effect; absent: none was ever made."`
	Bans      []Ban          `json:"bans" nullable:"false" doc:"The bans that apply to the link."`
	History   []JournalEntry `json:"history" nullable:"false" doc:"The newest journal entries about the link."`
}

// SafetyChange is the body that decides about a link.
type SafetyChange struct {
	Safety string `json:"safety" enum:"clean,warn,quarantined,blocked,legal" doc:"warn and quarantined show visitors a warning; blocked and legal stop them (403 and 451)."`
	Reason string `json:"reason" minLength:"1" maxLength:"1024" doc:"The reason, for the journal."`
}

func (m *Moderation) safetyOperations(d kernel.Describer) []*kernel.Operation {
	params := []*huma.Param{kernel.CodeParam(), kernel.DomainParam()}
	return []*kernel.Operation{
		{
			Operation: huma.Operation{
				Method: http.MethodGet, Path: links.Path + "/{code}/safety", OperationID: "link-safety", Summary: "Get the safety of a link",
				Parameters: params, Responses: d.Answers(200, "The effective safety and its history.", LinkModeration{}, nil, 404),
			},
			Action: auth.Moderate, Serve: kernel.Reply(http.StatusOK, links.Keyed(m.Links, m.showSafety)),
		},
		{
			Operation: huma.Operation{
				Method: http.MethodPut, Path: links.Path + "/{code}/safety", OperationID: "decide-link", Summary: "Decide on a link",
				Description: "The decision is written to the journal and in effect on this server before the response. It holds until " +
					"the next one; a stricter ban takes precedence.",
				MaxBodyBytes: MaxBody, RequestBody: d.Body(SafetyChange{}, "application/json"),
				Parameters: params, Responses: d.Answers(200, "The effective safety now.", LinkModeration{}, nil, 404, 408, 413, 415, 507),
			},
			Action: auth.Moderate, Serve: kernel.Reply(http.StatusOK, links.Keyed(m.Links, m.putSafety)),
			Examples: []kernel.Example{{Name: "block", Summary: "Stop the redirect", Body: `{"safety":"blocked","reason":"imitates the login of a bank"}`}},
		},
	}
}

// showSafety answers with what stands.
func (m *Moderation) showSafety(c *kernel.Call, k link.Key) (shown LinkModeration, err error) {
	l, err := m.Links.Service.Get(c.R.Context(), c.Who, k)
	if err != nil {
		return shown, err
	}
	journal := m.Moderator.Journal()
	shown = LinkModeration{
		Domain: m.Links.Host(k.Domain), ShortCode: string(k.Code), Safety: l.Safety.String(),
		Bans: m.Bans(m.Moderator.BansOf(&l)),
	}
	switch own, err := journal.EffectiveDecision(c.R.Context(), l.ID); {
	case err == nil:
		entry := m.entry(&own)
		shown.Decision = &entry
	case !errors.Is(err, moderation.ErrNotFound):
		return shown, err
	}
	history, err := journal.Find(c.R.Context(), moderation.Filter{Entity: moderation.OfLink(k)}, 0, historySize)
	if err != nil {
		return shown, err
	}
	shown.History = m.Entries(history)
	return shown, nil
}

func (m *Moderation) putSafety(c *kernel.Call, k link.Key) (shown LinkModeration, err error) {
	var body SafetyChange
	if err := kernel.Decode(c.Body, &body); err != nil {
		return shown, err
	}
	safety, ok := link.ParseSafety(body.Safety)
	if !ok {
		return shown, kernel.BadField("safety", "expected one of "+safeties)
	}
	done, err := m.Moderator.Decide(c.R.Context(), c.Now, c.Who.KeyID, []moderator.Order{{Key: k, Safety: safety, Reason: body.Reason}})
	if err == nil {
		err = done[0].Err
	}
	if err != nil {
		return shown, err
	}
	return m.showSafety(c, k)
}
