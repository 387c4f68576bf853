// Package connlimit decides which connections are closed when there is no room for more,
// and how long a client may take to send a body. Read pick.go for the order of eviction,
// progress.go for what tells an unfinished request from one that the server works on.
//
// # What it promises
//
// A listener holds so many connections, and so many requests at net/http that are not
// finished. While there is room, nobody is refused and nobody is closed, however many
// connections one address holds: behind it may be a proxy that was not declared, or a
// carrier's NAT. When there is none, who comes takes the place of another:
//
//  1. of who had its last answer and lingers;
//  2. of the slowest of whoever's network holds more than its share of unfinished
//     requests: a sixteenth of the limit;
//  3. of who is idle longest, which costs its client a new connection;
//  4. of the slowest unfinished request of the network that holds most of them.
//
// Unfinished is whatever waits for its client: a handshake, a PROXY header or a head under
// way, silence behind accept, a body that has not arrived, an answer that is not taken.
// What the server works on, and a stream that it feeds, is never closed. Only when all are
// such, the one that comes is refused.
//
// A body may be silent for BodyGrace, and each BodyRate bytes that came earn a second more:
// a small one has ten seconds, a large one arrives at that rate at least, also where there
// is room. Only time in which the server waits for the client counts.
//
// # Whose network
//
// The /24 of an IPv4 address, the /48 of an IPv6 address: the least that a provider hands
// out to a site. With single addresses, and with the /64 of IPv6, who has a site would hold
// 254 or 65,536 times as much before losing first. Neighbours of such a client pay little for that:
// they are refused nothing, and of a network too the slowest goes first. Behind a proxy
// that is trusted the network is the client's, as soon as it is known: from the PROXY
// header, or from X-Forwarded-For of the request under way. Until then it is the proxy's,
// who owes the bytes. One connection of HTTP/2 from a proxy carries many clients, and
// stays the proxy's.
//
// # Who may use it
//
// The lane owns its connections and asks Picker and Progress. Listener is the same for a
// listener that net/http serves alone. It may import internal/clientaddr and the standard
// library.
package connlimit
