// Package links is the API of links and of the codes they may have: create, list, read, change,
// delete, many at once, aliases, QR codes.
//
// Read this file first: [Links] also has what other resources name and show links with.
// link.go is a link on the wire, linklist.go the list with its filters, bulk.go
// the lists of creates, alias.go the codes, headers.go the entity tags and idempotency keys.
package links

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"curt/internal/analytics"
	"curt/internal/auth"
	"curt/internal/background"
	"curt/internal/hosts"
	"curt/internal/httpapi/kernel"
	"curt/internal/link"
	"curt/internal/qr"
	"curt/internal/redirect"
	"curt/internal/shorten"
	"curt/internal/shorten/linkservice"
)

const (
	// Path is that of the list of links.
	Path = "/api/v1/links"

	// MaxBody bounds the body of one link in bytes: two URLs of 8,192, 32 tags and a title fit
	// three times, even when JSON escapes each byte.
	MaxBody = 64 << 10
)

// Links are the operations on links, and how other resources name and show a link.
type Links struct {
	Service *linkservice.Service
	Stats   analytics.Reader
	Hosts   *hosts.Current
	Unknown *redirect.Budget   // how many unknown codes a network may request; nil = no limit
	Yielder background.Yielder // schedules the work on large bodies
	Drawer  *qr.Drawer
}

// Host returns the host that serves the domain.
func (ls *Links) Host(d link.Domain) string { return ls.Hosts.Load().Host(d) }

// ShortURL returns the URL of a link.
func (ls *Links) ShortURL(k link.Key) string { return ls.Hosts.Load().ShortURL(k) }

// LinkCreate is the body that asks for a link.
type LinkCreate struct {
	LinkFields
	CustomAlias kernel.Opt[string] `json:"custom_alias" required:"false" pattern:"^[A-Za-z0-9_-]{3,64}$" doc:"The code of the link. Default: generated."`
	Domain      kernel.Opt[string] `json:"domain" required:"false" doc:"The domain of the link. Default: the default domain."`
	Dedupe      kernel.Opt[bool]   `json:"dedupe" required:"false" doc:"Return the workspace's oldest equivalent link with 200, if there is one: same domain, long_url, redirect_status, starts_at, expires_at, fallback_url, forward_query, noindex and cacheable; active, clean, not expired, and without max_clicks. Title and tags are ignored. With custom_alias only the link with that alias is considered. Default: false; true on a server that derives codes from URLs (CURT_CODES=hash), for callers with a key and without custom_alias."`
}

func (b *LinkCreate) request() shorten.Request {
	return shorten.Request{Fields: b.fields(), Alias: b.CustomAlias.Field, Domain: b.Domain.Field, Dedupe: b.Dedupe.Field}
}

// LinkChange is the body that changes a link: what is absent stays, what is null
// goes back to none or to its default (RFC 7396).
type LinkChange struct {
	LinkFields
	Status kernel.Opt[status] `json:"status" required:"false" nullable:"false" doc:"Set by the owner."`
}

// TransformSchema makes every member of a change optional.
func (LinkChange) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	s.Required = nil
	return s
}

// Operations are what the API can do with links and aliases.
func (ls *Links) Operations(d kernel.Describer) []*kernel.Operation {
	b, as := bulk{ls, make(turn, 1)}, aliases{ls}
	return slices.Concat(ls.linkOperations(d), []*kernel.Operation{b.operation(d)}, as.operations(d))
}

