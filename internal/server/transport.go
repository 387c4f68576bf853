package server

import (
	"context"
	"log/slog"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"curt/internal/auth"
	"curt/internal/config"
)

// transport is what answers say of https: the value of Strict-Transport-Security, or "".
// It names this host alone: subdomains may be others'.
func transport(cfg config.Config) string {
	if cfg.HSTS <= 0 {
		return ""
	}
	return "max-age=" + strconv.FormatInt(int64(time.Duration(cfg.HSTS)/time.Second), 10)
}

const (
	clearKeys   = "API keys travel in clear to whoever is on the way"
	clearAdvice = "set CURT_TLS_CERT and CURT_TLS_KEY, or listen on a loopback address behind a proxy that speaks TLS; of one elsewhere name the network in CURT_TRUSTED_PROXIES"
)

// keysInClear returns the setting and the address where keys are taken without TLS from
// beyond this machine; "" = nowhere. A proxy that is declared, under a base URL of https,
// is taken at its word.
func keysInClear(cfg config.Config) (setting, address string) {
	setting, address = "CURT_LISTEN", cfg.Listen
	if cfg.APIListen != "" {
		setting, address = "CURT_API_LISTEN", cfg.APIListen
	}
	proxied := strings.HasPrefix(cfg.BaseURL, "https://") && len(cfg.TrustedProxies) > 0
	if !rolesOf(cfg).programs || cfg.TLSCert != "" || proxied || staysHere(address) {
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
	return host != "" && auth.NewHosts().Own(host)
}

// warnOfClearKeys tells the operator at the start, once.
func (s *Server) warnOfClearKeys(ctx context.Context) {
	if setting, address := keysInClear(s.config); setting != "" {
		s.log.WarnContext(ctx, "keys travel in clear", slog.String("setting", setting), slog.String("addr", address), slog.String("advice", clearAdvice))
	}
}
