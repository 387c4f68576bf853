package httpapi

import (
	"time"

	"curt/internal/link"
	"curt/internal/shorten"
	"curt/internal/weburl"
)

// Link is a link as the API shows it. What a link does not have is null.
type Link struct {
	ID           string     `json:"id" format:"uuid" doc:"A UUIDv7, for good."`
	Domain       string     `json:"domain" doc:"The host that serves the link."`
	ShortCode    string     `json:"short_code"`
	ShortURL     string     `json:"short_url" format:"uri"`
	LongURL      string     `json:"long_url" format:"uri" doc:"Where the link leads, in normal form."`
	DisplayURL   string     `json:"display_url" doc:"long_url for people to read."`
	Title        *string    `json:"title"`
	Tags         []string   `json:"tags" nullable:"false"`
	WorkspaceID  string     `json:"workspace_id"`
	CreatedBy    *string    `json:"created_by" doc:"The id of the key that made the link; null: nobody's."`
	Status       string     `json:"status" enum:"active,disabled" doc:"The owner's will."`
	Safety       string     `json:"safety" enum:"clean,warn,quarantined,blocked,legal" doc:"Moderation's will."`
	State        string     `json:"state" enum:"live,not_yet,expired,exhausted,disabled,deleted,warning,blocked,legal" doc:"What visitors meet now."`
	Redirect     int        `json:"redirect_status" enum:"301,302,307,308"`
	StartsAt     *time.Time `json:"starts_at"`
	ExpiresAt    *time.Time `json:"expires_at"`
	MaxClicks    *uint64    `json:"max_clicks"`
	ClicksLeft   *uint64    `json:"clicks_left"`
	FallbackURL  *string    `json:"fallback_url" format:"uri"`
	ForwardQuery bool       `json:"forward_query"`
	NoIndex      bool       `json:"noindex"`
	Cacheable    bool       `json:"cacheable"`
	Clicks       *uint64    `json:"clicks" doc:"Redirects answered, by the statistics; null while they cannot be asked."`
	CreatedAt    time.Time  `json:"created_at"`
	UpdatedAt    time.Time  `json:"updated_at"`
	Version      uint64     `json:"version" doc:"Counts the changes; the ETag is this in quotes."`
}

// LinkFields are the members that a create sets and a change may change. Defaults are
// in words: a schema's default makes generators take an optional member for a required one.
type LinkFields struct {
	LongURL      opt[string]   `json:"long_url" format:"uri" maxLength:"8192" nullable:"false" doc:"Where the link leads: http or https, without control characters."`
	StartsAt     opt[date]     `json:"starts_at" required:"false" doc:"Before it the link is unknown to visitors."`
	ExpiresAt    opt[date]     `json:"expires_at" required:"false" doc:"From this millisecond on the link is dead. Not together with expires_in."`
	ExpiresIn    opt[int64]    `json:"expires_in" required:"false" minimum:"1" maximum:"315619200" doc:"Seconds from now until the link is dead."`
	Redirect     opt[int64]    `json:"redirect_status" required:"false" enum:"301,302,307,308" doc:"What visitors are redirected with. Default: 302."`
	Title        opt[string]   `json:"title" required:"false" maxLength:"512" doc:"At most 512 bytes, without control characters."`
	Tags         opt[[]string] `json:"tags" required:"false" maxItems:"32" maxLength:"64" uniqueItems:"true"`
	MaxClicks    opt[int64]    `json:"max_clicks" required:"false" minimum:"1" maximum:"9007199254740991" doc:"After so many clicks the link is exhausted. HEAD, prefetches and known bots do not spend one."`
	FallbackURL  opt[string]   `json:"fallback_url" required:"false" format:"uri" maxLength:"8192" doc:"Where an expired or exhausted link leads."`
	ForwardQuery opt[bool]     `json:"forward_query" required:"false" doc:"The visitor's query is added to long_url. Default: false."`
	NoIndex      opt[bool]     `json:"noindex" required:"false" doc:"Search engines are asked not to list the link. Default: true."`
	Cacheable    opt[bool]     `json:"cacheable" required:"false" doc:"A CDN may answer for 60 s; what it answers is not counted. Default: false."`
}

func (f *LinkFields) fields() shorten.Fields {
	return shorten.Fields{
		LongURL: f.LongURL.Field, StartsAt: dates(f.StartsAt), ExpiresAt: dates(f.ExpiresAt), ExpiresIn: f.ExpiresIn.Field,
		Redirect: f.Redirect.Field, Title: f.Title.Field, Tags: f.Tags.Field, MaxClicks: f.MaxClicks.Field,
		Fallback: f.FallbackURL.Field, ForwardQuery: f.ForwardQuery.Field, NoIndex: f.NoIndex.Field, Cacheable: f.Cacheable.Field,
	}
}

// sites knows how links are written in public.
type sites struct {
	base   string // of the default domain, without a slash at the end
	scheme string
	host   string
}

// name returns the host that serves the domain.
func (s sites) name(d link.Domain) string {
	if d == "" {
		return s.host
	}
	return string(d)
}

// shortURL returns what people pass on.
func (s sites) shortURL(k link.Key) string {
	if k.Domain == "" {
		return s.base + "/" + string(k.Code)
	}
	return s.scheme + "://" + string(k.Domain) + "/" + string(k.Code)
}

// resource returns l as the API shows it at now. It points into l, which must
// not change afterwards. clicks is nil when the statistics cannot be asked.
func (s sites) resource(l *link.Link, now time.Time, clicks *uint64) Link {
	return Link{
		ID: l.ID.String(), Domain: s.name(l.Key.Domain), ShortCode: string(l.Key.Code), ShortURL: s.shortURL(l.Key),
		LongURL: l.Destination, DisplayURL: weburl.Display(l.Destination),
		Title: text(&l.Title), Tags: l.Tags, WorkspaceID: string(l.Workspace), CreatedBy: text(&l.CreatedBy),
		Status: statusName(l.Status), Safety: l.Safety.String(), State: l.Target().At(now).String(),
		Redirect: int(l.Redirect), StartsAt: instant(&l.Starts), ExpiresAt: instant(&l.Expires),
		MaxClicks: bound(l.MaxClicks), ClicksLeft: clicksLeft(l), FallbackURL: text(&l.Fallback),
		ForwardQuery: l.ForwardQuery, NoIndex: l.NoIndex, Cacheable: l.Cacheable, Clicks: clicks,
		CreatedAt: l.Created, UpdatedAt: l.Updated, Version: uint64(l.Version),
	}
}

func text(s *string) *string {
	if *s == "" {
		return nil
	}
	return s
}

func instant(t *time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return t
}

func bound(n uint64) *uint64 {
	if n == 0 {
		return nil
	}
	return &n
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