// linkOperations are those on one link and on the list of them.
func (ls *Links) linkOperations(d kernel.Describer) []*kernel.Operation {
	tag := map[string]*huma.Param{"ETag": kernel.Header("The version of the link, in quotes.")}
	return []*kernel.Operation{
		{
			Operation: huma.Operation{
				Method: http.MethodPost, Path: Path, OperationID: "create-link", Summary: "Create a link",
				MaxBodyBytes: MaxBody, RequestBody: d.Body(LinkCreate{}, "application/json"),
				Parameters: []*huma.Param{OnceParam(), preferParam()}, Responses: CreateAnswers(d, d.Schema(Link{})),
			},
			Action: auth.CreateLink, Anonymous: true, Affords: ls.Afford, Serve: ls.create,
			Examples: []kernel.Example{
				{Name: "plain", Summary: "Only a destination", Body: `{"long_url":"https://example.com/a/long/path?q=1"}`},
				{Name: "all", Summary: "With an alias, an expiry and a click limit", Body: `{"long_url":"https://example.com/sale","custom_alias":"spring-sale",` +
					`"expires_in":86400,"max_clicks":100,"fallback_url":"https://example.com/over","title":"Sale","tags":["spring"],"redirect_status":302}`},
				{Name: "refused", Summary: "An invalid URL", Body: `{"long_url":"javascript:alert(1)"}`},
			},
		},
		{
			Operation: huma.Operation{
				Method: http.MethodGet, Path: Path, OperationID: "list-links", Summary: "List links, newest first",
				Parameters: listParams(), Responses: d.Answers(200, "A page of links.", LinkList{}, nil),
			},
			Action: auth.ReadLink, Serve: kernel.Reply(http.StatusOK, ls.list),
		},
		{
			Operation: huma.Operation{
				Method: http.MethodGet, Path: Path + "/{code}", OperationID: "get-link", Summary: "Get a link",
				Description: "With If-None-Match the answer is 304 while the version is the same. State and clicks may have changed all the same.",
				Parameters:  []*huma.Param{kernel.CodeParam(), kernel.DomainParam(), kernel.IfNoneMatchParam("the link")},
				Responses:   unchanged(d.Answers(200, "The link.", Link{}, tag, 404, 410), "The link matches If-None-Match."),
			},
			Action: auth.ReadLink, Serve: ls.get,
		},
		{
			Operation: huma.Operation{
				Method: http.MethodPatch, Path: Path + "/{code}", OperationID: "change-link", Summary: "Update a link",
				Description: "Absent members stay unchanged; null restores the default. Every update with at least one member creates a new " +
					"version and ETag, even if no value changes. Of concurrent updates without If-Match the last one wins.",
				MaxBodyBytes: MaxBody, RequestBody: d.Body(LinkChange{}, "application/json", "application/merge-patch+json"),
				Parameters: []*huma.Param{kernel.CodeParam(), kernel.DomainParam(), kernel.IfMatchParam()},
				Responses:  d.Answers(200, "The updated link.", Link{}, tag, 404, 408, 409, 410, 412, 413, 415, 422, 507),
			},
			Action: auth.ChangeLink, Serve: kernel.Reply(http.StatusOK, ls.change),
			Examples: []kernel.Example{
				{Name: "change", Summary: "A new destination, no title", Body: `{"long_url":"https://example.com/new","title":null}`},
			},
		},
		{
			Operation: huma.Operation{
				Method: http.MethodDelete, Path: Path + "/{code}", OperationID: "delete-link", Summary: "Delete a link; its code is never reused",
				Parameters: []*huma.Param{kernel.CodeParam(), kernel.DomainParam(), kernel.IfMatchParam()},
				Responses:  d.Answers(204, "The link was deleted.", nil, nil, 404, 409, 410, 412, 507),
			},
			Action: auth.ChangeLink, Serve: kernel.Done(http.StatusNoContent, ls.Delete),
		},
	}
}

// createdHeaders are on the answer to every create.
func createdHeaders() map[string]*huma.Param {
	return kernel.WithLimits(map[string]*huma.Param{"ETag": kernel.Header("The version of the link, in quotes."), "Location": kernel.Header("The path of the link in this API.")})
}

// Afford refuses a caller who has spent the limit of creates.
func (ls *Links) Afford(c *kernel.Call) error {
	key, err := idempotencyKey(c.R.Header)
	if err != nil {
		return err
	}
	return ls.Service.Afford(c.R.Context(), c.Now, c.Who, key)
}

func (ls *Links) create(c *kernel.Call) error {
	var body LinkCreate
	if err := kernel.Decode(c.Body, &body); err != nil {
		return err
	}
	created, status, err := ls.Create(c, &body)
	if err != nil {
		return err
	}
	if !asCreated(&created) {
		return c.JSON(status, ls.shown(c, &created.Link))
	}
	return c.JSON(status, ls.fresh(&created.Link))
}

// asCreated reports whether a link is answered in its first state: it has no clicks yet, because
// a code is never used twice. A replay repeats that answer, whatever happened since.
func asCreated(created *shorten.Result) bool { return !created.Found && created.Link.Version <= 1 }

// fresh is a link at the moment of its creation.
func (ls *Links) fresh(l *link.Link) Link {
	l.Spent = 0
	return ls.Resource(l, l.Created, new(uint64))
}

// shown is a link now, with its clicks.
func (ls *Links) shown(c *kernel.Call, l *link.Link) Link {
	return ls.Resource(l, c.Now, ls.Clicks(c, l.Key)[0])
}

// Create creates the link of a body, and writes the headers of the answer.
func (ls *Links) Create(c *kernel.Call, body *LinkCreate) (created shorten.Result, status int, err error) {
	req, cause := body.request(), shorten.Cause{Principal: c.Who}
	if cause.IdempotencyKey, err = idempotencyKey(c.R.Header); err != nil {
		return created, 0, err
	}
	if created, err = ls.Service.Create(c.R.Context(), c.Now, cause, &req); err != nil {
		return created, 0, err
	}
	if wait := prefersWait(c.R.Header); created.Link.IsPending() && wait > 0 {
		if created.Link, err = ls.await(c, &created.Link, wait); err != nil {
			return created, 0, err
		}
	}
	h := c.W.Header()
	h["Location"] = []string{resourcePath(created.Link.Key)}
	kernel.LimitHeaders(h, req.Limit)
	if created.Link.IsPending() {
		return created, http.StatusAccepted, nil
	}
	h["Etag"] = []string{etag(created.Link.Version)}
	if created.Found {
		h[deduplicated] = []string{"true"}
		return created, http.StatusOK, nil
	}
	return created, http.StatusCreated, nil
}

