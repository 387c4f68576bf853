package httpapi

import (
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"curt/internal/auth"
	"curt/internal/link"
	"curt/internal/ratelimit"
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
				"says how many links fit.",
			MaxBodyBytes: maxBulkBody, RequestBody: d.body(BulkCreate{}, "application/json"),
			Parameters: []*huma.Param{idempotencyParam("Sends the list again without making a second link of any row: for 24 hours " +
				"every request with this key and the same list, also one that is sent while the first is under way, is answered " +
				"with the links that were made, as they stand. A row that was refused is judged again, one whose link was deleted " +
				"since is 409. " + idempotencyKeys)},
			Responses: d.answers(207, "A result for each link.", BulkResults{}, withLimits(map[string]*huma.Param{}), 408, 413, 415, 422, 429, 507),
		},
		scope: auth.LinksWrite, streams: true, serve: (*call).createLinks,
		examples: []example{
			{name: "two", summary: "One is made, one refused", body: `{"links":[{"long_url":"https://example.com/a"},{"long_url":"https://example.com/b","custom_alias":"api"}]}`},
		},
	}}
}

func (c *call) createLinks() error {
	key, err := idempotencyKey(c.r.Header)
	if err != nil {
		return err
	}
	rows, err := c.readRows()
	if err != nil {
		return err
	}
	var verdict *ratelimit.Verdict
	if key != "" {
		verdict, err = c.api.links.MakeManyOnce(c.r.Context(), c.now, c.who, key, rows)
	} else {
		verdict, err = c.api.links.MakeMany(c.r.Context(), c.now, c.who, rows)
	}
	if err != nil {
		return err
	}
	limitState(c.w.Header(), verdict)
	return c.json(http.StatusMultiStatus, BulkResults{Results: c.results(rows)})
}

func (c *call) results(rows []shorten.Row) []BulkResult {
	var asked []link.Key // whose clicks are to be looked up
	for i := range rows {
		if rows[i].Err == nil && !asMade(&rows[i].Made) {
			asked = append(asked, rows[i].Made.Link.Key)
		}
	}
	clicks := c.clicks(c.r.Context(), asked...)
	results := make([]BulkResult, len(rows))
	for i := range rows {
		made, result := &rows[i].Made, &results[i]
		if rows[i].Err != nil {
			p := c.api.explain(c.r, rows[i].Err)
			result.Status, result.Problem = p.Status, &p
			continue
		}
		var shown Link
		if asMade(made) {
			shown = c.made(&made.Link)
		} else {
			shown, clicks = c.api.sites.resource(&made.Link, c.now, clicks[0]), clicks[1:]
		}
		result.Status, result.Link = http.StatusCreated, &shown
		if made.Found {
			result.Status = http.StatusOK
		}
	}
	return results
}
