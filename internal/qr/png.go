package qr

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/png"
)

// picture is a matrix as an image of two colours. It computes its pixels when the
// encoder asks for them, so that a large image costs no memory.
type picture struct {
	matrix  matrix
	palette color.Palette // background, foreground
	module  []int         // of each row and column of pixels; -1 = quiet zone
}

var _ image.PalettedImage = picture{} // png writes one bit for each pixel of those

func (p picture) ColorModel() color.Model { return p.palette }
func (p picture) Bounds() image.Rectangle { return image.Rect(0, 0, len(p.module), len(p.module)) }
func (p picture) At(x, y int) color.Color { return p.palette[p.ColorIndexAt(x, y)] }

func (p picture) ColorIndexAt(x, y int) uint8 {
	column, row := p.module[x], p.module[y]
	if column >= 0 && row >= 0 && p.matrix.at(column, row) {
		return 1
	}
	return 0
}

// leastModule is the side of a module in a PNG, in pixels: of codes with modules of one
// pixel zbar cannot read a third. An SVG grows with the page that shows it.
const leastModule = 2

// png draws modules of whole pixels, because blurred edges cost readers; what is left
// over widens the quiet zone.
func (m matrix) png(o Options) ([]byte, error) {
	scale := o.Size / (m.n + 2*o.Margin)
	p := picture{
		matrix: m, palette: color.Palette{o.Background.rgba(), o.Foreground.rgba()}, module: make([]int, o.Size),
	}
	first := (o.Size - m.n*scale) / 2
	for i := range p.module {
		p.module[i] = -1
		if at := i - first; at >= 0 && at < m.n*scale {
			p.module[i] = at / scale
		}
	}
	var b bytes.Buffer
	if err := png.Encode(&b, p); err != nil {
		return nil, fmt.Errorf("write a PNG: %w", err)
	}
	return b.Bytes(), nil
}
