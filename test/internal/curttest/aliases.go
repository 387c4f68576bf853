package curttest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"curt.example/client"
)

// Refusal is what the error of a client says of the answer: its status, and the type of the problem. Without an error it is
// 200; without an answer it is 0, and what went wrong.
func Refusal(err error) (status int, kind string) {
	if err == nil {
		return http.StatusOK, ""
	}
	if p, ok := errors.AsType[*client.Problem](err); ok {
		return p.Status, p.Type
	}
	return 0, err.Error()
}

// Settled repeats a request that may be repeated while it has no outcome: where none is answered, or 503, as a store on a
// busy machine makes it, or an earlier one with its idempotency key is under way.
func Settled(ask func() error) error {
	for end := time.Now().Add(3 * time.Minute); ; time.Sleep(100 * time.Millisecond) {
		err := ask()
		status, kind := Refusal(err)
		open := status == 0 || status == http.StatusServiceUnavailable || kind == "/problems/idempotency-key-busy"
		if !open || time.Now().After(end) {
			return err
		}
	}
}

// RaceForAliases has clients, each of a workspace of its own, reserve and create one alias after the other all at once:
// one of them gets it, and the others are answered 409.
func RaceForAliases(t testing.TB, clients []*client.Client) {
	t.Helper()
	for round := range 10 {
		alias := fmt.Sprintf("round-%d", round)
		got := make([]error, len(clients))
		var all sync.WaitGroup
		for i, c := range clients {
			all.Go(func() { got[i] = claim(t.Context(), c, alias, i/2%2 == 0) })
		}
		all.Wait()
		won := 0
		for i, err := range got {
			switch status, kind := Refusal(err); status {
			case http.StatusOK:
				won++
			case http.StatusConflict:
			default:
				t.Errorf("%s by workspace %d: %d %s", alias, i, status, kind)
			}
		}
		if won != 1 {
			t.Errorf("%s: %d of %d got it", alias, won, len(clients))
		}
	}
}

// claim reserves an alias, or creates a link with it.
func claim(ctx context.Context, c *client.Client, alias string, reserves bool) error {
	return Settled(func() (err error) {
		if reserves {
			_, err = c.Aliases.Reserve(ctx, alias, "")
		} else {
			_, err = c.CreateOnce(ctx, alias, client.NewLink{LongURL: "https://example.com/", CustomAlias: alias})
		}
		return err
	})
}
