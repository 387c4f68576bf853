package qr

import (
	"errors"
	"fmt"

	"github.com/boombuler/barcode/qr"
)

// ErrTooLong means that no QR code of the level holds the text.
var ErrTooLong = errors.New("the text is too long for a QR code")

// Text returns what the code of a short URL says: the URL with the trigger by which
// its clicks are told from others. A short URL has no query of its own.
func Text(shortURL string) string { return shortURL + "?qr=1" }

// matrix is a code without its quiet zone.
type matrix struct {
	n    int    // modules on a side
	dark []bool // row by row
}

func (m matrix) at(x, y int) bool { return m.dark[y*m.n+x] }

// encode makes the smallest code that holds the text. Bytes are the mode of URLs,
// which have small letters.
func encode(text string, level Level) (matrix, error) {
	levels := [...]qr.ErrorCorrectionLevel{L: qr.L, M: qr.M, Q: qr.Q, H: qr.H}
	code, err := qr.Encode(text, levels[level], qr.Unicode)
	if err != nil {
		return matrix{}, fmt.Errorf("%w: %d bytes: %w", ErrTooLong, len(text), err)
	}
	m := matrix{n: code.Bounds().Dx()}
	m.dark = make([]bool, 0, m.n*m.n)
	for y := range m.n {
		for x := range m.n {
			r, _, _, _ := code.At(x, y).RGBA()
			m.dark = append(m.dark, r == 0)
		}
	}
	return m, nil
}

// runs calls f for each row's unbroken runs of dark modules.
func (m matrix) runs(f func(x, y, width int)) {
	for y := range m.n {
		for x := 0; x < m.n; x++ {
			from := x
			for x < m.n && m.at(x, y) {
				x++
			}
			if x > from {
				f(from, y, x-from)
			}
		}
	}
}
