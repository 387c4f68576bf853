package cachetest

import (
	"time"

	"curt/internal/link"
)

// asLink returns a link whose Target is t.
func asLink(k link.Key, t link.Target) link.Link {
	l := link.Link{
		Key: k, Destination: t.Destination, Fallback: t.Fallback, Workspace: link.WorkspaceDefault,
		Status: t.Status, Safety: t.Safety, Redirect: t.Redirect, Version: t.Version,
		Starts: at(t.Starts), Expires: at(t.Expires),
		ForwardQuery: t.ForwardQuery, NoIndex: t.NoIndex, Cacheable: t.Cacheable,
	}
	if t.Limited {
		l.MaxClicks = 1
	}
	if t.Exhausted {
		l.Spent = 1
	}
	return l
}

func at(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}
