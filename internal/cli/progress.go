package cli

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// Progress is a line on a terminal about the progress of a command. Clear removes it before
// other output. The zero Progress prints nothing.
type Progress struct {
	Total int64 // in the unit of Show's done; 0 = unknown

	out   io.Writer // nil: not a terminal
	drawn time.Time
	there bool // the line is on the screen
}

// NewProgress draws on the error stream when that is a terminal.
func NewProgress(t Terminal, total int64) *Progress {
	if !IsTerminal(t.Err) {
		return &Progress{}
	}
	return &Progress{out: t.Err, Total: total}
}

// Show draws the line, at most ten times a second.
func (p *Progress) Show(now time.Time, done int64, text string) {
	if p.out == nil || now.Sub(p.drawn) < 100*time.Millisecond {
		return
	}
	p.drawn, p.there = now, true
	if p.Total > 0 {
		const width = 30
		part := int(min(done, p.Total) * width / p.Total)
		text = fmt.Sprintf("[%s%s] %3d %%  %s", strings.Repeat("#", part), strings.Repeat(".", width-part), min(done, p.Total)*100/p.Total, text)
	}
	_, _ = fmt.Fprintf(p.out, "\r%s\x1b[K", Plain(text))
}

// Clear removes the line.
func (p *Progress) Clear() {
	if p.there {
		p.there, p.drawn = false, time.Time{}
		_, _ = io.WriteString(p.out, "\r\x1b[K")
	}
}
