package httpapi

import (
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"curt/internal/auth"
	"curt/internal/link"
	"curt/internal/shorten"
)

const (
	bulkPath = linksPath + "/bulk"
	// maxBulkBody is 16 KiB for each of 1,000 links.
	maxBulkBody = 16 << 20
)

// BulkCreate is the body that asks for many links.
type BulkCreate struct {
	Links []LinkCreate `json:"links" maxItems:"1000" nullable:"false"`
}

// BulkResults says what became of each link of a BulkCreate, in its order.
type BulkResults struct {
	Results []BulkResult `json:"results" nullable:"false"`
}

// BulkResult is what a request for this one link would have been answered.
type BulkResult struct {
	Status  int      `json:"status" doc:"201, 200 for an existing link that stands in, or that of the problem."`
	Link    *Link    `json:"link,omitzero"`
	Problem *Problem `json:"problem,omitzero"`
}

func (a *api) bulkOperations(d describer) []*operation {
	return []*operation{{
		Operation: huma.Operation{
			Method: http.MethodPost, Path: bulkPath, OperationID: "create-links", Summary: "Make up to 1,000 links",
			Description: "Each link is made, or refused, by itself, in one durable write; the answer holds a result for each, " +
				"in order. Of links that ask for one alias the first gets it. A body that is no such list, or holds more than " +
				"1,000 links, is refused and nothing is stored. Each link counts for the limits of the key; a list that they " +
				"cannot take now is refused with 429, and one longer than the smallest of them allows at once with 400, which " +
				"says how many links fit. Idempotency-Key is not offered: a list whose links have a custom_alias or dedupe can " +
				"be sent again without making a link twice.",
			MaxBodyBytes: maxBulkBody, RequestBody: d.body(BulkCreate{}, "application/json"),
			Responses: d.answers(207, "A result for each link.", BulkResults{}, withLimits(map[string]*huma.Param{}), 408, 413, 415, 429, 507),
		},
		scope: auth.LinksWrite, streams: true, serve: (*call).createLinks,
		examples: []example{
			{name: "two", summary: "One is made, one refused", body: `{"links":[{"long_url":"https://example.com/a"},{"long_url":"https://example.com/b","custom_alias":"api"}]}`},
		},
	}}
}

func (c *call) createLinks() error {
	if len(c.r.Header[idempotencyHeader]) > 0 {
		return badField(idempotencyHeader, "is not offered here; give the links a custom_alias or dedupe")
	}
	rows, err := c.readRows()
	if err != nil {
		return err
	}
	verdict, err := c.api.links.MakeMany(c.r.Context(), c.now, c.who, rows)
	if err != nil {
		return err
	}
	limitState(c.w.Header(), verdict)
	return c.json(http.StatusMultiStatus, BulkResults{Results: c.results(rows)})
}

func (c *call) results(rows []shorten.Row) []BulkResult {
	var found []link.Key
	for i := range rows {
		if rows[i].Err == nil && rows[i].Made.Found {
			found = append(found, rows[i].Made.Link.Key)
		}
	}
	clicks := c.clicks(c.r.Context(), found...)
	results := make([]BulkResult, len(rows))
	for i := range rows {
		made, result := &rows[i].Made, &results[i]
		switch {
		case rows[i].Err != nil:
			p := c.api.explain(c.r, rows[i].Err)
			result.Status, result.Problem = p.Status, &p
			continue
		case made.Found:
			shown := c.api.sites.resource(&made.Link, c.now, clicks[0])
			result.Status, result.Link, clicks = http.StatusOK, &shown, clicks[1:]
		default:
			shown := c.api.sites.resource(&made.Link, c.now, new(uint64))
			result.Status, result.Link = http.StatusCreated, &shown
		}
	}
	return results
}
