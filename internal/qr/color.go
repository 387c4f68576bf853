package qr

import (
	"fmt"
	"image/color"
	"math"
	"strconv"
)

// Color is 0xRRGGBB, in sRGB.
type Color uint32

// minContrast is the least difference of reflectance between light and dark: the
// limit of grade C in the symbol contrast of ISO/IEC 15415, which printers agree on
// for codes that are read more than once.
const minContrast = 0.40

// parseColor takes six hexadecimal digits; "#" would have to be escaped in a query.
func parseColor(name, s string, otherwise Color) (Color, error) {
	if s == "" {
		return otherwise, nil
	}
	n, err := strconv.ParseUint(s, 16, 32)
	if err != nil || len(s) != 6 {
		return 0, &Error{name, "expected six hexadecimal digits, such as 1a2b3c"}
	}
	return Color(n), nil
}

// hex is how SVG writes the colour.
func (c Color) hex() string { return fmt.Sprintf("#%06x", uint32(c)) }

func (c Color) rgba() color.RGBA {
	return color.RGBA{R: uint8(c >> 16), G: uint8(c >> 8), B: uint8(c), A: 255}
}

// reflectance is the share of light that the colour gives back, 0 to 1: the relative
// luminance of WCAG 2, from the linear values of sRGB (IEC 61966-2-1).
func (c Color) reflectance() float64 {
	linear := func(channel Color) float64 {
		v := float64(channel&0xff) / 255
		if v <= 0.04045 {
			return v / 12.92
		}
		return math.Pow((v+0.055)/1.055, 2.4)
	}
	return 0.2126*linear(c>>16) + 0.7152*linear(c>>8) + 0.0722*linear(c)
}
