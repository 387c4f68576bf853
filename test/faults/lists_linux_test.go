package faults_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"curt.example/client"
	"curt/internal/testkit"
	"curt/test/internal/curttest"
)

// TestKillsAroundListChanges kills the server again and again while moderators change lists. After
// each start every acknowledged line is in its list, the lists are what the journal says, and creates
// are judged by them. A line and its entry are one transaction, and before the answer the server
// itself applies it: a kill before, within and behind each is among the rounds.
func TestKillsAroundListChanges(t *testing.T) {
	testkit.Faults(t)
	data := t.TempDir()
	acknowledged := map[string]bool{} // of each word, whether it was last added or removed
	added := 0
	// A busy machine takes few changes in each round: it gets more of them. A fast one gets fewer: lists have 100,000 entries
	// at most, and each change adds two.
	for round := 0; (round < rounds(20, 200) || added < 100 && round < 400) && added < 20_000; round++ {
		s := curttest.Start(t, curttest.Options{Data: data})
		api := listsAgree(t, s, acknowledged)
		var mu sync.Mutex
		var all sync.WaitGroup
		for who := range 4 {
			all.Go(func() {
				for n := 0; ; n++ {
					word, other := fmt.Sprintf("w%d-%d-%d", round, who, n), fmt.Sprintf("w%d-%d-%d", round, who, n-1)
					_, err := api.Lists.Import(t.Context(), client.RefusedWords, word+"\n"+word+"x\n", "a test")
					removed := false
					if err == nil && n%3 == 1 {
						mu.Lock()
						delete(acknowledged, other) // its removal is uncertain until it is acknowledged
						mu.Unlock()
						_, err = api.Lists.Remove(t.Context(), client.RefusedWords, other, "a test")
						removed = err == nil
					}
					mu.Lock()
					if removed {
						acknowledged[other] = false
					}
					if err == nil {
						acknowledged[word], acknowledged[word+"x"] = true, true
						added++
					}
					mu.Unlock()
					if errors.Is(err, client.ErrNoAnswer) {
						return
					}
					if err != nil {
						t.Errorf("%s: %v", word, err)
						return
					}
				}
			})
		}
		someTime(20*time.Millisecond, 200*time.Millisecond)
		s.Kill()
		all.Wait()
	}
	s := curttest.Start(t, curttest.Options{Data: data})
	listsAgree(t, s, acknowledged)
	s.Terminate(t)
	(&moderators{t: t}).examine(data)
	if added < 100 {
		t.Errorf("only %d changes: that proves little", added)
	}
	t.Logf("%d changes acknowledged", added)
}

// listsAgree compares the list of refused words with the journal, with what was acknowledged, and
// with the answers to some creates.
func listsAgree(t *testing.T, s *curttest.Server, acknowledged map[string]bool) *client.Client {
	t.Helper()
	api, err := client.New("http://"+s.Addr, client.WithKey(curttest.Key))
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]uint64{}
	for cursor := ""; ; {
		page, err := api.Lists.Entries(t.Context(), client.RefusedWords, cursor, 500)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range page.Entries {
			listed[e.Value] = e.Sequence
		}
		if cursor = page.NextCursor; cursor == "" {
			break
		}
	}
	journal := map[string]uint64{} // of the newest entry of a word; 0 = it was removed
	for cursor := ""; ; {
		page, err := api.Moderation.Journal(t.Context(), client.JournalQuery{Cursor: cursor, Limit: 100})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range page.Entries {
			if _, newer := journal[e.Entity.Name]; newer {
				continue
			}
			if journal[e.Entity.Name] = 0; e.Action == "list" {
				journal[e.Entity.Name] = e.Sequence
			}
		}
		if cursor = page.NextCursor; cursor == "" {
			break
		}
	}
	for word, sequence := range journal {
		if listed[word] != sequence {
			t.Errorf("%s is entry %d of the list, and %d of the journal", word, listed[word], sequence)
		}
		delete(listed, word)
	}
	for word := range listed {
		t.Errorf("%s is in the list, and not in the journal", word)
	}
	checked := 0
	for word, want := range acknowledged {
		if (journal[word] != 0) != want {
			t.Errorf("%s was acknowledged (in the list: %v), and the journal says entry %d", word, want, journal[word])
		}
		if checked++; checked <= 50 {
			_, err := api.Create(t.Context(), client.NewLink{LongURL: "https://example.com/", CustomAlias: word})
			var p *client.Problem
			if refused := errors.As(err, &p) && strings.HasSuffix(p.Type, "/slug-refused"); refused != want {
				t.Errorf("%s, in the list: %v, is created: %v", word, want, err)
			}
		}
	}
	return api
}
