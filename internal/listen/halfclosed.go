package listen

import (
	"context"
	"net/http"
)

// untilAnswered lets a handler finish although the client has closed its side. net/http takes the
// end of a client's data for the client's end and cancels the request, but a client may close its
// half behind its last request and still read (RFC 9112, 9.6): `nc -N` does. Such a visitor was
// answered 503 while the link store was read, and a click of max_clicks was spent for that. A
// handler still ends within the write timeout; nothing can be answered after it. Streams, which
// end with the client alone, and HTTP/2, which tells the two apart, stay as they are.
func (t *Traffic) untilAnswered(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != 1 || t.cfg.Streams(r) {
			next.ServeHTTP(w, r)
			return
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), idleTimeout)
		defer cancel()
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}
