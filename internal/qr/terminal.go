package qr

import "strings"

// Terminal returns the text's code for a terminal that knows ANSI colours: two rows of
// modules in one line of half blocks, in black on white whatever the terminal's own
// colours are. It wants a margin of 0 to MaxMargin modules.
func Terminal(text string, level Level, margin int) (string, error) {
	m, err := encode(text, level)
	if err != nil {
		return "", err
	}
	dark := func(x, y int) bool {
		x, y = x-margin, y-margin
		return x >= 0 && y >= 0 && x < m.n && y < m.n && m.at(x, y)
	}
	// 16 and 231 are black and white in the palette that themes leave alone.
	const begin, end = "\x1b[38;5;16;48;5;231m", "\x1b[0m\n"
	n := m.n + 2*margin
	var b strings.Builder
	for y := 0; y < n; y += 2 {
		b.WriteString(begin)
		for x := range n {
			switch upper, lower := dark(x, y), dark(x, y+1); {
			case upper && lower:
				b.WriteRune('█')
			case upper:
				b.WriteRune('▀')
			case lower:
				b.WriteRune('▄')
			default:
				b.WriteByte(' ')
			}
		}
		b.WriteString(end)
	}
	return b.String(), nil
}
