package apidocs

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"curt/internal/httpapi/kernel"
)

// apiVersion is that of the paths below /api/v1, not the program's: programs of one
// version say the same.
const apiVersion = "1"

// tags says what the operations of each tag are about, in the order in which people read.
func tags() []*huma.Tag {
	return []*huma.Tag{
		{Name: kernel.TagLinks, Description: "Create, list, get, update and delete links."},
		{Name: kernel.TagStatistics, Description: "Statistics and clicks of one link or of all, live counts, and shared statistics."},
		{Name: kernel.TagQR, Description: "QR codes of links and of aliases not yet created."},
		{Name: kernel.TagJobs, Description: "Imports and exports, which any server can continue."},
		{Name: kernel.TagKeys, Description: "API keys, and the permissions of the current key."},
		{Name: kernel.TagReviews, Description: "Reports by visitors, appeals by owners, and the review queue of moderators."},
		{Name: kernel.TagModeration, Description: "Decisions about links, bans, and the moderation journal."},
		{Name: kernel.TagServer, Description: "The health of the server."},
		{Name: kernel.TagCompatibility, Description: "Paths and field names of earlier APIs, for existing clients."},
	}
}

// Describe returns the description of the API at a base URL, that no operation is in yet.
// huma's own routes for documents are off: they would fetch a page's parts from elsewhere.
func Describe(mux *http.ServeMux, base string) huma.API {
	cfg := huma.DefaultConfig("curt", apiVersion)
	cfg.OpenAPIPath, cfg.DocsPath, cfg.SchemasPath, cfg.CreateHooks = "", "", "", nil
	cfg.Info.Description = "Creates and manages short links, and counts their clicks. " +
		"Every error is an application/problem+json (RFC 9457) with a stable type."
	cfg.Servers, cfg.Tags = []*huma.Server{{URL: base, Description: "This server."}}, tags()
	cfg.Components.SecuritySchemes = map[string]*huma.SecurityScheme{
		kernel.KeyScheme: {Type: "http", Scheme: "bearer", Description: "An API key, starting with curt_."},
	}
	cfg.Security = []map[string][]string{{kernel.KeyScheme: {}}}
	return humago.New(mux, cfg)
}

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
		{"AliasReason", "Why an alias is not available. held: another workspace has reserved it; reserved: it is kept for the operator.", words("invalid", "reserved", "refused", "taken", "held")},
		{"AliasState", "What an alias is now. reserved: by a workspace, or for the operator.", words("free", "taken", "reserved", "refused", "invalid")},
		{"AppealState", "Whether an appeal has been answered.", words("open", "answered")},
		{"BanSafety", "The minimum safety that a ban sets for matching links.", words("warn", "quarantined", "blocked", "legal")},
		{"BotReason", "Why a click counts as a bot.", words("named", "listed", "no_browser")},
		{"CallerPlan", "The plan whose limits apply to a caller, with or without a key.", words("anonymous", "free", "verified", "registered", "default")},
		{"ClickFormat", "The format of a list of clicks.", words("json", "csv")},
		{"ClickOutcome", "How a visitor's request was answered.", words("redirected", "fallback", "refused")},
		{"ClickTrigger", "How a visitor reached the link.", words("link", "qr", "warning")},
		{"ConcernName", "A condition that needs the operator's attention.", words("not-ready", "disk", "clicks-dropped", "clicks-lost", "clicks-killed", "clicks-unsent", "clicks-unknown", "servers-silent", "statistics-not-stored", "links-damaged", "links-unanswered", "statistics-behind", "list-unusable", "certificate", "reviews-overdue", "search-incomplete")},
		{"DataFileName", "A part of the data folder.", words("curt.db", "clicks.db", "search.db", "clicks")},
		{"EntityKind", "The kind of entity that a ban is about.", words("link", "workspace", "key", "host", "domain", "network")},
		{"JournalKind", "The kind of entity that a journal entry is about. The name of a destination is a workspace, empty for all, a slash, and the SHA-256 of the URL.", words("link", "workspace", "key", "host", "domain", "network", "destination", "refused_word", "look_alike", "allowed_destination")},
		{"HealthStatus", "The state of the server.", words("ok", "starting", "draining", "unavailable")},
		{"JobKind", "What a job does.", words("import", "export")},
		{"JobFormat", "The format of a file of links.", words("auto", "csv", "jsonl")},
		{"JobResultFormat", "How the result of a job is written.", words("jsonl", "csv")},
		{"JobState", "How far a job is.", words("uploading", "queued", "running", "done", "failed", "canceled")},
		{"JournalAction", "The action of a journal entry.", words("decide", "ban", "lift", "answer", "erase", "list", "unlist")},
		{"LinkOrder", "The order of a list of links.", words("-created_at", "created_at", "-clicks")},
		{"LinkState", "What visitors of a link see now.", words("live", "not_yet", "expired", "exhausted", "disabled", "deleted", "warning", "blocked", "legal", "pending")},
		{"LinkStateFilter", "The states that lists can contain: all except deleted.", words("live", "not_yet", "expired", "exhausted", "disabled", "warning", "blocked", "legal")},
		{"LinkStatus", "The status that the owner of a link chose.", words("active", "disabled")},
		{"ListName", "The lists that are configured in the settings.", words("blocklists", "allowlists", "reserved_words", "refused_words")},
		{"ModeratedList", "The lists that moderators maintain.", words("refused_words", "look_alikes", "blocked_destinations", "allowed_destinations")},
		{"Plan", "The plan whose limits apply to a workspace.", words("free", "verified", "registered", "default")},
		{"QRFormat", "The image format.", words("svg", "png")},
		{"QRLevel", "The error correction level of a QR code.", words("M", "L", "Q", "H")},
		{"RedirectStatus", "The HTTP status of the redirect.", []any{301, 302, 307, 308}},
		{"ReportCategory", "The reason of a report.", words("phishing", "malware", "spam", "illegal", "other")},
		{"ReviewOrder", "The order of a list of reviews.", words("due_at", "-score", "-reports", "-opened_at")},
		{"ReviewSource", "What opened a review.", words("policy", "report", "appeal", "blocked")},
		{"ReviewState", "Whether a review has been decided.", words("open", "closed")},
		{"Safety", "The moderation verdict on a link.", words("clean", "warn", "quarantined", "blocked", "legal")},
		{"Scope", "A permission of an API key.", words("links:read", "links:write", "stats:read", "admin")},
		{"StatsInterval", "The interval of a series.", words("day", "hour", "quarter", "minute")},
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

// NameEnums names the choices of every schema and of every parameter.
func NameEnums(schemas huma.Registry, operations []*kernel.Operation) error {
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
			return fmt.Errorf("describe the API: two schemas are named %s", e.name)
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
