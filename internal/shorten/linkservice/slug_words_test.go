package linkservice_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"curt/internal/abuse/blocklist"
	"curt/internal/link"
	"curt/internal/shorten"
	"curt/internal/shorten/create"
	"curt/internal/shorten/linkservice"
)

// wording puts words of an operator in front of a Creator.
func wording(t *testing.T, reserved, refused string) func(*linkservice.Config) {
	t.Helper()
	dir := t.TempDir()
	keep, never := filepath.Join(dir, "keep.txt"), filepath.Join(dir, "never.txt")
	for path, text := range map[string]string{keep: reserved, never: refused} {
		if err := os.WriteFile(path, []byte(text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	w, err := blocklist.OpenWords(t.Context(), blocklist.WordsConfig{Reserved: []string{keep}, Refused: []string{never}})
	if err != nil {
		t.Fatal(err)
	}
	return func(c *linkservice.Config) { c.Words = w }
}

// A code of words has no refused word in it, whoever refuses it; one that is kept for the operator is only an alias.
func TestNoRefusedWordInACodeOfWords(t *testing.T) {
	b := newBench(t, wording(t, "birch", "~otter\ngrim*"))
	for code, want := range map[string]error{
		"cozy-otter-69": shorten.ErrRefused, "otter-birch-12": shorten.ErrRefused, "grimy-birch-12": shorten.ErrRefused, "big-cozy-0tter-1234": shorten.ErrRefused,
		"cozy-birch-69": nil, "cozy-otters-69": nil, "cozyotter": nil,
	} {
		wantError(t, code, b.CheckCode(code), want)
	}
}

func TestWordsOfTheOperator(t *testing.T) {
	b := newBench(t, wording(t, "press\nteam-*", "~paypal\nrude"))
	for alias, want := range map[string]error{
		"press": shorten.ErrReserved, "PRESS": shorten.ErrReserved, "team-x": shorten.ErrReserved, "PayPaI": shorten.ErrRefused, "pay-pal": shorten.ErrRefused, "Rude": shorten.ErrRefused,
		"admin": shorten.ErrReserved, "pressed": nil, "ru-de": nil,
	} {
		req := to("https://example.com/")
		req.Alias = shorten.Value(alias)
		_, err := b.created(t.Context(), noon(), by(admin()), &req)
		wantError(t, alias, err, want)
		rows := []create.Row{{Request: to("https://example.com/")}}
		rows[0].Request.Alias = shorten.Value(alias)
		if _, err := b.CreateMany(t.Context(), noon(), by(admin()), rows); err != nil {
			t.Fatal(err)
		}
		if want != nil {
			wantError(t, alias+" in a batch", rows[0].Err, want)
		}
	}
}

// A generated code that spells such a word is passed by, whoever asks for it.
func TestCodesAvoidWords(t *testing.T) {
	b := newBench(t, wording(t, "press*", "rude*"), func(c *linkservice.Config) {
		c.Codes = &codes{next: []link.Code{"rudeCode", "press12", "goodOne", "RUDEST1", "goodTwo"}}
	})
	if l := b.mustCreate(t, admin(), to("https://example.com/1")); l.Key.Code != "goodOne" {
		t.Errorf("made %s", l.Key.Code)
	}
	rows := []create.Row{{Request: to("https://example.com/2")}}
	if _, err := b.CreateMany(t.Context(), noon(), by(admin()), rows); err != nil || rows[0].Err != nil || rows[0].Result.Link.Key.Code != "goodTwo" {
		t.Errorf("made %s: %v %v", rows[0].Result.Link.Key.Code, err, rows[0].Err)
	}
}

func TestAliasesAsTheOperatorAllows(t *testing.T) {
	b := newBench(t, func(c *linkservice.Config) {
		c.Aliases = shorten.AliasPolicy{Min: 5, Max: 8, Alphabet: "abcdefghijklmnopqrstuvwxyz0123456789-"}
	})
	for alias, allowed := range map[string]bool{
		"spring": true, "a-b-2": true, "12345678": true, "four": false, "ninechars": false, "Spring": false, "under_score": false, "sprin_g": false,
	} {
		req := to("https://example.com/" + alias)
		req.Alias = shorten.Value(alias)
		_, err := b.created(t.Context(), noon(), by(admin()), &req)
		if invalid := new(shorten.InvalidError); allowed != (err == nil) || !allowed && (!errors.As(err, &invalid) || invalid.Field != "custom_alias") {
			t.Errorf("%s: %v", alias, err)
		}
	}
}
