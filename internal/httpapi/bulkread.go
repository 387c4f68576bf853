package httpapi

import (
	"bytes"
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

// admitRows is what is asked before a byte of a BulkCreate is read.
func (c *call) admitRows() error {
	if err := c.checkMedia(); err != nil {
		return err
	}
	if c.r.ContentLength > maxBulkBody {
		return tooBig(maxBulkBody)
	}
	return c.afford()
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
func (c *call) readRows(text io.Reader) ([]shorten.Row, error) {
	// net/http learns here to end the connection of a client that sends too much.
	most := http.MaxBytesReader(telemetry.Bare(c.w), io.NopCloser(text), maxBulkBody)
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
func readLinks(dec *jsontext.Decoder) (rows []shorten.Row, err error) {
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
			return nil, badField(clip(name), "is no field of this request")
		case given:
			return nil, badField(name, "is given twice")
		}
		given = true
		if rows, err = readList(dec); err != nil {
			return nil, err
		}
	}
	if !given {
		return nil, badField("links", "is required")
	}
	_, err = dec.ReadToken()
	return rows, err
}

func readList(dec *jsontext.Decoder) ([]shorten.Row, error) {
	if err := open(dec, '[', "links", "want an array"); err != nil {
		return nil, err
	}
	rows := []shorten.Row{}
	for dec.PeekKind() != ']' {
		text, err := dec.ReadValue()
		switch {
		case err != nil:
			return nil, err
		case len(rows) == shorten.MaxMany:
			return nil, badField("links", fmt.Sprintf("want at most %d", shorten.MaxMany))
		}
		rows = append(rows, readRow(text))
	}
	_, err := dec.ReadToken()
	return rows, err
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
