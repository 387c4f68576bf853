package httpapi

import (
	"net/http"
	"unicode"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"

	"curt/internal/auth"
	"curt/internal/link"
	"curt/internal/search"
)

// LinkList is a page of links.
type LinkList struct {
	Links      []Link `json:"links" nullable:"false"`
	NextCursor string `json:"next_cursor,omitzero" doc:"Continues the walk; absent at its end."`
}

// states are what ?state= takes: every state but deleted, which is in no list.
func states() []link.State {
	return []link.State{
		link.StateLive, link.StateNotYet, link.StateExpired, link.StateExhausted, link.StateDisabled,
		link.StateWarning, link.StateBlocked, link.StateLegal,
	}
}

func listParams() []*huma.Param {
	one, most, longText, longTag := 1.0, 100.0, search.MaxText, link.MaxTag
	var named []any
	for _, s := range states() {
		named = append(named, s.String())
	}
	const behind = " A link that was just made, or changed, is in such a list after about 1.5 s, when busy after up to 5 s."
	return []*huma.Param{
		queryParam("cursor", "Where to go on: the next_cursor of the page before, with the same filters and order.", &huma.Schema{Type: huma.TypeString}),
		queryParam("limit", "The most links of a page; it may have fewer.", &huma.Schema{Type: huma.TypeInteger, Minimum: &one, Maximum: &most, Default: 50}),
		queryParam("q", "Words, at most 10: each is found whole or as a beginning, in the hosts of long_url and fallback_url, path, title, code and tags; http:// and https:// before a word are left out, and of a short URL its code is looked for."+behind,
			&huma.Schema{Type: huma.TypeString, MaxLength: &longText}),
		queryParam("tag", "Only links with this tag."+behind, &huma.Schema{Type: huma.TypeString, MaxLength: &longTag}),
		queryParam("status", "Only links of this status.", &huma.Schema{Type: huma.TypeString, Enum: []any{"active", "disabled"}}),
		queryParam("state", "Only links that visitors meet in this state now."+behind, &huma.Schema{Type: huma.TypeString, Enum: named}),
		queryParam("domain", "Only links of this domain.", &huma.Schema{Type: huma.TypeString}),
		queryParam("sort", "By creation, newest or oldest first, or most clicked first. With -clicks a link that was just made is in the list after about 1.5 s, when busy after up to 5 s.", enumSchema("-created_at", "created_at", "-clicks")),
	}
}

func (c *call) listLinks() error {
	limit, err := c.integer("limit")
	if err != nil {
		return err
	}
	filter, err := c.filter()
	if err != nil {
		return err
	}
	page := link.Page{Limit: limit}
	if sealed := c.query.Get("cursor"); sealed != "" {
		after, ok := c.api.cursors.open(filter, sealed)
		if !ok {
			return badField("cursor", "is not a cursor of this list")
		}
		page.After = after
	}
	slice, err := c.api.links.Find(c.r.Context(), c.now, c.who, filter, page)
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, LinkList{Links: c.resources(slice.Links), NextCursor: c.api.cursors.seal(filter, slice.Next)})
}

// filter returns what the query asks for, among what the caller sees.
func (c *call) filter() (f search.Filter, err error) {
	f.Workspace = auth.Within(c.who, "")
	if err := c.choices(&f); err != nil {
		return f, err
	}
	if c.query.Has("domain") {
		domain, ok := c.api.links.Domain(c.query.Get("domain"))
		if !ok {
			return f, badField("domain", "is no domain of this service")
		}
		f.Domain = &domain
	}
	if f.Tag = c.query.Get("tag"); !isTag(f.Tag) {
		return f, badField("tag", "can be no tag")
	}
	if c.query.Has("q") {
		if f.Words, err = search.ParseWords(c.question(&f)); err != nil {
			return f, badField("q", err.Error())
		}
	}
	return f, nil
}

// choices reads the parameters that name one of a few.
func (c *call) choices(f *search.Filter) error {
	status, err := c.choice("status")
	if err != nil {
		return err
	}
	f.Status, _ = parseStatus(status) // the zero Status filters nothing
	state, err := c.choice("state")
	if err != nil {
		return err
	}
	for _, s := range states() {
		if s.String() == state {
			f.State = s
		}
	}
	switch order, err := c.choice("sort"); {
	case err != nil:
		return err
	case order == "created_at":
		f.Order = search.Oldest
	case order == "-clicks":
		f.Order = search.MostClicked
	}
	return nil
}

// isTag reports whether a link may have the tag; none is fine.
func isTag(tag string) bool {
	if len(tag) > link.MaxTag || !utf8.ValidString(tag) {
		return false
	}
	for _, r := range tag {
		if unicode.IsControl(r) {
			return false
		}
	}
	return true
}

func (c *call) resources(links []link.Link) []Link {
	keys := make([]link.Key, len(links))
	for i := range links {
		keys[i] = links[i].Key
	}
	clicks := c.clicks(c.r.Context(), keys...)
	shown := make([]Link, len(links))
	for i := range links {
		shown[i] = c.api.sites.resource(&links[i], c.now, clicks[i])
	}
	return shown
}
