package httpapi

import (
	"cmp"
	"slices"

	"curt/internal/redirect"
)

// problemType is what the documents say about one type of problem.
type problemType struct {
	Name   string // the last segment of the type
	Status int
	Title  string
	Detail string
}

// problemTypes lists every type that this service answers, by name: those of the API
// and those that visitors of links meet.
func (a *api) problemTypes() []problemType {
	var all []problemType
	seen := map[string]bool{}
	add := func(p problemType) {
		if !seen[p.Name] {
			seen[p.Name] = true
			all = append(all, p)
		}
	}
	for _, o := range ownKinds() {
		add(problemType{o.kind.name, o.kind.status, o.kind.title, o.detail})
	}
	for _, m := range a.mappings {
		add(problemType{m.kind.name, m.kind.status, m.kind.title, sentence(m.detail)})
	}
	for _, p := range redirect.Problems() {
		add(problemType{p.Name(), p.Status(), p.Title(), p.Detail()})
	}
	slices.SortFunc(all, func(a, b problemType) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// sentence makes one of the detail of a mapping.
func sentence(detail string) string {
	if detail == "" {
		return ""
	}
	first := detail[0]
	if 'a' <= first && first <= 'z' {
		first -= 'a' - 'A'
	}
	return string(first) + detail[1:] + "."
}

// explained is a kind with what there is to say about it.
type explained struct {
	kind   kind
	detail string
}

// ownKinds are the kinds that stand in no mapping. A test finds those that are
// missing here.
func ownKinds() []explained {
	return []explained{
		{kindInvalid(), "A parameter or a member of the body is not as described; field names it, and detail says what is wanted."},
		{kindNoRoute(), "The API has no such path."},
		{kindMethod(), "The Allow header lists the methods that the path takes. A link without 307 or 308 takes GET and HEAD."},
		{kindSlow(), "The body did not arrive in time."},
		{kindTooBig(), "The operation takes smaller bodies; detail says how large one may be."},
		{kindMedia(), "Bodies are JSON in UTF-8, sent as they are and with Content-Type: application/json."},
		{kindOrigin(), "A page of another site sent this. Send it from a program, or from this service's own pages."},
		{kindBroken(), "Somebody changed the journal behind the server's back; detail says where, and curt doctor says more."},
		{kindServer(), "A fault of the server. It was logged under the request_id."},
		{kindCrowded(), "Bodies of other requests take all the memory that there is for them. Nothing was done; send it again after Retry-After."},
		{kindHost(), "Without a key the API answers only under the names of this server, so that no page elsewhere can reach it through a name of its own."},
		{kindLimited(), "Retry-After says how long to wait, X-RateLimit-* how much is allowed."},
	}
}
