package httpapi

import (
	"errors"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"curt/internal/link"
	"curt/internal/shorten"
)

// CamelCreate is the body that asks for a link in camelCase.
type CamelCreate struct {
	LongURL     opt[string] `json:"longUrl" format:"uri" maxLength:"8192" nullable:"false" doc:"Where the link leads: http or https."`
	CustomAlias opt[string] `json:"customAlias" required:"false" pattern:"^[A-Za-z0-9_-]{3,64}$" doc:"The code to have; without it one is made."`
	ExpiresAt   opt[date]   `json:"expiresAt" required:"false" doc:"From this millisecond on the link is dead."`
}

// URLsLink answers a create at /api/v1/urls.
type URLsLink struct {
	ShortURL  string     `json:"short_url" format:"uri"`
	LongURL   string     `json:"long_url" format:"uri"`
	ExpiresAt *time.Time `json:"expires_at"`
	CreatedAt time.Time  `json:"created_at"`
}

// URLsCamelLink answers a create at /api/v1/urls that was sent in camelCase.
type URLsCamelLink struct {
	ShortCode string     `json:"shortCode"`
	ShortURL  string     `json:"shortUrl" format:"uri"`
	LongURL   string     `json:"longUrl" format:"uri"`
	CreatedAt time.Time  `json:"createdAt"`
	ExpiresAt *time.Time `json:"expiresAt,omitzero" doc:"Only of a link that expires."`
}

// ShortenLink answers a create at /shorten.
type ShortenLink struct {
	ShortCode string     `json:"short_code"`
	ShortURL  string     `json:"short_url" format:"uri"`
	LongURL   string     `json:"long_url" format:"uri"`
	ExpiresAt *time.Time `json:"expires_at"`
	CreatedAt time.Time  `json:"created_at"`
}

// V1URLsLink answers a create at /v1/urls.
type V1URLsLink struct {
	ShortCode string    `json:"short_code"`
	ShortURL  string    `json:"short_url" format:"uri"`
	CreatedAt time.Time `json:"created_at"`
}

// V1LinksLink answers a create at /v1/links.
type V1LinksLink struct {
	ShortCode string `json:"shortCode"`
	ShortURL  string `json:"shortUrl" format:"uri"`
}

// createURLs tells the two spellings of its path apart by the names sent.
func (c *call) createURLs() error {
	if camelCased(c.body) {
		return c.createCamel(func(l *link.Link) any {
			return URLsCamelLink{
				ShortCode: string(l.Key.Code), ShortURL: c.api.sites.shortURL(l.Key), LongURL: l.Destination,
				CreatedAt: l.Created, ExpiresAt: instant(&l.Expires),
			}
		})
	}
	return c.createSnake(func(l *link.Link) any {
		return URLsLink{
			ShortURL: c.api.sites.shortURL(l.Key), LongURL: l.Destination, ExpiresAt: instant(&l.Expires), CreatedAt: l.Created,
		}
	})
}

func (c *call) createShorten() error {
	return c.createSnake(func(l *link.Link) any {
		return ShortenLink{
			ShortCode: string(l.Key.Code), ShortURL: c.api.sites.shortURL(l.Key), LongURL: l.Destination,
			ExpiresAt: instant(&l.Expires), CreatedAt: l.Created,
		}
	})
}

func (c *call) createV1URLs() error {
	return c.createSnake(func(l *link.Link) any {
		return V1URLsLink{ShortCode: string(l.Key.Code), ShortURL: c.api.sites.shortURL(l.Key), CreatedAt: l.Created}
	})
}

func (c *call) createV1Links() error {
	return c.createCamel(func(l *link.Link) any {
		return V1LinksLink{ShortCode: string(l.Key.Code), ShortURL: c.api.sites.shortURL(l.Key)}
	})
}

func (c *call) createSnake(show func(*link.Link) any) error {
	var body LinkCreate
	if err := decode(c.body, &body); err != nil {
		return err
	}
	return c.create(&body, show)
}

// createCamel also blames fields by the names that the caller knows.
func (c *call) createCamel(show func(*link.Link) any) error {
	var sent CamelCreate
	if err := decode(c.body, &sent); err != nil {
		return err
	}
	body := LinkCreate{LinkFields: LinkFields{LongURL: sent.LongURL, ExpiresAt: sent.ExpiresAt}, CustomAlias: sent.CustomAlias}
	err := c.create(&body, show)
	if wrong, ok := errors.AsType[*shorten.InvalidError](err); ok {
		return badField(camel(wrong.Field), wrong.PublicMessage())
	}
	return err
}

// camelCased reports whether the body sends a name of CamelCreate. What is no JSON,
// or mixes the two, is for the strict decoder to refuse.
func camelCased(body []byte) bool {
	var sent struct {
		LongURL     jsontext.Value `json:"longUrl"`
		CustomAlias jsontext.Value `json:"customAlias"`
		ExpiresAt   jsontext.Value `json:"expiresAt"`
	}
	// The error does not matter: what stands before it was read.
	_ = json.Unmarshal(body, &sent, jsontext.AllowDuplicateNames(true))
	return sent.LongURL != nil || sent.CustomAlias != nil || sent.ExpiresAt != nil
}

// camel turns the name of a field, such as long_url, into camelCase.
func camel(name string) string {
	first, rest, _ := strings.Cut(name, "_")
	for word := range strings.SplitSeq(rest, "_") {
		if word != "" {
			first += strings.ToUpper(word[:1]) + word[1:]
		}
	}
	return first
}
