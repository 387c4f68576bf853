package kernel

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"curt/internal/shorten"
)

// Decode reads one JSON object into v. It refuses, with words for the caller,
// what is not exactly the documented shape: unknown members, names given twice,
// invalid UTF-8, anything behind the object.
func Decode(body []byte, v any) error {
	if text := bytes.TrimLeft(body, " \t\r\n"); len(text) == 0 || text[0] != '{' { // null is no object
		return BadField("", "the body must be a JSON object")
	}
	err := json.Unmarshal(body, v, json.RejectUnknownMembers(true))
	if err == nil {
		return nil
	}
	if refused, ok := errors.AsType[*refusal](err); ok {
		return refused
	}
	if semantic, ok := errors.AsType[*json.SemanticError](err); ok {
		field := FieldName(semantic.JSONPointer)
		switch {
		case errors.Is(err, json.ErrUnknownName):
			return BadField(field, "unknown field")
		case semantic.GoType != nil:
			return BadField(field, "expected "+jsonType(semantic.GoType))
		}
		return BadField(field, "wrong type")
	}
	if syntactic, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		field := FieldName(syntactic.JSONPointer)
		if errors.Is(err, jsontext.ErrDuplicateName) {
			return BadField(field, "duplicate field")
		}
		return BadField(field, "the body is not valid JSON in UTF-8")
	}
	return BadField("", "the body is not valid JSON")
}

// FieldName returns the member of the body that a JSON pointer leads into.
func FieldName(p jsontext.Pointer) string {
	for name := range p.Tokens() {
		return Clip(name)
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

// Opt is a member of a body that may be absent, null or a value.
type Opt[T any] struct{ shorten.Field[T] }

// UnmarshalJSONFrom reads a present member.
func (o *Opt[T]) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
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
func (Opt[T]) Schema(r huma.Registry) *huma.Schema {
	s := r.Schema(reflect.TypeFor[T](), true, "")
	s.Nullable = true
	return s
}

// Date is a time that a client wrote.
type Date time.Time

// UnmarshalJSONFrom reads the dates of parseDate.
func (d *Date) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	field := func() string { return FieldName(dec.StackPointer()) }
	if dec.PeekKind() != '"' {
		return BadField(field(), "expected a string")
	}
	token, err := dec.ReadToken()
	if err != nil {
		return err
	}
	t, err := ParseDate(token.String())
	if err != nil {
		return BadField(field(), err.Error())
	}
	*d = Date(t)
	return nil
}

// Schema says what RFC 3339 calls it.
func (Date) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Format: "date-time"}
}

// readWhole reads a whole number in any spelling of JSON: 301, 301.0 and 3.01e2 are
// one number (RFC 8259 has one kind; JSON Schema counts all three as integers, and so
// do programs that know only floating point). What has a fraction, however small, or
// does not fit is no whole number.
func readWhole(dec *jsontext.Decoder, n *int64) error {
	if dec.PeekKind() != '0' {
		return json.UnmarshalDecode(dec, n) // for its error
	}
	token, err := dec.ReadToken()
	if err != nil {
		return fmt.Errorf("read a number: %w", err)
	}
	field := FieldName(dec.StackPointer())
	digits, ok := plain(token.String())
	if ok {
		*n, err = strconv.ParseInt(digits, 10, 64)
	}
	if !ok || err != nil {
		return BadField(field, "expected a whole number")
	}
	return nil
}

// maxDigits is enough for every int64.
const maxDigits = 19

// plain writes a JSON number without fraction and exponent; false = it is not whole,
// or has more than maxDigits digits.
func plain(text string) (string, bool) {
	sign := ""
	if strings.HasPrefix(text, "-") {
		sign, text = "-", text[1:]
	}
	mantissa, power := text, ""
	if i := strings.IndexAny(text, "eE"); i >= 0 {
		mantissa, power = text[:i], text[i+1:]
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	if digits == "" {
		return "0", true
	}
	zeros := 0
	if power != "" {
		var err error
		if zeros, err = strconv.Atoi(power); err != nil { // beyond all that fits
			return "", false
		}
	}
	significant := strings.TrimRight(digits, "0")
	zeros += len(digits) - len(significant) - len(fraction)
	if zeros < 0 || zeros > maxDigits || len(significant)+zeros > maxDigits {
		return "", false
	}
	return sign + significant + strings.Repeat("0", zeros), true
}

// errDate is what is wrong with every date that parseDate refuses.
var errDate = errors.New("expected a date like 2027-01-31T12:00:00Z, with an offset; seconds and fractions are optional")

// ParseDate reads an RFC 3339 date whose seconds may be missing. time.Parse reads
// more than that (a comma before the fraction, one-digit hours) and is not used
// to judge the shape.
func ParseDate(s string) (time.Time, error) {
	const shape = "dddd-dd-ddTdd:dd"
	if len(s) < len(shape)+1 || len(s) > len("2006-01-02T15:04:05.123456789+00:00") {
		return time.Time{}, errDate
	}
	for i := range len(shape) {
		if !fits(shape[i], s[i]) {
			return time.Time{}, errDate
		}
	}
	rest := s[len(shape):]
	seconds := ":00"
	if rest[0] == ':' {
		n := secondsLength(rest)
		if n == 0 || n == len(rest) {
			return time.Time{}, errDate
		}
		seconds, rest = rest[:n], rest[n:]
	}
	if rest == "z" {
		rest = "Z"
	}
	if !validOffset(rest) {
		return time.Time{}, errDate
	}
	t, err := time.Parse(time.RFC3339Nano, s[:10]+"T"+s[11:16]+seconds+rest)
	if err != nil {
		return time.Time{}, errDate
	}
	return t.UTC(), nil
}

func fits(shape, c byte) bool {
	switch shape {
	case 'd':
		return digit(c)
	case 'T':
		return c == 'T' || c == 't'
	}
	return c == shape
}

func digit(c byte) bool { return '0' <= c && c <= '9' }

// secondsLength returns the length of ":dd" or ":dd.d…" at the start of s, or 0.
func secondsLength(s string) int {
	if len(s) < 3 || !digit(s[1]) || !digit(s[2]) {
		return 0
	}
	n := 3
	if len(s) == n || s[n] != '.' {
		return n
	}
	for n++; n < len(s) && digit(s[n]); n++ {
	}
	if n == len(":00.") {
		return 0
	}
	return n
}

// validOffset reports whether s is Z or ±dd:dd within a day.
func validOffset(s string) bool {
	if s == "Z" {
		return true
	}
	return len(s) == 6 && (s[0] == '+' || s[0] == '-') && digit(s[1]) && digit(s[2]) &&
		s[3] == ':' && digit(s[4]) && digit(s[5]) && s[1:3] <= "23" && s[4:6] <= "59"
}
