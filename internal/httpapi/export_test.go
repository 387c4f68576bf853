package httpapi

import (
	"net/http"
	"time"

	"curt/internal/shorten"
)

// ParseDate and IfMatch are tested as the small languages that they are.
func ParseDate(s string) (time.Time, error) { return parseDate(s) }

func IfMatch(lines ...string) (shorten.Match, error) { return ifMatch(http.Header{"If-Match": lines}) }
