package server

import (
	"context"
	"net/http"

	"curt/internal/httpapi"
)

// untilAnswered lets a handler finish although the client has closed its side. net/http takes
// the end of what a client sends for the client's end and cancels the request, but a client
// may close its half behind its last request and still read (RFC 9112, 9.6): `nc -N` does. Such
// a visitor was answered 503 while the link store was asked, and a click of max_clicks
// was spent for that. A handler still ends within what a write may take; nothing
// can be answered after it. Streams, which end with the client alone, and HTTP/2, which tells
// the two apart, stay as they are.
func untilAnswered(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != 1 || httpapi.Streams(r) {
			next.ServeHTTP(w, r)
			return
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), idleTimeout)
		defer cancel()
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}
