package httpapi

import (
	"errors"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"curt/internal/auth"
)

const selfPath = keysPath + "/self"

// Caller is what a caller may do.
type Caller struct {
	KeyID       *string       `json:"key_id" doc:"The id of the key, or admin; null: the request had no key."`
	Name        *string       `json:"name" doc:"What the key is for; null: it is the admin key, or there is none."`
	WorkspaceID string        `json:"workspace_id"`
	Plan        string        `json:"plan" enum:"anonymous,free,verified,registered,default" doc:"Whose limits hold."`
	Scopes      []auth.Scope  `json:"scopes" nullable:"false" enum:"links:read,links:write,stats:read,admin" doc:"What the caller may do; admin is all of it."`
	ExpiresAt   *time.Time    `json:"expires_at"`
	Limits      []CreateLimit `json:"limits" nullable:"false" doc:"How many links may be made; all of them hold. Empty: as many as one likes."`
	Domains     []string      `json:"domains" nullable:"false" minItems:"1" doc:"The hosts that a link may be on; the default domain is the first."`
}

// CreateLimit bounds how many links are made.
type CreateLimit struct {
	Links   int   `json:"links" doc:"At most so many at once, and over time."`
	Seconds int64 `json:"seconds" doc:"The time in which so many are there again."`
}

// selfOperation tells callers what they may do, so that a program can offer nothing else.
func (a *api) selfOperation(d describer) *operation {
	return &operation{
		Operation: huma.Operation{
			Method: http.MethodGet, Path: selfPath, OperationID: "get-self", Summary: "Show what the caller may do",
			Description: "Whose key the request carries, with its scopes and limits. Every key may ask, and so may callers without one.",
			Responses:   d.answers(200, "What the caller may do.", Caller{}, nil),
		},
		open: true, serve: (*call).getSelf,
	}
}

func (c *call) getSelf() error {
	plan, limits := c.api.links.Limits(c.who)
	s := Caller{
		KeyID: text(&c.who.KeyID), WorkspaceID: string(c.who.Workspace), Plan: string(plan),
		Scopes: append([]auth.Scope{}, c.who.Scopes...), Limits: make([]CreateLimit, len(limits)),
	}
	for i, l := range limits {
		s.Limits[i] = CreateLimit{Links: l.Count, Seconds: int64(l.Period / time.Second)}
	}
	for _, d := range c.api.links.Domains() {
		s.Domains = append(s.Domains, string(d))
	}
	switch k, err := c.api.keys.Own(c.r.Context(), c.who); {
	case err == nil:
		s.Name, s.ExpiresAt = text(&k.Name), instant(&k.Expires)
	case !errors.Is(err, auth.ErrNoKey): // which the admin key is
		return err
	}
	return c.json(http.StatusOK, s)
}
