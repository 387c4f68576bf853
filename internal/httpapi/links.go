package httpapi

import (
	"context"
	"log/slog"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"curt/internal/auth"
	"curt/internal/link"
	"curt/internal/shorten"
)

const linksPath = "/api/v1/links"

// LinkCreate is the body that asks for a link.
type LinkCreate struct {
	LinkFields
	CustomAlias opt[string] `json:"custom_alias" required:"false" pattern:"^[A-Za-z0-9_-]{3,64}$" doc:"The code to have; without it one is made."`
	Domain      opt[string] `json:"domain" required:"false" doc:"The domain to have it on; without it the default domain."`
	Dedupe      opt[bool]   `json:"dedupe" required:"false" doc:"Answer 200 with the oldest link of the workspace that answers visitors exactly as the new one would, if there is one: same domain, long_url, redirect_status, starts_at, expires_at, fallback_url, forward_query, noindex and cacheable; active, clean, not expired, and without max_clicks. Title and tags do not matter. With custom_alias only the link of that alias can stand in. Default: false; true on a server that makes codes of URLs (CURT_CODES=hash), for callers with a key and without custom_alias."`
}

func (b *LinkCreate) request() shorten.Request {
	return shorten.Request{Fields: b.fields(), Alias: b.CustomAlias.Field, Domain: b.Domain.Field, Dedupe: b.Dedupe.Field}
}

// LinkChange is the body that changes a link: what is absent stays, what is null
// goes back to none or to its default (RFC 7396).
type LinkChange struct {
	LinkFields
	Status opt[status] `json:"status" required:"false" nullable:"false" doc:"The owner's will."`
}

// TransformSchema makes every member of a change optional.
func (LinkChange) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	s.Required = nil
	return s
}

// linkOperations is what the API can do with one link and with the list of them.
func (a *api) linkOperations(d describer) []*operation {
	tag := map[string]*huma.Param{"ETag": header("The version of the link, in quotes.")}
	return []*operation{
		{
			Operation: huma.Operation{
				Method: http.MethodPost, Path: linksPath, OperationID: "create-link", Summary: "Make a link",
				MaxBodyBytes: maxLinkBody, RequestBody: d.body(LinkCreate{}, "application/json"),
				Parameters: []*huma.Param{onceParam()}, Responses: createAnswers(d, d.schema(Link{})),
			},
			action: auth.CreateLink, anonymous: true, affords: (*call).affordCreate, serve: (*call).createLink,
			examples: []example{
				{name: "plain", summary: "Only an address", body: `{"long_url":"https://example.com/a/long/path?q=1"}`},
				{name: "all", summary: "With a code of its own, for a day, 100 clicks", body: `{"long_url":"https://example.com/sale","custom_alias":"spring-sale",` +
					`"expires_in":86400,"max_clicks":100,"fallback_url":"https://example.com/over","title":"Sale","tags":["spring"],"redirect_status":302}`},
				{name: "refused", summary: "An address that is none", body: `{"long_url":"javascript:alert(1)"}`},
			},
		},
		{
			Operation: huma.Operation{
				Method: http.MethodGet, Path: linksPath, OperationID: "list-links", Summary: "List links, newest first",
				Parameters: listParams(), Responses: d.answers(200, "A page of links.", LinkList{}, nil),
			},
			action: auth.ReadLink, serve: (*call).listLinks,
		},
		{
			Operation: huma.Operation{
				Method: http.MethodGet, Path: linksPath + "/{code}", OperationID: "get-link", Summary: "Show a link",
				Parameters: []*huma.Param{codeParam(), domainParam()},
				Responses:  d.answers(200, "The link.", Link{}, tag, 404),
			},
			action: auth.ReadLink, serve: (*call).getLink,
		},
		{
			Operation: huma.Operation{
				Method: http.MethodPatch, Path: linksPath + "/{code}", OperationID: "change-link", Summary: "Change a link",
				Description: "Members that are absent stay as they are; null brings the default back. Every change with a member makes a new " +
					"version and ETag, also where the value is the one that stands. Of changes at once without If-Match the last wins.",
				MaxBodyBytes: maxLinkBody, RequestBody: d.body(LinkChange{}, "application/json", "application/merge-patch+json"),
				Parameters: []*huma.Param{codeParam(), domainParam(), ifMatchParam()},
				Responses:  d.answers(200, "The link as changed.", Link{}, tag, 404, 408, 409, 412, 413, 415, 422, 507),
			},
			action: auth.ChangeLink, serve: (*call).changeLink,
			examples: []example{
				{name: "change", summary: "Another address, and no title", body: `{"long_url":"https://example.com/new","title":null}`},
			},
		},
		{
			Operation: huma.Operation{
				Method: http.MethodDelete, Path: linksPath + "/{code}", OperationID: "delete-link", Summary: "Delete a link; its code is never used again",
				Parameters: []*huma.Param{codeParam(), domainParam(), ifMatchParam()},
				Responses:  d.answers(204, "The link is gone.", nil, nil, 404, 409, 412, 507),
			},
			action: auth.ChangeLink, serve: (*call).deleteLink,
		},
	}
}

