package weburl

import "errors"

// ErrInvalid is what every error of Parse wraps.
var ErrInvalid = errors.New("invalid URL")

// The kinds of ErrInvalid, one per rule. None carries the URL: destinations are
// private, and errors are logged.
var (
	ErrEmpty       = &Error{"empty", "The URL is empty; send an absolute URL such as https://example.com/page."}
	ErrTooLong     = &Error{"too long", "The URL is too long; at most 8,192 bytes are allowed, counted after characters outside ASCII are percent-encoded."}
	ErrEncoding    = &Error{"not UTF-8", "The URL is not valid UTF-8; percent-encode bytes that are not text."}
	ErrControl     = &Error{"control character", "The URL contains a control character, such as a line break or a tab; remove it, or percent-encode it."}
	ErrScheme      = &Error{"scheme is not http or https", "The URL must begin with https:// or http://."}
	ErrCredentials = &Error{"credentials", "The URL contains a user name or password before the @; remove it."}
	ErrHost        = &Error{"host", "The host of the URL is missing or is not a valid host name or IP address; check its spelling."}
	ErrPort        = &Error{"port", "The port of the URL must be a number from 1 to 65535."}
)

// Error is a rule that a URL broke. It wraps ErrInvalid.
type Error struct {
	reason string
	public string
}

func (e *Error) Error() string { return ErrInvalid.Error() + ": " + e.reason }

// Unwrap returns ErrInvalid.
func (e *Error) Unwrap() error { return ErrInvalid }

// PublicMessage says what to do, to whoever sent the URL.
func (e *Error) PublicMessage() string { return e.public }
