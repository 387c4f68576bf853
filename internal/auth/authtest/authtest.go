// Package authtest holds doubles of package auth for the tests of others:
//
//	handler := httpapi.New(httpapi.Config{Auth: authtest.Callers{
//		"reader": {KeyID: "reader", Workspace: "acme", Scopes: []auth.Scope{auth.LinksRead}},
//	}})
//	request.Header.Set("Authorization", "Bearer reader")
package authtest

import (
	"net/http"
	"net/netip"
	"strings"
	"time"

	"curt/internal/auth"
)

// Callers is an Authenticator that knows callers by a readable token. Whoever
// shows none is anonymous with the scopes of the entry "", if there is one.
type Callers map[string]auth.Principal

// Authenticate returns the caller whose name the Bearer header carries.
func (c Callers) Authenticate(r *http.Request, addr netip.Addr, _ time.Time) (auth.Principal, error) {
	header := r.Header.Get("Authorization")
	if header == "" {
		return auth.Anonymous(addr, c[""].Scopes...), nil
	}
	caller, ok := c[strings.TrimPrefix(header, "Bearer ")]
	if !ok {
		return auth.Principal{}, auth.ErrUnauthenticated
	}
	caller.Addr = addr
	return caller, nil
}