// await waits until a link is written. One that is not in time stays pending.
func (ls *Links) await(c *kernel.Call, l *link.Link, wait time.Duration) (link.Link, error) {
	ctx, cancel := context.WithTimeout(c.R.Context(), wait)
	defer cancel()
	return ls.Service.Await(ctx, l)
}

// resourcePath is where the API shows a link.
func resourcePath(k link.Key) string {
	path := Path + "/" + string(k.Code)
	if k.Domain != "" {
		path += "?domain=" + string(k.Domain)
	}
	return path
}

// Key returns the link that the path and ?domain= name. An invalid code or an unknown domain
// has no link.
func (ls *Links) Key(c *kernel.Call) (link.Key, error) {
	code := c.R.PathValue("code")
	domain, ok := ls.Service.Domain(c.Query.Get("domain"))
	if !ok || !link.ValidCode(code) {
		return link.Key{}, link.ErrNotFound
	}
	return link.Key{Domain: domain, Code: link.Code(code)}, nil
}

// Of is a handler of the link that the path and ?domain= name.
func (ls *Links) Of(f func(*kernel.Call, link.Key) error) func(*kernel.Call) error {
	return func(c *kernel.Call) error {
		k, err := ls.Key(c)
		if err != nil {
			return err
		}
		return f(c, k)
	}
}

// Keyed is one that returns its answer.
func Keyed[R any](ls *Links, f func(*kernel.Call, link.Key) (R, error)) func(*kernel.Call) (R, error) {
	return func(c *kernel.Call) (reply R, err error) {
		k, err := ls.Key(c)
		if err != nil {
			return reply, err
		}
		return f(c, k)
	}
}

// unchanged adds the answer to If-None-Match.
func unchanged(answers map[string]*huma.Response, description string) map[string]*huma.Response {
	answers["304"] = &huma.Response{Description: description}
	return answers
}

func (ls *Links) get(c *kernel.Call) error {
	k, err := ls.Key(c)
	if err != nil {
		return err
	}
	l, err := ls.Service.Get(c.R.Context(), c.Who, k)
	if err != nil {
		return err
	}
	if tag := etag(l.Version); !l.IsPending() && qr.Matches(c.R.Header["If-None-Match"], tag) {
		c.W.Header()["Etag"] = []string{tag}
		kernel.CommonHeaders(c.W.Header())
		c.W.WriteHeader(http.StatusNotModified)
		return nil
	}
	shown, err := ls.answer(c, &l, nil)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, shown)
}

// answer is one link, with its version as ETag.
func (ls *Links) answer(c *kernel.Call, l *link.Link, err error) (Link, error) {
	if err != nil {
		return Link{}, err
	}
	clicks := ls.Clicks(c, l.Key)[0]
	if !l.IsPending() {
		c.W.Header()["Etag"] = []string{etag(l.Version)}
	}
	return ls.Resource(l, c.Now, clicks), nil
}

// Clicks returns the total of each key, nil while the statistics are unavailable: they are never
// shown as zero, and never keep a link from being shown.
func (ls *Links) Clicks(c *kernel.Call, keys ...link.Key) []*uint64 {
	totals := make([]*uint64, len(keys))
	if len(keys) == 0 {
		return totals
	}
	counts, err := ls.Stats.Clicks(c.R.Context(), keys)
	if err != nil || len(counts) != len(keys) {
		c.Degraded("click counts of links unavailable", err)
		return totals
	}
	for i := range counts {
		totals[i] = &counts[i]
	}
	return totals
}

// change decodes the body last: a link that does not exist is 404, whatever the body.
func (ls *Links) change(c *kernel.Call) (shown Link, err error) {
	k, match, err := ls.matched(c)
	if err != nil {
		return shown, err
	}
	var body LinkChange
	if err := kernel.Decode(c.Body, &body); err != nil {
		return shown, err
	}
	change := shorten.Change{Fields: body.fields(), Status: shorten.Field[link.Status]{
		Value: link.Status(body.Status.Value), Given: body.Status.Given, Null: body.Status.Null,
	}}
	l, err := ls.Service.Update(c.R.Context(), c.Now, shorten.Cause{Principal: c.Who}, k, match, &change)
	return ls.answer(c, &l, err)
}

// matched returns the link of the path, and the versions that a change requires.
func (ls *Links) matched(c *kernel.Call) (k link.Key, match shorten.Match, err error) {
	if k, err = ls.Key(c); err == nil {
		match, err = ifMatch(c.R.Header)
	}
	return k, match, err
}

// Delete deletes the link of the path.
func (ls *Links) Delete(c *kernel.Call) error {
	k, match, err := ls.matched(c)
	if err != nil {
		return err
	}
	return ls.Service.Delete(c.R.Context(), c.Now, shorten.Cause{Principal: c.Who}, k, match)
}
