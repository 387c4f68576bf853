package httpapi

import (
	"fmt"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// enum is a choice of words that the description names once, as a component.
type enum struct {
	name, doc string
	words     []any
}

// enums are all choices of the API. Generators of clients make a type of each; of a choice
// that is spelled out where it is used they make one per place, and invent names that then
// collide.
func enums() []enum {
	return []enum{
		{"AliasReason", "Why an alias is not available.", words("invalid", "reserved", "taken")},
		{"AppealState", "Whether an appeal waits for its answer.", words("open", "answered")},
		{"BanSafety", "What a ban may want of the links that it means.", words("warn", "quarantined", "blocked", "legal")},
		{"BotReason", "Why a click counts as a bot's.", words("named", "listed", "no_browser")},
		{"CallerPlan", "Whose limits hold for a caller, who may have no key.", words("anonymous", "free", "verified", "registered", "default")},
		{"ClickFormat", "How clicks are written.", words("json", "csv")},
		{"ClickOutcome", "What a visitor was answered.", words("redirected", "fallback", "refused")},
		{"ClickTrigger", "What led a visitor to the link.", words("link", "qr", "warning")},
		{"ConcernName", "What an operator should look at.", words("not-ready", "disk", "clicks-dropped", "clicks-lost", "clicks-killed", "clicks-unsent", "clicks-unknown", "servers-silent", "statistics-not-stored", "links-damaged", "links-unanswered", "statistics-behind", "list-unusable", "certificate", "reviews-overdue", "search-incomplete")},
		{"DataFileName", "A part of the data folder.", words("curt.db", "clicks.db", "search.db", "clicks")},
		{"EntityKind", "What an entry of the journal or a ban is about.", words("link", "workspace", "key", "host", "domain", "network")},
		{"HealthStatus", "How the server is.", words("ok", "starting", "draining", "unavailable")},
		{"JournalAction", "What an entry of the journal does.", words("decide", "ban", "lift", "answer", "erase")},
		{"LinkOrder", "The order of a list of links.", words("-created_at", "created_at", "-clicks")},
		{"LinkState", "What visitors of a link meet.", words("live", "not_yet", "expired", "exhausted", "disabled", "deleted", "warning", "blocked", "legal")},
		{"LinkStateFilter", "The states of links that lists have: all but deleted.", words("live", "not_yet", "expired", "exhausted", "disabled", "warning", "blocked", "legal")},
		{"LinkStatus", "What the owner of a link wants.", words("active", "disabled")},
		{"ListName", "The lists that the settings name.", words("blocklists", "allowlists", "reserved_words", "refused_words")},
		{"Plan", "Whose limits hold for a workspace.", words("free", "verified", "registered", "default")},
		{"QRFormat", "The format of a picture.", words("svg", "png")},
		{"QRLevel", "How much of a QR code may be lost.", words("M", "L", "Q", "H")},
		{"RedirectStatus", "The status that visitors are redirected with.", []any{301, 302, 307, 308}},
		{"ReportCategory", "What is wrong with a link.", words("phishing", "malware", "spam", "illegal", "other")},
		{"ReviewOrder", "The order of a list of reviews.", words("due_at", "-score", "-reports", "-opened_at")},
		{"ReviewSource", "What brought a link under review.", words("policy", "report", "appeal")},
		{"ReviewState", "Whether a review waits for a moderator.", words("open", "closed")},
		{"Safety", "What moderation says of a link.", words("clean", "warn", "quarantined", "blocked", "legal")},
		{"Scope", "What a key allows.", words("links:read", "links:write", "stats:read", "admin")},
		{"StatsInterval", "The step of a series.", words("day", "hour", "quarter", "minute")},
	}
}

func words(list ...string) []any {
	all := make([]any, len(list))
	for i, w := range list {
		all[i] = w
	}
	return all
}

// schema is what the component says. Without names for the words, generators for Go call
// two choices that share a word by one name.
func (e enum) schema() *huma.Schema {
	s := &huma.Schema{Type: huma.TypeString, Description: e.doc, Enum: e.words}
	if _, ok := e.words[0].(int); ok {
		s.Type = huma.TypeInteger
	}
	names := make([]string, len(e.words))
	for i, w := range e.words {
		names[i] = e.name + pascal(fmt.Sprint(w))
	}
	s.Extensions = map[string]any{"x-enum-varnames": names}
	return s
}

// pascal writes a word as part of a name: -created_at as CreatedAtDescending.
func pascal(word string) string {
	word, descending := strings.CutPrefix(word, "-")
	var name strings.Builder
	for part := range strings.FieldsFuncSeq(word, func(r rune) bool { return strings.ContainsRune("_-:.", r) }) {
		name.WriteString(strings.ToUpper(part[:1]) + part[1:])
	}
	if descending {
		name.WriteString("Descending")
	}
	return name.String()
}

// enumNamer puts references to the components in the places of choices.
type enumNamer struct {
	schemas huma.Registry
	enums   []enum
	unnamed []string // places of choices that enums does not have
}

// nameEnums names the choices of every schema and of every parameter.
func nameEnums(schemas huma.Registry, operations []*operation) error {
	n := enumNamer{schemas: schemas, enums: enums()}
	for name, s := range schemas.Map() {
		n.within(s, name)
	}
	for _, op := range operations {
		for _, p := range op.Parameters {
			p.Schema = n.of(p.Schema, op.OperationID+" "+p.Name)
		}
	}
	for _, e := range n.enums {
		if schemas.Map()[e.name] != nil {
			return fmt.Errorf("describe the API: two schemas are called %s", e.name)
		}
		schemas.Map()[e.name] = e.schema()
	}
	if len(n.unnamed) > 0 {
		slices.Sort(n.unnamed)
		return fmt.Errorf("describe the API: name these choices in enums: %s", strings.Join(n.unnamed, ", "))
	}
	return nil
}

func (n *enumNamer) within(s *huma.Schema, place string) {
	for name, p := range s.Properties {
		s.Properties[name] = n.of(p, place+"."+name)
	}
	if s.Items != nil {
		s.Items = n.of(s.Items, place)
	}
}

// of returns the schema that stands in for s, which may be s.
func (n *enumNamer) of(s *huma.Schema, place string) *huma.Schema {
	if len(s.Enum) == 0 {
		n.within(s, place)
		return s
	}
	i := slices.IndexFunc(n.enums, func(e enum) bool { return fmt.Sprint(e.words) == fmt.Sprint(s.Enum) })
	if i < 0 {
		n.unnamed = append(n.unnamed, place)
		return s
	}
	ref := "#/components/schemas/" + n.enums[i].name
	if s.Nullable { // no reference is nullable
		return &huma.Schema{Description: s.Description, Default: s.Default, AnyOf: []*huma.Schema{{Ref: ref}, {Type: "null"}}}
	}
	return &huma.Schema{Description: s.Description, Default: s.Default, Ref: ref}
}
