package clicks

// Dimension is a property that statistics break clicks down by. Its numbers are stored.
type Dimension uint8

// The dimensions of design §9.
const (
	Country Dimension = iota
	City
	Network
	ReferrerHost
	Device
	Browser
	OS
	Language
	Trigger
	UTMSource
	UTMMedium
	UTMCampaign
	UTMTerm
	UTMContent
	NumDimensions = iota
)

// MaxValues is how many values a dimension keeps per link and bucket; what comes
// after the most clicked is summed up as Other, because anyone can invent referrers.
const MaxValues = 200

// Values with a meaning of their own; no header can spell them, because hosts and
// UTM fields are cleaned of parentheses.
const (
	Other  = "(other)"
	Direct = "(direct)" // a click without a referrer

	TriggerLink    = "link"
	TriggerQR      = "qr"
	TriggerWarning = "warning" // on from a warning page, however the visitor came there
)

// dimensionNames are the names in the API, by number.
func dimensionNames() [NumDimensions]string {
	return [...]string{
		"country", "city", "network", "referrer_host", "device", "browser", "os", "language", "trigger",
		"utm_source", "utm_medium", "utm_campaign", "utm_term", "utm_content",
	}
}

// String returns the dimension's name in the API.
func (d Dimension) String() string {
	if d >= NumDimensions {
		return "unknown"
	}
	return dimensionNames()[d]
}

// ParseDimension returns the dimension of a name.
func ParseDimension(name string) (Dimension, bool) {
	for d, n := range dimensionNames() {
		if n == name {
			return Dimension(d), true
		}
	}
	return 0, false
}
