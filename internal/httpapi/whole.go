package httpapi

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

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
	field := fieldName(dec.StackPointer())
	digits, ok := plain(token.String())
	if ok {
		*n, err = strconv.ParseInt(digits, 10, 64)
	}
	if !ok || err != nil {
		return badField(field, "want a whole number")
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
