package httpapi

import (
	"bytes"
	"errors"
	"reflect"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"curt/internal/link"
	"curt/internal/shorten"
)

// decode reads one JSON object into v. It refuses, with words for the caller,
// what is not exactly the documented shape: unknown members, names given twice,
// invalid UTF-8, anything behind the object.
func decode(body []byte, v any) error {
	if text := bytes.TrimLeft(body, " \t\r\n"); len(text) == 0 || text[0] != '{' { // null is no object
		return badField("", "the body must be a JSON object")
	}
	err := json.Unmarshal(body, v, json.RejectUnknownMembers(true))
	if err == nil {
		return nil
	}
	if refused, ok := errors.AsType[*refusal](err); ok {
		return refused
	}
	if semantic, ok := errors.AsType[*json.SemanticError](err); ok {
		field := fieldName(semantic.JSONPointer)
		switch {
		case errors.Is(err, json.ErrUnknownName):
			return badField(field, "is no field of this request")
		case semantic.GoType != nil:
			return badField(field, "want "+jsonType(semantic.GoType))
		}
		return badField(field, "has the wrong type")
	}
	if syntactic, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		field := fieldName(syntactic.JSONPointer)
		if errors.Is(err, jsontext.ErrDuplicateName) {
			return badField(field, "is given twice")
		}
		return badField(field, "the body is not valid JSON in UTF-8")
	}
	return badField("", "the body is not valid JSON")
}

// fieldName returns the member of the body that a JSON pointer leads into.
func fieldName(p jsontext.Pointer) string {
	for name := range p.Tokens() {
		return clip(name)
	}
	return ""
}

// jsonType names a Go type in the words of JSON.
func jsonType(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice:
		return "an array"
	case reflect.Int64:
		return "a whole number"
	case reflect.Struct:
		return "an object"
	default:
		return "another type"
	}
}

// opt is a member of a body that may be absent, null or a value.
type opt[T any] struct{ shorten.Field[T] }

// UnmarshalJSONFrom reads a present member.
func (o *opt[T]) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	o.Given = true
	if dec.PeekKind() == 'n' {
		o.Null = true
		_, err := dec.ReadToken()
		return err
	}
	if n, ok := any(&o.Value).(*int64); ok {
		return readWhole(dec, n)
	}
	return json.UnmarshalDecode(dec, &o.Value)
}

// Schema says that null is as good as a value.
func (opt[T]) Schema(r huma.Registry) *huma.Schema {
	s := r.Schema(reflect.TypeFor[T](), true, "")
	s.Nullable = true
	return s
}

// date is a time that a client wrote.
type date time.Time

// UnmarshalJSONFrom reads the dates of parseDate.
func (d *date) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	field := func() string { return fieldName(dec.StackPointer()) }
	if dec.PeekKind() != '"' {
		return badField(field(), "want a string")
	}
	token, err := dec.ReadToken()
	if err != nil {
		return err
	}
	t, err := parseDate(token.String())
	if err != nil {
		return badField(field(), err.Error())
	}
	*d = date(t)
	return nil
}

// Schema says what RFC 3339 calls it.
func (date) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Format: "date-time"}
}

// dates turns a decoded date into the field of a request.
func dates(o opt[date]) shorten.Field[time.Time] {
	return shorten.Field[time.Time]{Value: time.Time(o.Value), Given: o.Given, Null: o.Null}
}

// status is the will of a link's owner as a client writes it.
type status link.Status

// UnmarshalJSONFrom reads "active" or "disabled": nobody else's will is written
// here, and deleting has its own method.
func (s *status) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	var name string
	if err := json.UnmarshalDecode(dec, &name); err != nil {
		return err
	}
	parsed, ok := parseStatus(name)
	if !ok {
		return badField(fieldName(dec.StackPointer()), "want active or disabled")
	}
	*s = status(parsed)
	return nil
}

// Schema lists the values.
func (status) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Enum: []any{"active", "disabled"}}
}

func parseStatus(name string) (link.Status, bool) {
	switch name {
	case "active":
		return link.Active, true
	case "disabled":
		return link.Disabled, true
	}
	return 0, false
}
