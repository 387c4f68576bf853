// Package weburl reads URLs as browsers do (WHATWG URL) and holds curt's rules
// for destinations. Everything that asks "which host does this lead to" asks
// here: net/url reads another host than browsers do in a few per cent of hostile
// spellings, and a policy that reads another host than the visitor is no policy.
package weburl
