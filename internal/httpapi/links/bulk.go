package links

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"curt/internal/auth"
	"curt/internal/background"
	"curt/internal/bodies"
	"curt/internal/httpapi/kernel"
	"curt/internal/link"
	"curt/internal/shorten"
	"curt/internal/shorten/create"
	"curt/internal/telemetry"
)

const (
	// BulkPath takes many links.
	BulkPath = Path + "/bulk"
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
	Status  int             `json:"status" doc:"201 (created), 200 (an existing link was returned), or the status of the problem."`
	Link    *Link           `json:"link,omitzero"`
	Problem *kernel.Problem `json:"problem,omitzero"`
}

// bulk are the operations on many links at once.
type bulk struct {
	*Links

	large turn // of large lists
}

func (b *bulk) operation(d kernel.Describer) *kernel.Operation {
	return &kernel.Operation{
		Operation: huma.Operation{
			Method: http.MethodPost, Path: BulkPath, OperationID: "create-links", Summary: "Create up to 1,000 links",
			Description: "Each link is created or refused independently, in one durable write; the response has one result per link, " +
				"in request order. If several links request one alias, the first gets it. An invalid body, or one with more than " +
				"1,000 links, is refused and nothing is stored. Each link counts towards the limits of the key: a list that exceeds " +
				"what is left of them is refused with 429, and one that exceeds the smallest burst with 400, which " +
				"states the maximum.",
			MaxBodyBytes: maxBulkBody, RequestBody: d.Body(BulkCreate{}, "application/json"),
			Parameters: []*huma.Param{idempotencyParam("Makes a retry of the list safe, without duplicates: for 24 hours " +
				"every request with this key and the same list, even while the first one is in flight, is answered " +
				"with the created links in their current state. A refused row is evaluated again; a row whose link was deleted " +
				"since returns 409. " + idempotencyKeys)},
			Responses: d.Answers(207, "One result per link.", BulkResults{}, kernel.WithLimits(map[string]*huma.Param{}), 408, 413, 415, 422, 429, 507),
		},
		Action: auth.CreateLink, Streams: true, Affords: b.Afford, Serve: b.create,
		Examples: []kernel.Example{
			{Name: "two", Summary: "One is created, one refused", Body: `{"links":[{"long_url":"https://example.com/a"},{"long_url":"https://example.com/b","custom_alias":"api"}]}`},
		},
	}
}

func (b *bulk) create(c *kernel.Call) error {
	key, err := idempotencyKey(c.R.Header)
	if err != nil {
		return err
	}
	if err := c.AdmitBody(); err != nil {
		return err
	}
	body := c.OpenBody()
	defer body.Close() // when the answer was sent: until then the links are in memory
	first, all, err := readFirst(body)
	switch {
	case err != nil:
		return err
	case all:
		return b.takeRows(c, key, body, first, nil)
	}
	// A large list takes much time of the processors, to be read as well.
	background.Isolate(b.Yielder, func() {
		err = b.takeRows(c, key, body, io.MultiReader(first, away{body, b.large}), b.large)
	})
	return err
}

// turn lets one large list at a time be read or written: however many come at once, threads
// of low priority do not take all processors of the runtime, which would have to be taken from
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
func (b *bulk) takeRows(c *kernel.Call, key string, body *bodies.Body, text io.Reader, turn turn) error {
	rows, err := b.readInTurn(c, text, turn)
	if err != nil {
		return err
	}
	done, err := body.Work()
	if err != nil {
		return kernel.BodyError(err)
	}
	verdict, err := b.Service.CreateMany(c.R.Context(), c.Now, shorten.Cause{Principal: c.Who, IdempotencyKey: key}, rows)
	if err != nil {
		return err
	}
	clicks := b.clicksOf(c, rows)
	done() // a client that reads slowly keeps nobody else's from being worked on
	kernel.LimitHeaders(c.W.Header(), verdict)
	return b.answerRows(c, rows, clicks, turn)
}

func (b *bulk) readInTurn(c *kernel.Call, text io.Reader, turn turn) ([]create.Row, error) {
	turn.take()
	defer turn.leave()
	return readRows(c, text)
}

// clicksOf looks up the clicks of the rows that are not answered as they were made, in order.
func (b *bulk) clicksOf(c *kernel.Call, rows []create.Row) []*uint64 {
	var asked []link.Key
	for i := range rows {
		if rows[i].Err == nil && !asCreated(&rows[i].Result) {
			asked = append(asked, rows[i].Result.Link.Key)
		}
	}
	return b.Clicks(c, asked...)
}

// answerSize is from how many bytes on an answer is sent while it is written, without a
// Content-Length: one of 1,000 long links has as many megabytes as the question.
const answerSize = 256 << 10

// answerRows is json of BulkResults, some rows at a time.
func (b *bulk) answerRows(c *kernel.Call, rows []create.Row, clicks []*uint64, turn turn) error {
	h := c.W.Header()
	h["Content-Type"] = []string{"application/json"}
	text := []byte(`{"results":[`)
	for began := false; ; began = true {
		var err error
		text, rows, clicks, err = b.appendRows(c, text, rows, clicks, turn)
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
			kernel.CommonHeaders(h)
			c.W.WriteHeader(http.StatusMultiStatus)
		}
		if _, err := c.W.Write(text); err != nil || len(rows) == 0 {
			return nil //nolint:nilerr // the client is gone: nobody is left to tell
		}
		text = text[:0]
	}
}

