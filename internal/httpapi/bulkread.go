package httpapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"

	"github.com/go-json-experiment/json/jsontext"

	"curt/internal/bodies"
	"curt/internal/shorten"
	"curt/internal/telemetry"
)

// readRows reads a BulkCreate from the request, some links at a time: what is in memory is
// the text of those and the requests read so far, within the budget of bodies, which the caller
// closes. A link that is wrong becomes a row with an error; an error is returned for what is no
// list of links, and nothing was done.
func (c *call) readRows() (rows []shorten.Row, body *bodies.Body, err error) {
	if err := c.checkMedia(); err != nil {
		return nil, nil, err
	}
	if c.r.ContentLength > maxBulkBody {
		return nil, nil, tooBig(maxBulkBody)
	}
	if err := c.afford(); err != nil {
		return nil, nil, err
	}
	body = c.api.bodies.Request(c.w, c.r, maxBulkBody)
	// net/http learns here to end the connection of a client that sends too much.
	most := http.MaxBytesReader(telemetry.Bare(c.w), io.NopCloser(body), maxBulkBody)
	// Names given twice and broken UTF-8 within a link are the link's own fault, which
	// decode finds; here it is only seen where one link ends.
	r := rowReader{call: c, body: body}
	r.Decoder = jsontext.NewDecoder(most, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	err = r.object()
	if err == nil {
		err = atEnd(r.Decoder)
	}
	if err == nil {
		err = r.decode()
	}
	if err != nil {
		body.Close()
		return nil, nil, bulkError(err)
	}
	return r.rows, body, nil
}

// rowReader reads rows. Texts are gathered while the client sends, and made requests of in
// parts, which takes time of the processor: of all that follow the first where that takes
// nothing from visitors.
type rowReader struct {
	*jsontext.Decoder

	call *call
	body *bodies.Body
	rows []shorten.Row

	texts []byte // of the rows behind the last
	ends  []int  // of each within texts; -1 = it was longer than a link may be
}

// partSize is how many bytes of links are made requests of at once: some 0.5 ms.
const partSize = 64 << 10

// add takes the text of one more row.
func (r *rowReader) add(text []byte) error {
	if len(text) > maxLinkBody {
		r.ends = append(r.ends, -1)
		return nil
	}
	r.texts = append(r.texts, text...)
	r.ends = append(r.ends, len(r.texts))
	if len(r.texts) < partSize {
		return nil
	}
	return r.decode()
}

// decode makes rows of what was gathered.
func (r *rowReader) decode() error {
	part := func(context.Context) error {
		begin := 0
		for _, end := range r.ends {
			if end < 0 {
				r.rows = append(r.rows, shorten.Row{Err: tooBig(maxLinkBody)})
				continue
			}
			r.rows = append(r.rows, readRow(r.texts[begin:end]))
			begin = end
		}
		r.texts, r.ends = r.texts[:0], r.ends[:0]
		return nil
	}
	if r.body.Small() {
		return part(r.call.r.Context())
	}
	return r.call.api.aside(r.call.r.Context(), part)
}

// object reads the object around the list.
func (r *rowReader) object() error {
	dec := r.Decoder
	if err := open(dec, '{', "", "the body must be a JSON object"); err != nil {
		return err
	}
	given := false
	for dec.PeekKind() != '}' {
		token, err := dec.ReadToken()
		if err != nil {
			return err
		}
		name := token.String()
		switch {
		case name != "links":
			return badField(clip(name), "is no field of this request")
		case given:
			return badField(name, "is given twice")
		}
		given = true
		if err := r.list(); err != nil {
			return err
		}
	}
	if !given {
		return badField("links", "is required")
	}
	_, err := dec.ReadToken()
	return err
}

func (r *rowReader) list() error {
	dec := r.Decoder
	if err := open(dec, '[', "links", "want an array"); err != nil {
		return err
	}
	for dec.PeekKind() != ']' {
		text, err := dec.ReadValue()
		switch {
		case err != nil:
			return err
		case len(r.rows)+len(r.ends) == shorten.MaxMany:
			return badField("links", fmt.Sprintf("want at most %d", shorten.MaxMany))
		}
		if err := r.add(text); err != nil {
			return err
		}
	}
	_, err := dec.ReadToken()
	return err
}

// readRow reads one link as a request of its own would be read.
func readRow(text []byte) (row shorten.Row) {
	if len(text) > maxLinkBody {
		row.Err = tooBig(maxLinkBody)
		return row
	}
	var body LinkCreate
	if row.Err = decode(text, &body); row.Err == nil {
		row.Request = body.request()
	}
	return row
}

// open reads the beginning of an object or array, or says what else it wanted.
func open(dec *jsontext.Decoder, kind jsontext.Kind, field, want string) error {
	token, err := dec.ReadToken()
	if err == nil && token.Kind() != kind {
		return badField(field, want)
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
	return badField("", "there is something behind the object")
}

// bulkError turns what the decoder met into a problem.
func bulkError(err error) error {
	if _, ok := errors.AsType[*refusal](err); ok || err == nil {
		return err
	}
	switch {
	case isTooLarge(err):
		return tooBig(maxBulkBody)
	case errors.Is(err, bodies.ErrFull), errors.Is(err, bodies.ErrSlow), errors.Is(err, context.Canceled):
		return held(err)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return &refusal{kind: kindSlow(), detail: "the body did not arrive in time"}
	}
	return badField("", "the body is not valid JSON, ended early or is badly framed")
}
