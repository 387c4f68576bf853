package settings

import (
	"net"
	"net/netip"
	"strings"

	"curt/internal/config"
	"curt/internal/hosts"
)

const (
	clearKeys   = "API keys are sent unencrypted over the network"
	ClearAdvice = "set CURT_TLS_CERT and CURT_TLS_KEY, or listen on a loopback address behind a TLS proxy; for a proxy on another host add its network to CURT_TRUSTED_PROXIES"
)

// KeysInClear returns the setting and the address where keys are taken without TLS from
// beyond this machine; "" = nowhere. A proxy that is declared, under a base URL of https,
// is taken at its word.
func KeysInClear(cfg config.Config) (setting, address string) {
	setting, address = "CURT_LISTEN", cfg.Listen
	if cfg.APIListen != "" {
		setting, address = "CURT_API_LISTEN", cfg.APIListen
	}
	proxied := strings.HasPrefix(cfg.BaseURL, "https://") && len(cfg.TrustedProxies) > 0
	if !RolesOf(cfg).API || cfg.TLSCert != "" || proxied || staysHere(address) {
		return "", ""
	}
	return setting, address
}

// staysHere reports whether an address to listen on is reached from this machine alone.
// A name that is not localhost may be anything.
func staysHere(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip.Unmap().IsLoopback()
	}
	return host != "" && hosts.NewNames().Own(host)
}
