package lane

import (
	"bytes"
	"net"
	"net/netip"
	"strings"

	"curt/internal/clicks"
	"curt/internal/clientaddr"
	"curt/internal/lane/head"
)

// peer is the other end of a connection: the client, or a proxy.
type peer struct {
	addr    netip.Addr
	trusted bool // a proxy whose X-Forwarded-For is believed
}

func peerOf(a net.Addr, clients clientaddr.Rule) (p peer) {
	if tcp, ok := a.(*net.TCPAddr); ok {
		p.addr = tcp.AddrPort().Addr().Unmap().WithZone("")
	}
	p.trusted = p.addr.IsValid() && clients.Trusts(p.addr)
	return p
}

// client returns the address of the client, behind proxies that are believed.
func (p *peer) client(clients clientaddr.Rule, x *exchange) netip.Addr {
	if !p.trusted || len(x.head.Forwarded) == 0 {
		return p.addr
	}
	x.views = x.views[:0]
	for _, line := range x.head.Forwarded {
		x.views = append(x.views, head.View(line))
	}
	return clients.Of(p.addr, x.views)
}

// country returns the country that a trusted proxy states in a head, which parse found to be
// well-formed; zero where it states none, or several. It is a second pass over the head, so that
// servers without such a proxy do no work for it.
func (p *peer) country(head []byte, name string) (code [2]byte) {
	if !p.trusted {
		return code
	}
	seen := false
	for {
		end := bytes.IndexByte(head, '\n')
		if end < 0 {
			return code
		}
		line := head[:max(end-1, 0)] // without its CR
		head = head[end+1:]
		colon := bytes.IndexByte(line, ':')
		if colon < 0 || !strings.EqualFold(string(line[:colon]), name) {
			continue
		}
		if seen {
			return [2]byte{}
		}
		seen, code = true, clicks.ParseCountry(bytes.Trim(line[colon+1:], " \t"))
	}
}
