package qr

import (
	"bytes"
	"fmt"
)

// svg draws with two paths and nothing that a policy of "default-src 'none'" forbids:
// no style, no script, no reference. A module is one unit.
func (m matrix) svg(o Options) []byte {
	n := m.n + 2*o.Margin
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" shape-rendering="crispEdges">`,
		o.Size, o.Size, n, n)
	fmt.Fprintf(&b, `<path fill="%s" d="M0 0h%dv%dH0z"/><path fill="%s" d="`, o.Background.hex(), n, n, o.Foreground.hex())
	m.runs(func(x, y, width int) {
		fmt.Fprintf(&b, "M%d %dh%dv1h-%dz", x+o.Margin, y+o.Margin, width, width)
	})
	b.WriteString("\"/></svg>\n")
	return b.Bytes()
}
