package clicks

// What is kept of a request's headers, in bytes; the rest is cut off. Browsers
// send less: the longest user agents of in-app browsers are near 400 bytes, and a
// referrer that matters is a host. The sum bounds a click, so that strangers
// cannot fill the ring with a few requests.
const (
	maxUserAgent = 512
	maxReferrer  = 512
	maxLanguage  = 64
	maxQuery     = 512
	maxDomain    = 259 // a host name and its port, as link.Key allows
	maxCode      = 64  // link.MaxCode; only an orphan can be longer
	maxPlace     = 128 // city and network, which come from the operator's file
)

func cut(b []byte, limit int) []byte { return b[:min(len(b), limit)] }
