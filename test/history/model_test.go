package history_test

import (
	"fmt"

	"github.com/anishathalye/porcupine"
)

// kind is what a request asks of a link.
type kind int

const (
	create  kind = iota // the code for itself
	get                 // what the link is
	put                 // to lead somewhere else, and to be on, if it is at a version
	disable             // to be switched off, if it is at a version
	block               // to be blocked, for good
)

func (k kind) String() string {
	return [...]string{"create", "get", "put", "disable", "block"}[k]
}

// asked is one request.
type asked struct {
	kind  kind
	key   string
	match uint64 // the version that put and disable want
	to    string // where create and put have it lead: nobody else's, so that it names the request
}

// result is what a request came to.
type result int

const (
	done    result = iota
	refused        // the code is taken, or the link has another version
	missing        // there is no such link
	unknown        // no answer, or one that leaves it open: it may happen at any time
)

func (r result) String() string {
	return [...]string{"done", "refused", "missing", "unknown"}[r]
}

// told is what a client heard. link is what the answer shows, where it is done and shows it.
type told struct {
	result result
	link   link
}

// link is a link as the API shows it; version 0 = there is none.
type link struct {
	version      uint64
	to           string
	off, blocked bool
}

func (l link) String() string {
	text := fmt.Sprintf("%d %s", l.version, l.to)
	if l.off {
		text += " off"
	}
	if l.blocked {
		text += " blocked"
	}
	return text
}

// next returns whether a request to a link can have come to what was told, and the link
// after it.
func next(l link, in asked, out told) (bool, link) {
	if in.kind == create {
		if l.version > 0 {
			return out.result == refused || out.result == unknown, l
		}
		l = link{version: 1, to: in.to}
		return out.result == unknown || out.result == done && out.link == l, l
	}
	if l.version == 0 {
		return out.result == missing || out.result == unknown, l
	}
	switch in.kind {
	case get:
		return out.result == unknown || out.result == done && out.link == l, l
	case block:
		if !l.blocked {
			l.version, l.blocked = l.version+1, true
		}
		return out.result == unknown || out.result == done, l
	default: // put, disable
		if l.version != in.match {
			return out.result == refused || out.result == unknown || in.twin(l, out), l
		}
		if l.version++; in.kind == put {
			l.to, l.off = in.to, false
		} else {
			l.off = true
		}
		return out.result == unknown || out.result == done && out.link == l, l
	}
}

// twin reports whether a client was told that it made what another one made, which asked for
// the very same: where the answer of the database was lost, that cannot be told (link.Update),
// and RFC 9110, section 13.1.1, allows it. Without a loss one is told, which the suite of stores
// proves (linktest, "one change of one version").
func (in asked) twin(l link, out told) bool {
	return in.kind == disable && out.result == done && out.link == l && l.off && l.version == in.match+1
}

// model is next as porcupine wants it, link by link.
func model() porcupine.Model {
	return porcupine.Model{
		Partition: func(history []porcupine.Operation) (parts [][]porcupine.Operation) {
			place := map[string]int{}
			for _, op := range history {
				key := op.Input.(asked).key
				i, found := place[key]
				if !found {
					i = len(parts)
					place[key], parts = i, append(parts, nil)
				}
				parts[i] = append(parts[i], op)
			}
			return parts
		},
		Init: func() any { return link{} },
		Step: func(state, in, out any) (bool, any) {
			ok, after := next(state.(link), in.(asked), out.(told))
			return ok, after
		},
		DescribeOperation: func(in, out any) string {
			i, o := in.(asked), out.(told)
			text := i.kind.String() + " " + i.key
			if i.kind == put || i.kind == disable {
				text += fmt.Sprintf(" if %d", i.match)
			}
			if i.to != "" {
				text += " to " + i.to
			}
			text += ": " + o.result.String()
			if o.link.version > 0 {
				text += " " + o.link.String()
			}
			return text
		},
		DescribeState: func(state any) string { return state.(link).String() },
	}
}
