package httpapi

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"curt/internal/analytics"
	"curt/internal/clicks"
)

// statsQuestion is what a request for statistics asks.
type statsQuestion struct {
	scope      analytics.Scope
	step       analytics.Step
	dimensions []clicks.Dimension
	top        int
	filter     analytics.Filter
}

// statsQuestion reads the request; what is wrong with it is a 400 before the link
// is looked for.
func (c *call) statsQuestion() (q statsQuestion, err error) {
	if q.top, err = c.integer("top"); err != nil {
		return q, err
	}
	if q.dimensions, err = c.dimensions(); err != nil {
		return q, err
	}
	if q.filter, err = c.statsFilter(); err != nil {
		return q, err
	}
	return q, c.window(&q)
}

// dimensions returns those that the query lists, each once.
func (c *call) dimensions() (list []clicks.Dimension, err error) {
	if !c.query.Has("dimensions") {
		return nil, nil
	}
	var seen [clicks.NumDimensions]bool
	for name := range strings.SplitSeq(c.query.Get("dimensions"), ",") {
		d, ok := clicks.ParseDimension(name)
		switch {
		case !ok:
			return nil, badField("dimensions", fmt.Sprintf("%q is none of %s", clip(name), strings.Join(dimensionNames(), ", ")))
		case seen[d]:
			return nil, badField("dimensions", name+" is given more than once")
		}
		seen[d] = true
		list = append(list, d)
	}
	return list, nil
}

// window reads the part of time that the query asks for, in whole steps.
func (c *call) window(q *statsQuestion) error {
	name, err := c.choice("interval")
	if err != nil {
		return err
	}
	q.step, _ = analytics.ParseStep(name) // choice allows its names only
	zone := time.UTC
	if c.query.Has("tz") {
		if zone, err = analytics.ParseZone(c.query.Get("tz")); err != nil {
			return badField("tz", err.Error())
		}
	}
	from, to, err := c.between(c.now)
	if err != nil {
		return err
	}
	q.scope.Zone, q.scope.To = zone, q.step.Ceil(to, zone)
	if from.IsZero() {
		n := 48
		if q.step == analytics.Day {
			n = 30
		}
		from = q.step.Back(q.scope.To, n)
	}
	q.scope.From = q.step.Floor(from, zone)
	switch {
	case !q.scope.From.Before(q.scope.To):
		return badField("from", "must lie before to")
	case q.scope.To.Sub(q.scope.From)/q.step.Width() > analytics.MaxPoints:
		return badField("interval", fmt.Sprintf("would make more than %d points; take a longer one", analytics.MaxPoints))
	}
	return nil
}

// between returns the dates from and to of a query, which may be the zero time and
// otherwise. What lies beyond the years that clicks are counted in is refused.
func (c *call) between(otherwise time.Time) (from, to time.Time, err error) {
	if from, err = c.instant("from", time.Time{}); err != nil {
		return from, to, err
	}
	if to, err = c.instant("to", otherwise); err != nil {
		return from, to, err
	}
	switch {
	case c.query.Has("from") && !kept(from):
		return from, to, badField("from", "want a date from 1970 to 2089")
	case c.query.Has("to") && !kept(to):
		return from, to, badField("to", "want a date from 1970 to 2089")
	}
	return from, to, nil
}

// kept reports whether clicks of t can be counted.
func kept(t time.Time) bool { return 1970 <= t.Year() && t.Year() <= 2089 }

// statsFilter returns what the clicks are to be.
func (c *call) statsFilter() (f analytics.Filter, err error) {
	for d := range clicks.NumDimensions {
		name := clicks.Dimension(d).String()
		if !c.query.Has(name) {
			continue
		}
		value := c.query.Get(name)
		switch {
		case value == clicks.Other:
			return f, badField(name, "is a sum of values, which no click has")
		case len(value) > maxFilter || !utf8.ValidString(value):
			return f, badField(name, fmt.Sprintf("want at most %d bytes of UTF-8", maxFilter))
		}
		if f.Values == nil {
			f.Values = map[clicks.Dimension]string{}
		}
		f.Values[clicks.Dimension(d)] = value
	}
	if c.query.Has("bot") { // else the operation may not have it
		bot, err := c.flag("bot")
		if err != nil {
			return f, err
		}
		f.Bot = &bot
	}
	return f, nil
}
