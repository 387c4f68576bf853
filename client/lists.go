package client

import (
	"context"
	"net/http"
	"net/url"
	"time"
)

// The lists that moderators maintain.
const (
	RefusedWords        = "refused_words"
	LookAlikes          = "look_alikes"
	BlockedDestinations = "blocked_destinations"
	AllowedDestinations = "allowed_destinations"
)

// List is what is known of a list.
type List struct {
	Name     string `json:"name"`
	Entries  int    `json:"entries"` // by moderators
	Builtin  int    `json:"builtin"`
	Disabled int    `json:"disabled"` // of those that are built in
}

// ListEntry is an entry of a list.
type ListEntry struct {
	Value    string    `json:"value"`
	Sequence uint64    `json:"sequence"` // of the journal; of a blocked destination, the number of the ban
	Reason   string    `json:"reason"`
	AddedBy  string    `json:"added_by"`
	AddedAt  time.Time `json:"added_at"`
}

// ListPage is a page of a list; NextCursor is empty at the end.
type ListPage struct {
	Entries    []ListEntry `json:"entries"`
	NextCursor string      `json:"next_cursor"`
}

// BuiltinEntry is a built-in entry of a list. The entry "-" and its Value disable it.
type BuiltinEntry struct {
	Value    string `json:"value"`
	OneEdit  bool   `json:"one_edit"` // of look_alikes: aliases with one letter wrong are refused too
	Disabled bool   `json:"disabled"`
}

// ListChange is the outcome of a change of a list.
type ListChange struct {
	Changed   int `json:"changed"`
	Unchanged int `json:"unchanged"` // the list had, or lacked, them already
}

const listsPath = "/api/v1/lists"

func listPath(list, of string) string { return listsPath + "/" + url.PathEscape(list) + of }

// All returns the lists that moderators maintain. It takes the scope admin, as all calls of
// moderation do.
func (c *Lists) All(ctx context.Context) ([]List, error) {
	var all struct {
		Lists []List `json:"lists"`
	}
	err := c.call(ctx, http.MethodGet, listsPath, nil, nil, &all)
	return all.Lists, err
}

// Entries returns up to limit entries of a list (1–500; 0 = the server's choice), in
// alphabetical order.
func (c *Lists) Entries(ctx context.Context, list, cursor string, limit int) (ListPage, error) {
	var p ListPage
	err := c.call(ctx, http.MethodGet, listPath(list, "/entries"), pageQuery(limit, map[string]string{"cursor": cursor}), nil, &p)
	return p, err
}

// BuiltinEntries returns the built-in entries of a list.
func (c *Lists) BuiltinEntries(ctx context.Context, list string) ([]BuiltinEntry, error) {
	var all struct {
		Entries []BuiltinEntry `json:"entries"`
	}
	err := c.call(ctx, http.MethodGet, listPath(list, "/builtin"), nil, nil, &all)
	return all.Entries, err
}

// Add adds an entry to a list.
func (c *Lists) Add(ctx context.Context, list, value, reason string) (ListChange, error) {
	var done ListChange
	err := c.call(ctx, http.MethodPost, listPath(list, "/entries"), nil, map[string]string{"value": value, "reason": reason}, &done)
	return done, err
}

// Remove removes an entry from a list.
func (c *Lists) Remove(ctx context.Context, list, value, reason string) (ListChange, error) {
	var done ListChange
	err := c.call(ctx, http.MethodDelete, listPath(list, "/entries/"+url.PathEscape(value)), pageQuery(0, map[string]string{"reason": reason}), nil, &done)
	return done, err
}

// Import adds the lines of a text to a list: all, or none if one is invalid.
func (c *Lists) Import(ctx context.Context, list, text, reason string) (ListChange, error) {
	var done ListChange
	err := c.call(ctx, http.MethodPost, listPath(list, "/import"), nil, map[string]string{"text": text, "reason": reason}, &done)
	return done, err
}

// Export returns a list as a text that Import takes.
func (c *Lists) Export(ctx context.Context, list string) ([]byte, error) {
	var text raw
	err := c.call(ctx, http.MethodGet, listPath(list, "/export"), nil, nil, &text)
	return text, err
}
