package main

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// progress is a line on a terminal that says how far a command has come. It takes
// itself away before anything else is printed. The zero progress prints nothing.
type progress struct {
	out   io.Writer // nil: nobody looks
	total int64     // in the unit of show's done; 0 = unknown
	drawn time.Time
	there bool // the line is on the screen
}

// newProgress draws on the error stream when that is a terminal.
func newProgress(t terminal, total int64) *progress {
	if !isTerminal(t.err) {
		return &progress{}
	}
	return &progress{out: t.err, total: total}
}

// show draws the line, at most ten times a second.
func (p *progress) show(now time.Time, done int64, text string) {
	if p.out == nil || now.Sub(p.drawn) < 100*time.Millisecond {
		return
	}
	p.drawn, p.there = now, true
	if p.total > 0 {
		const width = 30
		part := int(min(done, p.total) * width / p.total)
		text = fmt.Sprintf("[%s%s] %3d %%  %s", strings.Repeat("#", part), strings.Repeat(".", width-part), min(done, p.total)*100/p.total, text)
	}
	_, _ = fmt.Fprintf(p.out, "\r%s\x1b[K", plain(text))
}

// clear takes the line away.
func (p *progress) clear() {
	if p.there {
		p.there, p.drawn = false, time.Time{}
		_, _ = io.WriteString(p.out, "\r\x1b[K")
	}
}
