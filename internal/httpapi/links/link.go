package links

import (
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"curt/internal/httpapi/kernel"
	"curt/internal/link"
	"curt/internal/shorten"
	"curt/internal/weburl"
)

// Link is a link as the API shows it. What a link does not have is null.
type Link struct {
	ID           string     `json:"id" format:"uuid" doc:"A permanent UUIDv7."`
	Domain       string     `json:"domain" doc:"The host of the link."`
	ShortCode    string     `json:"short_code"`
	ShortURL     string     `json:"short_url" format:"uri"`
	LongURL      string     `json:"long_url" format:"uri" doc:"The destination URL in normal form."`
	DisplayURL   string     `json:"display_url" doc:"long_url in readable form."`
	Title        *string    `json:"title"`
	Tags         []string   `json:"tags" nullable:"false"`
	WorkspaceID  string     `json:"workspace_id"`
	CreatedBy    *string    `json:"created_by" doc:"The id of the key that created the link; null: created without a key."`
	Status       string     `json:"status" enum:"active,disabled" doc:"Set by the owner."`
	Safety       string     `json:"safety" enum:"clean,warn,quarantined,blocked,legal" doc:"Set by moderation."`
	State        string     `json:"state" enum:"live,not_yet,expired,exhausted,disabled,deleted,warning,blocked,legal,pending" doc:"What visitors see now; pending: the link was accepted and is not written yet, which takes as long as the queue of CURT_WRITES=queued."`
	Redirect     int        `json:"redirect_status" enum:"301,302,307,308"`
	StartsAt     *time.Time `json:"starts_at"`
	ExpiresAt    *time.Time `json:"expires_at"`
	MaxClicks    *uint64    `json:"max_clicks"`
	ClicksLeft   *uint64    `json:"clicks_left"`
	FallbackURL  *string    `json:"fallback_url" format:"uri"`
	ForwardQuery bool       `json:"forward_query"`
	NoIndex      bool       `json:"noindex"`
	Cacheable    bool       `json:"cacheable"`
	Clicks       *uint64    `json:"clicks" doc:"Number of redirects; null while the statistics are unavailable."`
	CreatedAt    time.Time  `json:"created_at"`
	UpdatedAt    time.Time  `json:"updated_at"`
	Version      uint64     `json:"version" doc:"Increases with each change; the ETag is this number in quotes. 0 of a pending link, which has no ETag."`
}

// LinkFields are the members that a create sets and a change may change. Defaults are
// in words: a schema's default makes generators take an optional member for a required one.
type LinkFields struct {
	LongURL      kernel.Opt[string]      `json:"long_url" format:"uri" maxLength:"8192" nullable:"false" doc:"The destination URL: http or https, without control characters."`
	StartsAt     kernel.Opt[kernel.Date] `json:"starts_at" required:"false" doc:"When the link becomes active. Until then visitors get 404."`
	ExpiresAt    kernel.Opt[kernel.Date] `json:"expires_at" required:"false" doc:"When the link expires. Mutually exclusive with expires_in."`
	ExpiresIn    kernel.Opt[int64]       `json:"expires_in" required:"false" minimum:"1" maximum:"315619200" doc:"Seconds from now until the link expires."`
	Redirect     kernel.Opt[int64]       `json:"redirect_status" required:"false" enum:"301,302,307,308" doc:"The HTTP status of the redirect. Default: 302."`
	Title        kernel.Opt[string]      `json:"title" required:"false" maxLength:"512" doc:"At most 512 bytes, without control characters."`
	Tags         kernel.Opt[[]string]    `json:"tags" required:"false" maxItems:"32" maxLength:"64" uniqueItems:"true"`
	MaxClicks    kernel.Opt[int64]       `json:"max_clicks" required:"false" minimum:"1" maximum:"9007199254740991" doc:"Click limit, after which the link is exhausted. HEAD requests, prefetches and known bots do not count."`
	FallbackURL  kernel.Opt[string]      `json:"fallback_url" required:"false" format:"uri" maxLength:"8192" doc:"The destination once the link has expired or is exhausted."`
	ForwardQuery kernel.Opt[bool]        `json:"forward_query" required:"false" doc:"Append the visitor's query parameters to long_url. Default: false."`
	NoIndex      kernel.Opt[bool]        `json:"noindex" required:"false" doc:"Ask search engines not to index the link. Default: true."`
	Cacheable    kernel.Opt[bool]        `json:"cacheable" required:"false" doc:"Allow a CDN to cache the redirect for 60 s; cached clicks are not counted. Default: false."`
}

