package kernel

import (
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"curt/internal/auth"
	"curt/internal/bodies"
	"curt/internal/hosts"
)

// Config is what [New] needs. Everything but Bodies and Now is required.
type Config struct {
	Auth       auth.Authenticator
	ClientAddr func(*http.Request) netip.Addr // of the client, proxies considered
	Hosts      *hosts.Current                 // those of this service, for callers without a key
	CursorKey  []byte                         // signs cursors
	Schemas    huma.Registry                  // of the description, for choices by name
	Bodies     *bodies.Budget                 // the memory for bodies of requests; nil = one of its own
	Log        *slog.Logger
	Now        func() time.Time // nil = time.Now
}

// Kernel is the state that all requests share; set once in New.
type Kernel struct {
	cfg      Config
	cursors  cursors
	origins  *http.CrossOriginProtection
	problems problemTable
	failures failures
	buffers  *sync.Pool
}

// New returns what runs operations.
func New(cfg Config) *Kernel {
	if cfg.Bodies == nil {
		cfg.Bodies = bodies.New(bodies.Config{})
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Kernel{cfg: cfg, cursors: cursors{slices.Clone(cfg.CursorKey)}, origins: http.NewCrossOriginProtection(), problems: mappings(), buffers: newBuffers()}
}
