package redirect

import (
	"errors"
	"log/slog"
	"net/http"

	"curt/internal/clientaddr"
	"curt/internal/link"
)

// HandlerConfig says how a Handler serves.
type HandlerConfig struct {
	Resolver *Resolver
	Recorder Recorder

	// Hosts maps canonical hosts (lower-case A-labels, ":port" only where it
	// matters) to the domains whose links they serve. The default domain's own host
	// maps to "".
	Hosts map[string]link.Domain
	// StrictHost answers 404 to hosts that Hosts does not name; otherwise they serve
	// the default domain.
	StrictHost bool

	Clients clientaddr.Rule
	Log     *slog.Logger // nil = discard
}

// Handler answers visitors over net/http.
type Handler struct {
	cfg HandlerConfig
}

// NewHandler returns a Handler; Resolver and Recorder are required.
func NewHandler(cfg HandlerConfig) (*Handler, error) {
	if cfg.Resolver == nil || cfg.Recorder == nil {
		return nil, errors.New("redirect: a handler needs a resolver and a recorder")
	}
	return &Handler{cfg: cfg}, nil
}

// ServeHTTP answers one visitor and records the visit.
func (h *Handler) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	http.Error(w, "not found", http.StatusNotFound)
}