// createdHeaders are on the answer to every create.
func createdHeaders() map[string]*huma.Param {
	return withLimits(map[string]*huma.Param{"ETag": header("The version of the link, in quotes."), "Location": header("The path of the link in this API.")})
}

func (c *call) createLink() error {
	var body LinkCreate
	if err := decode(c.body, &body); err != nil {
		return err
	}
	made, status, err := c.make(&body)
	if err != nil {
		return err
	}
	if !asMade(&made) {
		return c.json(status, c.api.sites.resource(&made.Link, c.now, c.clicks(c.r.Context(), made.Link.Key)[0]))
	}
	return c.json(status, c.made(&made.Link))
}

// asMade reports whether a link is answered as it was made: nobody clicked yet, because a
// code is never used twice. A replay repeats that answer, whatever happened since.
func asMade(made *shorten.Made) bool { return !made.Found && made.Link.Version == 1 }

// made is a link at the moment it was made.
func (c *call) made(l *link.Link) Link {
	l.Spent = 0
	return c.api.sites.resource(l, l.Created, new(uint64))
}

// create makes the link that a body asks for, and answers what show makes of it.
func (c *call) create(body *LinkCreate, show func(*link.Link) any) error {
	made, status, err := c.make(body)
	if err != nil {
		return err
	}
	return c.json(status, show(&made.Link))
}

// make makes the link that a body asks for, and writes the headers of the answer.
func (c *call) make(body *LinkCreate) (made shorten.Made, status int, err error) {
	req, cause := body.request(), shorten.Cause{Principal: c.who}
	if cause.IdempotencyKey, err = idempotencyKey(c.r.Header); err != nil {
		return made, 0, err
	}
	if made, err = c.api.links.Create(c.r.Context(), c.now, cause, &req); err != nil {
		return made, 0, err
	}
	h := c.w.Header()
	h["Location"] = []string{resourcePath(made.Link.Key)}
	h["Etag"] = []string{etag(made.Link.Version)}
	limitState(h, req.Limit)
	if made.Found {
		h[deduplicated] = []string{"true"}
		return made, http.StatusOK, nil
	}
	return made, http.StatusCreated, nil
}

// resourcePath is where the API shows a link.
func resourcePath(k link.Key) string {
	path := linksPath + "/" + string(k.Code)
	if k.Domain != "" {
		path += "?domain=" + string(k.Domain)
	}
	return path
}

// link answers with one link.
func (c *call) link(status int, l *link.Link, clicks *uint64) error {
	c.w.Header()["Etag"] = []string{etag(l.Version)}
	return c.json(status, c.api.sites.resource(l, c.now, clicks))
}

// key returns the link that the path and ?domain= name. What cannot be a code or
// is no domain of ours has no link.
func (c *call) key() (link.Key, error) {
	code := c.r.PathValue("code")
	domain, ok := c.api.links.Domain(c.query.Get("domain"))
	if !ok || !link.ValidCode(code) {
		return link.Key{}, link.ErrNotFound
	}
	return link.Key{Domain: domain, Code: link.Code(code)}, nil
}

func (c *call) getLink() error {
	k, err := c.key()
	if err != nil {
		return err
	}
	l, err := c.api.links.Get(c.r.Context(), c.who, k)
	if err != nil {
		return err
	}
	return c.link(http.StatusOK, &l, c.clicks(c.r.Context(), k)[0])
}

// clicks returns the total of each key, nil where the statistics cannot be asked:
// they are never shown as zero, and never keep a link from being shown.
func (c *call) clicks(ctx context.Context, keys ...link.Key) []*uint64 {
	totals := make([]*uint64, len(keys))
	if len(keys) == 0 {
		return totals
	}
	counts, err := c.api.stats.Clicks(ctx, keys)
	if err != nil || len(counts) != len(keys) {
		if again, due := c.api.failures.met(c.now, failure{detail: "clicks of links are unknown"}); due {
			c.api.log.LogAttrs(ctx, slog.LevelWarn, "clicks of links are unknown", slog.Any("err", err), again)
		}
		return totals
	}
	for i := range counts {
		totals[i] = &counts[i]
	}
	return totals
}

func (c *call) changeLink() error {
	k, err := c.key()
	if err != nil {
		return err
	}
	match, err := ifMatch(c.r.Header)
	if err != nil {
		return err
	}
	var body LinkChange
	if err := decode(c.body, &body); err != nil {
		return err
	}
	change := shorten.Change{Fields: body.fields(), Status: shorten.Field[link.Status]{
		Value: link.Status(body.Status.Value), Given: body.Status.Given, Null: body.Status.Null,
	}}
	l, err := c.api.links.Update(c.r.Context(), c.now, shorten.Cause{Principal: c.who}, k, match, &change)
	if err != nil {
		return err
	}
	return c.link(http.StatusOK, &l, c.clicks(c.r.Context(), k)[0])
}

func (c *call) deleteLink() error {
	k, err := c.key()
	if err != nil {
		return err
	}
	match, err := ifMatch(c.r.Header)
	if err != nil {
		return err
	}
	if err := c.api.links.Delete(c.r.Context(), c.now, shorten.Cause{Principal: c.who}, k, match); err != nil {
		return err
	}
	commonHeaders(c.w.Header())
	c.w.WriteHeader(http.StatusNoContent)
	return nil
}
