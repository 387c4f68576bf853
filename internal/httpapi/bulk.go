package httpapi

import (
	"fmt"
	"io"
	"net/http"
	"strconv"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-json-experiment/json"

	"curt/internal/auth"
	"curt/internal/bodies"
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
		action: auth.CreateLink, streams: true, affords: (*call).affordCreate, serve: (*call).createLinks,
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
	if err := c.admitRows(); err != nil {
		return err
	}
	body := c.api.bodies.Request(c.w, c.r, maxBulkBody)
	defer body.Close() // when the answer was sent: until then the links are in memory
	first, all, err := readFirst(body)
	switch {
	case err != nil:
		return err
	case all:
		return c.takeRows(key, body, first, nil)
	}
	// A large list takes much time of the processors, to be read as well.
	c.api.aside(func() {
		err = c.takeRows(key, body, io.MultiReader(first, away{body, c.api.large}), c.api.large)
	})
	return err
}

// turn lets one large list at a time be read or written: however many come at once, threads
// that stand aside do not take all processors of the runtime, which would have to be taken from
// them again for each redirect. Making the links has turns of its own (bodies.Body.Work). Nil =
// nobody waits.
type turn chan struct{}

func (t turn) take() {
	if t != nil {
		t <- struct{}{}
	}
}

func (t turn) leave() {
	if t != nil {
		<-t
	}
}

// away gives others the turn while the client is waited for.
type away struct {
	io.Reader

	turn turn
}

func (a away) Read(p []byte) (int, error) {
	a.turn.leave()
	defer a.turn.take()
	return a.Reader.Read(p) //nolint:wrapcheck // it only stands between
}

// takeRows reads a list, makes its links and answers.
func (c *call) takeRows(key string, body *bodies.Body, text io.Reader, turn turn) error {
	rows, err := c.readInTurn(text, turn)
	if err != nil {
		return err
	}
	done, err := body.Work()
	if err != nil {
		return held(err)
	}
	verdict, err := c.makeRows(key, rows)
	if err != nil {
		return err
	}
	clicks := c.clicksOf(rows)
	done() // a client that reads slowly keeps nobody else's from being worked on
	limitState(c.w.Header(), verdict)
	return c.answerRows(rows, clicks, turn)
}

func (c *call) readInTurn(text io.Reader, turn turn) ([]shorten.Row, error) {
	turn.take()
	defer turn.leave()
	return c.readRows(text)
}

func (c *call) makeRows(key string, rows []shorten.Row) (*ratelimit.Verdict, error) {
	return c.api.links.CreateMany(c.r.Context(), c.now, shorten.Cause{Principal: c.who, IdempotencyKey: key}, rows)
}

// clicksOf looks up the clicks of the rows that are not answered as they were made, in order.
func (c *call) clicksOf(rows []shorten.Row) []*uint64 {
	var asked []link.Key
	for i := range rows {
		if rows[i].Err == nil && !asMade(&rows[i].Made) {
			asked = append(asked, rows[i].Made.Link.Key)
		}
	}
	return c.clicks(c.r.Context(), asked...)
}

// answerSize is from how many bytes on an answer is sent while it is written, without a
// Content-Length: one of 1,000 long links has as many megabytes as the question.
const answerSize = 256 << 10

// answerRows is json of BulkResults, some rows at a time.
func (c *call) answerRows(rows []shorten.Row, clicks []*uint64, turn turn) error {
	h := c.w.Header()
	h["Content-Type"] = []string{"application/json"}
	text := []byte(`{"results":[`)
	for began := false; ; began = true {
		var err error
		text, rows, clicks, err = c.appendRows(text, rows, clicks, turn)
		switch {
		case err != nil && began: // what was sent is no answer
			panic(http.ErrAbortHandler)
		case err != nil:
			return err
		}
		if len(rows) == 0 {
			text = append(text, "]}"...)
		}
		if !began {
			if len(rows) == 0 {
				h["Content-Length"] = []string{strconv.Itoa(len(text))}
			}
			commonHeaders(h)
			c.w.WriteHeader(http.StatusMultiStatus)
		}
		if _, err := c.w.Write(text); err != nil || len(rows) == 0 {
			return nil //nolint:nilerr // the client is gone: nobody is left to tell
		}
		text = text[:0]
	}
}

// appendRows appends what became of the first rows, answerSize bytes of them, with a comma behind
// all but the last of all, and returns the others.
func (c *call) appendRows(text []byte, rows []shorten.Row, clicks []*uint64, turn turn) ([]byte, []shorten.Row, []*uint64, error) {
	turn.take()
	defer turn.leave()
	for len(rows) > 0 && len(text) < answerSize {
		var result BulkResult
		result, clicks = c.result(&rows[0], clicks)
		row, err := json.Marshal(result)
		if err != nil {
			return nil, nil, nil, fmt.Errorf("encode an answer: %w", err)
		}
		text = append(text, row...)
		rows[0] = shorten.Row{} // what was answered is not kept for a client that reads slowly
		if rows = rows[1:]; len(rows) > 0 {
			text = append(text, ',')
		}
	}
	return text, rows, clicks, nil
}

// result says what became of a row, and returns the clicks of the rows behind it.
func (c *call) result(row *shorten.Row, clicks []*uint64) (BulkResult, []*uint64) {
	made := &row.Made
	if row.Err != nil {
		p := c.api.explain(c.r, row.Err)
		return BulkResult{Status: p.Status, Problem: &p}, clicks
	}
	var shown Link
	if asMade(made) {
		shown = c.made(&made.Link)
	} else {
		shown, clicks = c.api.sites.resource(&made.Link, c.now, clicks[0]), clicks[1:]
	}
	status := http.StatusCreated
	if made.Found {
		status = http.StatusOK
	}
	return BulkResult{Status: status, Link: &shown}, clicks
}
