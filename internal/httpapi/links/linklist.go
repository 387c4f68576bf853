package links

import (
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"curt/internal/auth"
	"curt/internal/httpapi/kernel"
	"curt/internal/link"
	"curt/internal/search"
	"curt/internal/shorten"
)

// LinkList is a page of links.
type LinkList struct {
	Links      []Link `json:"links" nullable:"false"`
	NextCursor string `json:"next_cursor,omitzero" doc:"Cursor of the next page; absent on the last page."`
}

func listParams() []*huma.Param {
	one, most, longText, longTag := 1.0, 100.0, search.MaxText, link.MaxTag
	var named []any
	for _, s := range shorten.ListStates() {
		named = append(named, s.String())
	}
	const behind = " New and changed links appear in these lists after about 1.5 s, or up to 5 s under load."
	return []*huma.Param{
		kernel.QueryParam("cursor", "The next_cursor of the previous page; use it with the same filters and order.", &huma.Schema{Type: huma.TypeString}),
		kernel.QueryParam("limit", "Maximum number of links per page; a page may have fewer.", &huma.Schema{Type: huma.TypeInteger, Minimum: &one, Maximum: &most, Default: 50}),
		kernel.QueryParam("q", "Up to 10 words, each matched as a word or prefix in the hosts of long_url and fallback_url, path, title, code and tags. http:// and https:// are ignored; a short URL matches by its code."+behind,
			&huma.Schema{Type: huma.TypeString, MaxLength: &longText}),
		kernel.QueryParam("tag", "Only links with this tag."+behind, &huma.Schema{Type: huma.TypeString, MaxLength: &longTag}),
		kernel.QueryParam("status", "Only links with this status.", &huma.Schema{Type: huma.TypeString, Enum: []any{"active", "disabled"}}),
		kernel.QueryParam("state", "Only links in this state now."+behind, &huma.Schema{Type: huma.TypeString, Enum: named}),
		kernel.QueryParam("domain", "Only links on this domain.", &huma.Schema{Type: huma.TypeString}),
		kernel.QueryParam("sort", "By creation time, newest or oldest first, or by clicks, most first. With -clicks new links appear after about 1.5 s, or up to 5 s under load.", kernel.EnumSchema("-created_at", "created_at", "-clicks")),
	}
}

func (ls *Links) list(c *kernel.Call) (list LinkList, err error) {
	limit, err := c.Integer("limit")
	if err != nil {
		return list, err
	}
	filter, err := ls.filter(c)
	if err != nil {
		return list, err
	}
	walk := walkOf(filter)
	after, err := c.Unseal(walk)
	if err != nil {
		return list, err
	}
	slice, err := ls.Service.Find(c.R.Context(), c.Now, c.Who, filter, link.Page{Limit: limit, After: link.Cursor(after)})
	if err != nil {
		return list, err
	}
	return LinkList{Links: ls.resources(c, slice.Links), NextCursor: c.Seal(walk, string(slice.Next))}, nil
}

// walkOf names a walk of links.
func walkOf(f search.Filter) []string {
	domain := "*" // no canonical host
	if f.Domain != nil {
		domain = string(*f.Domain)
	}
	fixed := string([]byte{byte(f.Status), byte(f.State), byte(f.Order)})
	return []string{"links", string(f.Workspace), domain, fixed, f.Tag, strings.Join(f.Words, " ")} // no word holds a space
}

// filter returns what the query asks for, among what the caller sees.
func (ls *Links) filter(c *kernel.Call) (f search.Filter, err error) {
	state, err := c.Choice("state")
	if err != nil {
		return f, err
	}
	f, err = ls.Service.Filter(shorten.Question{Words: c.Query.Get("q"), Tag: c.Query.Get("tag"), State: state, Domain: c.Query.Get("domain")})
	if err != nil {
		return f, err
	}
	f.Workspace = auth.Within(c.Who, "")
	status, err := c.Choice("status")
	if err != nil {
		return f, err
	}
	f.Status, _ = parseStatus(status) // the zero Status filters nothing
	switch order, err := c.Choice("sort"); {
	case err != nil:
		return f, err
	case order == "created_at":
		f.Order = search.Oldest
	case order == "-clicks":
		f.Order = search.MostClicked
	}
	return f, nil
}

func (ls *Links) resources(c *kernel.Call, links []link.Link) []Link {
	keys := make([]link.Key, len(links))
	for i := range links {
		keys[i] = links[i].Key
	}
	clicks := ls.Clicks(c, keys...)
	shown := make([]Link, len(links))
	for i := range links {
		shown[i] = ls.Resource(&links[i], c.Now, clicks[i])
	}
	return shown
}
