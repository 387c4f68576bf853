package qr

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
)

// Format is a kind of image.
type Format uint8

// The formats; Any leaves the choice to whoever asked for nothing.
const (
	Any Format = iota
	SVG
	PNG
)

// Level is how much of a code may be lost: L 7 %, M 15 %, Q 25 %, H 30 %.
type Level uint8

// The levels, from the smallest code to the most robust.
const (
	L Level = iota
	M
	Q
	H
)

// The bounds of what may be asked.
const (
	MinSize, DefaultSize, MaxSize = 64, 512, 2048 // pixels; larger prints take the SVG
	// DefaultMargin is the quiet zone that the standard wants, in modules.
	DefaultMargin, MaxMargin = 4, 16
)

// Options are what may be asked of a drawing. Make them with Defaults or Parse; the
// zero value is not valid.
type Options struct {
	Format     Format
	Size       int // width and height, in pixels
	Margin     int // the quiet zone on each side, in modules at least
	Level      Level
	Foreground Color // of dark modules
	Background Color
}

// Defaults are the options of who asks for nothing.
func Defaults() Options {
	return Options{Size: DefaultSize, Margin: DefaultMargin, Level: M, Foreground: 0x000000, Background: 0xffffff}
}

// Error says which parameter was wrong, in words for whoever sent it.
type Error struct {
	Field  string // "" = the query as a whole
	Reason string
}

func (e *Error) Error() string {
	if e.Field == "" {
		return e.Reason
	}
	return e.Field + ": " + e.Reason
}

// Names lists the parameters that a query may have.
func Names() []string { return []string{"format", "size", "margin", "level", "fg", "bg"} }

// ParseQuery reads a raw query strictly: each of Names at most once, and nothing else.
// Every error is an *Error.
func ParseQuery(raw string) (Options, error) {
	query, err := url.ParseQuery(raw)
	if err != nil {
		return Options{}, &Error{"", "the query is malformed"}
	}
	known := 0
	for _, name := range Names() {
		values, given := query[name]
		switch {
		case !given:
			continue
		case len(values) > 1:
			return Options{}, &Error{name, "duplicate parameter"}
		case values[0] == "":
			return Options{}, &Error{name, "must not be empty"}
		}
		known++
	}
	if known != len(query) {
		return Options{}, &Error{"", "unknown parameter; expected format, size, margin, level, fg or bg"}
	}
	return Parse(query.Get)
}

// Parse reads the parameters that get returns by their names; what is "" has its
// default. Every error is an *Error.
func Parse(get func(name string) string) (Options, error) {
	o := Defaults()
	var errs [6]error
	o.Format, errs[0] = parseFormat(get("format"))
	o.Size, errs[1] = parseNumber("size", get("size"), MinSize, o.Size, MaxSize)
	o.Margin, errs[2] = parseNumber("margin", get("margin"), 0, o.Margin, MaxMargin)
	o.Level, errs[3] = parseLevel(get("level"))
	o.Foreground, errs[4] = parseColor("fg", get("fg"), o.Foreground)
	o.Background, errs[5] = parseColor("bg", get("bg"), o.Background)
	for _, err := range errs {
		if err != nil {
			return Options{}, err
		}
	}
	if err := o.check(); err != nil {
		return Options{}, err
	}
	return o, nil
}

func parseFormat(s string) (Format, error) {
	switch s {
	case "":
		return Any, nil
	case "svg":
		return SVG, nil
	case "png":
		return PNG, nil
	}
	return 0, &Error{"format", "expected svg or png"}
}

func parseLevel(s string) (Level, error) {
	switch s {
	case "L":
		return L, nil
	case "", "M":
		return M, nil
	case "Q":
		return Q, nil
	case "H":
		return H, nil
	}
	return 0, &Error{"level", "expected L, M, Q or H"}
}

// parseNumber takes plain digits only: a number has one spelling, so that caches keep
// one answer.
func parseNumber(name, s string, least, otherwise, most int) (int, error) {
	if s == "" {
		return otherwise, nil
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < least || n > most || strconv.Itoa(n) != s {
		return 0, &Error{name, fmt.Sprintf("expected a whole number from %d to %d", least, most)}
	}
	return n, nil
}

// check refuses what nothing can read.
func (o Options) check() error {
	if contrast := o.Background.reflectance() - o.Foreground.reflectance(); contrast < minContrast {
		if contrast < 0 {
			return &Error{"fg", "must be darker than bg: many scanners cannot read inverted codes"}
		}
		return &Error{"fg", fmt.Sprintf("has too little contrast with bg: %.0f %% of reflectance, expected %.0f %%", contrast*100, minContrast*100)}
	}
	return nil
}

// AsError returns err as what was wrong with a query, if it is that.
func AsError(err error) (*Error, bool) { return errors.AsType[*Error](err) }
