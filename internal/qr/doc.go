// Package qr draws QR codes (ISO/IEC 18004) of short URLs. Read options.go for what
// may be asked, then drawer.go.
//
//	raw query ─► ParseQuery ─► Options ─► Drawer.Draw ─► SVG or PNG
//	                              └────► Options.Tag ─► ETag, without drawing
//
// It promises that
//   - the same text and options give the same bytes, in every process of a version;
//   - what is drawn can be read: combinations of colours that scanners fail at, and
//     images too small for their modules, are refused and not drawn;
//   - drawing takes one processor at most, however many ask.
//
// Encoding, with its mask patterns and error correction, is left to
// github.com/boombuler/barcode. It knows nothing of links, HTTP answers or files, and
// imports nothing of ours.
package qr
