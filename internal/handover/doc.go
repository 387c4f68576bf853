// Package handover is how curt move has the server of a data folder stop writing links, so that
// they can be written elsewhere from one moment on. Read server.go first, then mover.go.
//
// The two processes share the data folder and nothing else. The mover holds a lock of the kernel
// on move.lock for as long as it lives, and writes what it asks for into move.ask; the server,
// which looks for that file once a second, writes what it did into move.answer. So nothing is
// asked of the store for a write, and a server needs no other listener.
//
//   - freeze: the server refuses writes as unavailable. It accepts them again as soon as the mover
//     is gone, takes its word back, or has not come to an end within Limit.
//   - switch: a server that is still frozen writes the file moved, durably, and never writes a link
//     again. From that file on the links of the folder are elsewhere, whatever happens to either
//     process; a server that is not frozen any more says so instead, and the mover begins again.
//
// One process decides, the server, so that there is no moment at which both sides write. A folder
// that no server uses is frozen by its lock, which keeps servers from starting.
//
// The package imports nothing of the stores.
package handover
