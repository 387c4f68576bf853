package links

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"curt/internal/auth"
	"curt/internal/httpapi/kernel"
	"curt/internal/link"
	"curt/internal/shorten"
)

const reservationsPath = aliasPath + "/reservations"

// Reservation is an alias that the caller's workspace holds.
type Reservation struct {
	Alias         string    `json:"alias"`
	Domain        string    `json:"domain" doc:"The host of the link."`
	ShortURL      string    `json:"short_url" format:"uri" doc:"The short URL that the link would have."`
	ReservedUntil time.Time `json:"reserved_until" doc:"When the reservation ends, unless a link is created or it is released."`
	ExpiresIn     int64     `json:"expires_in" doc:"Seconds until then, rounded down."`
}

func (as *aliases) reservationOperations(d kernel.Describer) []*kernel.Operation {
	answers := d.Answers(201, "The alias is reserved.", Reservation{}, kernel.WithLimits(map[string]*huma.Param{}), 409, 429, 501, 507)
	answers["200"] = &huma.Response{Description: "Your workspace had reserved it already; the reservation lasts no longer than before.", Content: answers["201"].Content, Headers: answers["201"].Headers}
	return []*kernel.Operation{
		{
			Operation: huma.Operation{
				Method: http.MethodPost, Path: reservationsPath, OperationID: "reserve-alias", Summary: "Reserve an alias for 5 minutes",
				Description: "Until then only your workspace can create a link with the alias, with any of its keys, which ends the reservation. Nothing else " +
					"changes: visitors are answered 404 as before. A workspace reserves up to CURT_ALIAS_RESERVATIONS aliases at once, and as many in a period as it may create links, " +
					"which they are not. A repeated request returns the same reservation.",
				Parameters: aliasParams("The alias to reserve", "autumn"), Responses: answers,
			},
			Action: auth.CreateLink, Serve: as.reserve,
		},
		{
			Operation: huma.Operation{
				Method: http.MethodDelete, Path: reservationsPath, OperationID: "release-alias", Summary: "Release a reserved alias",
				Description: "Others can have the alias at once. An admin releases the reservation of any workspace.",
				Parameters:  aliasParams("The alias to release", "winter"), Responses: d.Answers(204, "The alias is no longer reserved.", nil, nil, 404, 501, 507),
			},
			Action: auth.CreateLink, Serve: kernel.Done(http.StatusNoContent, as.release),
		},
	}
}

func (as *aliases) reserve(c *kernel.Call) error {
	k, err := as.alias(c)
	if err != nil {
		return err
	}
	// What is answered tells as much as a check does, and costs as much.
	if wait, allowed := as.Unknown.Peek(c.R.Context(), c.Now, c.Addr()); !allowed {
		return &kernel.LimitedError{Wait: wait}
	}
	r, found, left, err := as.Service.Reserve(c.R.Context(), c.Now, c.Who, k.Domain, string(k.Code))
	kernel.LimitHeaders(c.W.Header(), left)
	if err != nil {
		return fmt.Errorf("reserve an alias: %w", aboutAlias(err))
	}
	status := http.StatusOK
	if !found {
		status = http.StatusCreated
		as.Unknown.Spend(c.R.Context(), c.Now, c.Addr())
	}
	return c.JSON(status, as.reservation(&r))
}

// aboutAlias names the parameter alias in an error that names the field of a create.
func aboutAlias(err error) error {
	if wrong, ok := errors.AsType[*shorten.InvalidError](err); ok && wrong.Field == "custom_alias" {
		return &shorten.InvalidError{Field: "alias", Reason: wrong.Reason}
	}
	return err
}

func (as *aliases) reservation(r *link.Reservation) Reservation {
	return Reservation{
		Alias: string(r.Key.Code), Domain: as.Host(r.Key.Domain), ShortURL: as.ShortURL(r.Key),
		ReservedUntil: r.Until, ExpiresIn: int64(r.Left / time.Second),
	}
}

func (as *aliases) release(c *kernel.Call) error {
	k, err := as.alias(c)
	if err != nil {
		return err
	}
	return as.Service.Release(c.R.Context(), c.Who, k.Domain, string(k.Code))
}