func (f *LinkFields) fields() shorten.Fields {
	return shorten.Fields{
		LongURL: f.LongURL.Field, StartsAt: dates(f.StartsAt), ExpiresAt: dates(f.ExpiresAt), ExpiresIn: f.ExpiresIn.Field,
		Redirect: f.Redirect.Field, Title: f.Title.Field, Tags: f.Tags.Field, MaxClicks: f.MaxClicks.Field,
		Fallback: f.FallbackURL.Field, ForwardQuery: f.ForwardQuery.Field, NoIndex: f.NoIndex.Field, Cacheable: f.Cacheable.Field,
	}
}

// Resource returns l as the API shows it at now. It points into l, which must
// not change afterwards. clicks is nil when the statistics cannot be asked.
func (ls *Links) Resource(l *link.Link, now time.Time, clicks *uint64) Link {
	return Link{
		ID: l.ID.String(), Domain: ls.Host(l.Key.Domain), ShortCode: string(l.Key.Code), ShortURL: ls.ShortURL(l.Key),
		LongURL: l.Destination, DisplayURL: weburl.Display(l.Destination),
		Title: kernel.Optional(&l.Title), Tags: l.Tags, WorkspaceID: string(l.Workspace), CreatedBy: kernel.Optional(&l.CreatedBy),
		Status: statusName(l.Status), Safety: l.Safety.String(), State: stateName(l, now),
		Redirect: int(l.Redirect), StartsAt: kernel.Instant(&l.Starts), ExpiresAt: kernel.Instant(&l.Expires),
		MaxClicks: kernel.Optional(&l.MaxClicks), ClicksLeft: clicksLeft(l), FallbackURL: kernel.Optional(&l.Fallback),
		ForwardQuery: l.ForwardQuery, NoIndex: l.NoIndex, Cacheable: l.Cacheable, Clicks: clicks,
		CreatedAt: l.Created, UpdatedAt: l.Updated, Version: uint64(l.Version),
	}
}

// statePending is the state of a link that is not written yet.
const statePending = "pending"

func stateName(l *link.Link, now time.Time) string {
	if l.IsPending() {
		return statePending
	}
	return l.Target().At(now).String()
}

func clicksLeft(l *link.Link) *uint64 {
	if l.MaxClicks == 0 {
		return nil
	}
	left := l.MaxClicks - min(l.Spent, l.MaxClicks)
	return &left
}

func statusName(s link.Status) string {
	switch s {
	case link.Active:
		return "active"
	case link.Disabled:
		return "disabled"
	case link.Deleted:
		return "deleted"
	}
	return "unknown"
}

// dates turns a decoded Date into the field of a request.
func dates(o kernel.Opt[kernel.Date]) shorten.Field[time.Time] {
	return shorten.Field[time.Time]{Value: time.Time(o.Value), Given: o.Given, Null: o.Null}
}

// status is the will of a link's owner as a client writes it.
type status link.Status

// UnmarshalJSONFrom reads "active" or "disabled": nobody else's will is written
// here, and deleting has its own method.
func (s *status) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	var name string
	if err := json.UnmarshalDecode(dec, &name); err != nil {
		return err
	}
	parsed, ok := parseStatus(name)
	if !ok {
		return kernel.BadField(kernel.FieldName(dec.StackPointer()), "expected active or disabled")
	}
	*s = status(parsed)
	return nil
}

// Schema lists the values.
func (status) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Enum: []any{"active", "disabled"}}
}

func parseStatus(name string) (link.Status, bool) {
	switch name {
	case "active":
		return link.Active, true
	case "disabled":
		return link.Disabled, true
	}
	return 0, false
}
