// Package redirect answers visitors: the reason curt exists. Read handler.go,
// then resolver.go for the decision and answer.go for the bytes; behind them
// cache/tiered.go finds the target and clicks/ring.go takes the click.
//
//	request ─► Handler: host and path → link.Key
//	             └► Resolver: Source.Lookup, then the first state that holds
//	                  └► Outcome ─► written ─► Recorder.Record
//
// # What is answered
//
// The states are those of link.Target.At, in its order; the first that holds
// decides. Before its start a link, in whatever state, is answered as an unknown code
// is, byte for byte, and at the same cost: a scanner learns neither that it
// exists nor when it begins. Every problem is "no-store" and "noindex",
// and is an HTML page when Accept names text/html, else problem+json with one of the
// types of problem.go. What the pages look like is given (Pages).
//
//	live                          the link's own 301, 302, 307, 308
//	  beyond a limit (limits.go)  429 too-many-visits, Retry-After
//	unknown, no code at all,      404 not-found
//	  before its start
//	  too often from one network  429 rate-limited, Retry-After
//	expired, exhausted            302 to the fallback, else 410 expired, exhausted
//	  warn or quarantined         to the fallback only by the warning, as below
//	disabled, deleted             410 disabled, deleted
//	accepted and never stored     410 record-unreadable, record-invalid
//	warn, quarantined             200 page for browsers, 403 warning for others
//	  with the page's pass        302 to where the page said, no-store
//	blocked                       403 blocked
//	legal                         451 legal
//	the store is unavailable      503 unavailable, Retry-After
//	301 and 302 links, by other   405 method-not-allowed, Allow
//	  methods than GET and HEAD
//	query forwarded, too long     414 uri-too-long
//	the destination is a host of  508 loop
//	  ours now, or the Host asked
//	the stored destination is     500 broken-link
//	  not a safe Location
//
// The page of a warning shows where the link leads, and has one link that leads on: to
// the address of the link itself, with a pass (pass.go). Nothing follows it by itself.
//
// "/{code}/qr" is answered with a QR code of the short URL while the link leads
// somewhere, be it to its fallback: 200, or 304 by its ETag. Otherwise the answer is
// that of the table, and 403 warning for browsers, too; 400 invalid-request when the query
// is invalid (internal/qr). It is not a visit: no click is counted or spent.
//
// No link is made to a host of ours, but a host may become ours later. Such a link
// leads nowhere and such a fallback counts as none (loop.go), so that no visitor is
// ever sent from one of our links to another: a circle ends at its first link. A Host
// that is not configured serves the default domain and, for its own visitors, counts
// as ours, too (LeadsBack); other such names are unknown.
//
// The package reaches no SQL, no accounts, no analytics and no moderation.
package redirect
