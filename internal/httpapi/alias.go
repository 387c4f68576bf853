package httpapi

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"curt/internal/auth"
	"curt/internal/link"
	"curt/internal/qr"
	"curt/internal/shorten"
)

// Alias says whether a link may have a code.
type Alias struct {
	Alias     string  `json:"alias"`
	Domain    string  `json:"domain" doc:"The host that would serve the link."`
	ShortURL  *string `json:"short_url" format:"uri" doc:"What the link would be called; null where no link can be."`
	Available bool    `json:"available" doc:"A create with it, now, would have it. Nothing is held: whoever creates first has it."`
	Reason    *string `json:"reason" enum:"invalid,reserved,taken" doc:"Why it is not available."`
	Detail    *string `json:"detail" doc:"The reason for people to read."`
}

const aliasPath = "/api/v1/aliases/{alias}"

func (a *api) aliasOperations(d describer) []*operation {
	params := []*huma.Param{
		{Name: "alias", In: "path", Required: true, Description: "The code to have; case matters.", Example: "sale", Schema: &huma.Schema{Type: huma.TypeString}},
		queryParam("domain", "The domain to have it on; without it the default domain.", &huma.Schema{Type: huma.TypeString}),
	}
	return []*operation{
		{
			Operation: huma.Operation{
				Method: http.MethodGet, Path: aliasPath, OperationID: "check-alias", Summary: "Ask whether a link may have an alias",
				Description: "For forms that say so while an alias is typed. The code of a deleted link stays taken; whose link has a code is not told. " +
					"A network that asks for many codes that no link has is answered 429 for a while, whether it asks here or as a visitor.",
				Parameters: params, Responses: d.answers(200, "Whether it is available.", Alias{}, nil, 429),
			},
			action: auth.CreateLink, serve: (*call).checkAlias,
		},
		{
			Operation: huma.Operation{
				Method: http.MethodGet, Path: aliasPath + "/qr", OperationID: "alias-qr", Tags: []string{tagQR}, Summary: "Draw the QR code that a link with an alias would have",
				Description: "Before there is a link, and whether or not there is one. Of what can be no alias there is none.",
				Parameters:  qrParams(params...), Responses: qrAnswers(d),
			},
			action: auth.CreateLink, serve: (*call).aliasQR,
		},
	}
}

func (c *call) aliasQR() error {
	o, err := qr.Parse(c.query.Get)
	if err != nil {
		return fmt.Errorf("read the query: %w", err)
	}
	domain, ok := c.api.links.Domain(c.query.Get("domain"))
	if !ok {
		return badField("domain", "is no domain of this service")
	}
	alias := c.r.PathValue("alias")
	if err := shorten.CheckAlias(alias); err != nil && !errors.Is(err, shorten.ErrReserved) {
		return err
	}
	return c.draw(link.Key{Domain: domain, Code: link.Code(alias)}, o)
}

func (c *call) checkAlias() error {
	domain, ok := c.api.links.Domain(c.query.Get("domain"))
	if !ok {
		return badField("domain", "is no domain of this service")
	}
	k := link.Key{Domain: domain, Code: link.Code(c.r.PathValue("alias"))}
	answer := Alias{Alias: strings.ToValidUTF8(string(k.Code), "\uFFFD"), Domain: c.api.sites.name(domain)}
	err := c.api.links.Free(c.r.Context(), c.who, domain, string(k.Code))
	if err := c.scanned(err); err != nil {
		return err
	}
	if link.ValidCode(k.Code) {
		short := c.api.sites.shortURL(k)
		answer.ShortURL = &short
	}
	reason, detail := "", ""
	var wrong *shorten.InvalidError
	switch {
	case err == nil:
		answer.Available = true
		return c.json(http.StatusOK, answer)
	case errors.As(err, &wrong):
		reason, detail = "invalid", wrong.PublicMessage()
	case errors.Is(err, shorten.ErrReserved):
		reason, detail = "reserved", shorten.ErrReserved.Error()
	case errors.Is(err, shorten.ErrTaken):
		reason, detail = "taken", "this slug is taken"
	default:
		return err
	}
	answer.Reason, answer.Detail = &reason, &detail
	return c.json(http.StatusOK, answer)
}

// scanError refuses a network that has asked for many codes that are none.
type scanError struct{ wait time.Duration }

func (*scanError) Error() string {
	return "your network has asked for many codes that no link has, wait as long as Retry-After says"
}

// scanned charges an alias that no link has to the caller's network, as a visit to it is, and
// refuses a network that has spent its budget. It learns nothing about aliases that are taken
// either: unlike a visit, nobody loses anything by that.
func (c *call) scanned(free error) error {
	budget, client := c.api.unknown, c.api.addr(c.r)
	var wait time.Duration
	allowed := true
	switch {
	case free == nil:
		wait, allowed = budget.Spend(c.r.Context(), c.now, client)
	case errors.Is(free, shorten.ErrTaken):
		wait, allowed = budget.Ask(c.r.Context(), c.now, client)
	}
	if !allowed {
		return &scanError{wait: wait}
	}
	return nil
}