// appendRows appends what became of the first rows, answerSize bytes of them, with a comma behind
// all but the last of all, and returns the others.
func (b *bulk) appendRows(c *kernel.Call, text []byte, rows []create.Row, clicks []*uint64, turn turn) ([]byte, []create.Row, []*uint64, error) {
	turn.take()
	defer turn.leave()
	for len(rows) > 0 && len(text) < answerSize {
		var result BulkResult
		result, clicks = b.result(c, &rows[0], clicks)
		row, err := json.Marshal(result)
		if err != nil {
			return nil, nil, nil, fmt.Errorf("encode a response: %w", err)
		}
		text = append(text, row...)
		rows[0] = create.Row{} // what was answered is not kept for a client that reads slowly
		if rows = rows[1:]; len(rows) > 0 {
			text = append(text, ',')
		}
	}
	return text, rows, clicks, nil
}

// result says what became of a row, and returns the clicks of the rows behind it.
func (b *bulk) result(c *kernel.Call, row *create.Row, clicks []*uint64) (BulkResult, []*uint64) {
	created := &row.Result
	if row.Err != nil {
		p := c.Problem(row.Err)
		return BulkResult{Status: p.Status, Problem: p}, clicks
	}
	var shown Link
	if asCreated(created) {
		shown = b.fresh(&created.Link)
	} else {
		shown, clicks = b.Resource(&created.Link, c.Now, clicks[0]), clicks[1:]
	}
	status := http.StatusCreated
	switch {
	case created.Found:
		status = http.StatusOK
	case created.Link.IsPending():
		status = http.StatusAccepted
	}
	return BulkResult{Status: status, Link: &shown}, clicks
}

// readFirst reads a list while it is small. All = there is no more of it.
func readFirst(body *bodies.Body) (first *bytes.Buffer, all bool, err error) {
	first = &bytes.Buffer{}
	n, err := io.CopyN(first, body, bodies.DefaultSmall)
	if errors.Is(err, io.EOF) {
		return first, true, nil
	}
	return first, n < bodies.DefaultSmall, bulkError(err)
}

// readRows reads a BulkCreate, a link at a time: what is in memory is one link's text and the
// requests read so far. A link that is wrong becomes a row with an error; an error is returned
// for what is no list of links, and nothing was done.
func readRows(c *kernel.Call, text io.Reader) ([]create.Row, error) {
	// net/http learns here to end the connection of a client that sends too much.
	most := http.MaxBytesReader(telemetry.Bare(c.W), io.NopCloser(text), maxBulkBody)
	// Names given twice and broken UTF-8 within a link are the link's own fault, which
	// decode finds; here it is only seen where one link ends.
	dec := jsontext.NewDecoder(most, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	rows, err := readLinks(dec)
	if err == nil {
		err = atEnd(dec)
	}
	return rows, bulkError(err)
}

// readLinks reads the object around the list.
func readLinks(dec *jsontext.Decoder) (rows []create.Row, err error) {
	if err := open(dec, '{', "", "the body must be a JSON object"); err != nil {
		return nil, err
	}
	given := false
	for dec.PeekKind() != '}' {
		token, err := dec.ReadToken()
		if err != nil {
			return nil, err
		}
		name := token.String()
		switch {
		case name != "links":
			return nil, kernel.BadField(kernel.Clip(name), "unknown field")
		case given:
			return nil, kernel.BadField(name, "duplicate field")
		}
		given = true
		if rows, err = readList(dec); err != nil {
			return nil, err
		}
	}
	if !given {
		return nil, kernel.BadField("links", "is required")
	}
	_, err = dec.ReadToken()
	return rows, err
}

func readList(dec *jsontext.Decoder) ([]create.Row, error) {
	if err := open(dec, '[', "links", "expected an array"); err != nil {
		return nil, err
	}
	rows := []create.Row{}
	for dec.PeekKind() != ']' {
		text, err := dec.ReadValue()
		switch {
		case err != nil:
			return nil, err
		case len(rows) == create.MaxMany:
			return nil, kernel.BadField("links", fmt.Sprintf("expected at most %d", create.MaxMany))
		}
		rows = append(rows, readRow(text))
	}
	_, err := dec.ReadToken()
	return rows, err
}

// readRow reads one link as a request of its own would be read.
func readRow(text []byte) (row create.Row) {
	if len(text) > MaxBody {
		row.Err = kernel.TooBig(MaxBody)
		return row
	}
	var body LinkCreate
	if row.Err = kernel.Decode(text, &body); row.Err == nil {
		row.Request = body.request()
	}
	return row
}

// open reads the beginning of an object or array, or says what else it wanted.
func open(dec *jsontext.Decoder, kind jsontext.Kind, field, want string) error {
	token, err := dec.ReadToken()
	if err == nil && token.Kind() != kind {
		return kernel.BadField(field, want)
	}
	return err
}

func atEnd(dec *jsontext.Decoder) error {
	switch _, err := dec.ReadToken(); {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		return err
	}
	return kernel.BadField("", "unexpected data after the JSON object")
}

// bulkError turns what the decoder met into a problem.
func bulkError(err error) error {
	if err == nil || kernel.IsRefusal(err) {
		return err
	}
	switch {
	case kernel.IsTooLarge(err):
		return kernel.TooBig(maxBulkBody)
	case errors.Is(err, bodies.ErrFull), errors.Is(err, bodies.ErrSlow), errors.Is(err, context.Canceled):
		return kernel.BodyError(err)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return kernel.Refuse(kernel.KindSlow(), "timed out reading the body")
	}
	return kernel.BadField("", "the body is not valid JSON, or is truncated or malformed")
}
