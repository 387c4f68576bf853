package moderation_test

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"curt/internal/link"
	"curt/internal/moderation"
	"curt/internal/moderation/moderationtest"
)

// decodeEntry is the inverse of the encoding, written apart from it: what can be read back
// exactly is no other entry's.
func decodeEntry(t *testing.T, b []byte) (e moderation.Entry, before moderation.Hash) {
	t.Helper()
	take := func(n int) []byte {
		if n > len(b) {
			t.Fatalf("want %d bytes, %d are left", n, len(b))
		}
		part := b[:n]
		b = b[n:]
		return part
	}
	text := func() string { return string(take(int(binary.BigEndian.Uint32(take(4))))) }
	if tag := string(take(14)); tag != "curt journal 1" {
		t.Fatalf("tag %q", tag)
	}
	copy(before[:], take(32))
	e.Sequence = binary.BigEndian.Uint64(take(8))
	e.At = time.UnixMilli(int64(binary.BigEndian.Uint64(take(8)))).UTC()
	e.Entity = moderation.Entity{Kind: moderation.Kind(text()), Name: text()}
	e.Action, e.Actor = moderation.Action(text()), text()
	copy(e.Link[:], take(16))
	e.Safety, e.Score = link.Safety(take(1)[0]), int(take(1)[0])
	copy(e.Reason.Commitment[:], take(32))
	copy(e.Evidence.Commitment[:], take(32))
	if len(b) > 0 {
		t.Fatalf("%d bytes are left", len(b))
	}
	return e, before
}

func FuzzTheHashedBytesAreOneEntrys(f *testing.F) {
	f.Add(uint64(1), int64(1), "host", "evil.example", "ban", "moderator", []byte("id"), uint8(4), uint8(0), "reason", "evidence")
	f.Add(uint64(1)<<63, int64(-1), "", "\x00\x00\x00\x01", "a\xff", strings.Repeat("x", 300), []byte(nil), uint8(255), uint8(100), "", "")
	f.Fuzz(func(t *testing.T, sequence uint64, at int64, kind, name, action, actor string, id []byte, safety, score uint8, reason, evidence string) {
		e := moderation.Entry{
			Sequence: sequence, At: time.UnixMilli(at).UTC(), Entity: moderation.Entity{Kind: moderation.Kind(kind), Name: name},
			Action: moderation.Action(action), Actor: actor, Safety: link.Safety(safety), Score: int(score),
			Reason:   moderation.Text{Commitment: sha256.Sum256([]byte(reason))},
			Evidence: moderation.Text{Commitment: sha256.Sum256([]byte(evidence))},
		}
		copy(e.Link[:], id)
		before := moderation.Hash(sha256.Sum256([]byte(actor)))
		got, behind := decodeEntry(t, e.Encode(before))
		if diff := cmp.Diff(e, got); diff != "" || behind != before {
			t.Errorf("behind %x (-encoded +decoded):\n%s", behind, diff)
		}
	})
}

// The hash of a known entry: journals on disks all over have it.
func TestTheHashStays(t *testing.T) {
	e := moderation.Entry{
		Sequence: 7, At: time.UnixMilli(1_780_315_200_123).UTC(), Entity: moderation.OfLink(link.Key{Code: "abc"}), Link: link.ID{1},
		Action: moderation.ActionDecide, Safety: link.Blocked, Score: 86, Actor: "policy", Reason: moderation.Commit("because", [16]byte{2}),
	}
	if got := fmt.Sprintf("%x", e.Seal(moderation.Hash{3}).Hash); got != knownHash {
		t.Errorf("hash %s", got)
	}
}

const knownHash = "8f5f24cbeecee1080caa5891b41ae2917e74144b26789539aea8793806a55cb0"

// journal returns a journal of n decisions.
func journal(t *testing.T, n int) *moderationtest.Memory {
	t.Helper()
	j := moderationtest.NewMemory()
	for i := range n {
		if _, err := j.Append(t.Context(), moderationtest.Decision(t, i, link.Warn)); err != nil {
			t.Fatal(err)
		}
	}
	return j
}

// What is changed, taken out or put in by hand is found, and where.
func TestVerifyFindsWhatWasChanged(t *testing.T) {
	for what, spoil := range map[string]func(*moderation.Entry){
		"number":       func(e *moderation.Entry) { e.Sequence++ },
		"time":         func(e *moderation.Entry) { e.At = e.At.Add(time.Second) },
		"entity":       func(e *moderation.Entry) { e.Entity.Name = "/other" },
		"link":         func(e *moderation.Entry) { e.Link[0]++ },
		"action":       func(e *moderation.Entry) { e.Action = moderation.ActionAnswer },
		"safety":       func(e *moderation.Entry) { e.Safety = link.Clean },
		"score":        func(e *moderation.Entry) { e.Score = 1 },
		"actor":        func(e *moderation.Entry) { e.Actor = "another" },
		"reason":       func(e *moderation.Entry) { e.Reason.Body = "another" },
		"salt":         func(e *moderation.Entry) { e.Reason.Salt[0]++ },
		"commitment":   func(e *moderation.Entry) { e.Reason = moderation.Commit("another", e.Reason.Salt) },
		"no reason":    func(e *moderation.Entry) { e.Reason = moderation.Text{} },
		"half erased":  func(e *moderation.Entry) { e.Reason.Erased = true },
		"never there":  func(e *moderation.Entry) { e.Evidence = moderation.Text{Erased: true} },
		"new evidence": func(e *moderation.Entry) { e.Evidence = moderationtest.Text(t, "planted") },
		"hash":         func(e *moderation.Entry) { e.Hash[31]++ },
	} {
		for _, at := range []uint64{1, 3, 5} { // the first and the last have one neighbour
			j := journal(t, 5)
			j.Spoil(at, spoil)
			last, err := moderation.Verify(t.Context(), j, nil)
			if !errors.Is(err, moderation.ErrBroken) || last.Sequence >= at || !strings.Contains(err.Error(), "entry") {
				t.Errorf("%s of %d: sound up to %d, %v", what, at, last.Sequence, err)
			}
		}
	}
	// A hash that fits its own entry still breaks the next one.
	j := journal(t, 5)
	j.Spoil(3, func(e *moderation.Entry) { e.Safety = link.Clean; *e = e.Seal(moderation.Hash{}) })
	if last, err := moderation.Verify(t.Context(), j, nil); !errors.Is(err, moderation.ErrBroken) || last.Sequence != 2 {
		t.Errorf("sealed anew: sound up to %d, %v", last.Sequence, err)
	}
}

func TestVerifyReturnsTheLastAndTellsEach(t *testing.T) {
	const n = 2500 // more than two pages
	told := uint64(0)
	last, err := moderation.Verify(t.Context(), journal(t, n), func(e *moderation.Entry) {
		if told++; e.Sequence != told {
			t.Errorf("told of %d after %d", e.Sequence, told-1)
		}
	})
	if err != nil || last.Sequence != n || told != n {
		t.Errorf("last %d, told %d, %v", last.Sequence, told, err)
	}
	if last, err := moderation.Verify(t.Context(), journal(t, 0), nil); err != nil || last.Sequence != 0 {
		t.Errorf("an empty journal: %d, %v", last.Sequence, err)
	}
}
