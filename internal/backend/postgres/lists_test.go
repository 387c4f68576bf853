package postgres_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"curt/internal/link"
)

// besideLists asks for a link while more lists than there are connections take for ever.
func besideLists(t *testing.T, d *databases) {
	s := d.fresh(t)
	ctx, end := context.WithCancel(t.Context())
	asked := make(chan error, 1)
	var lists sync.WaitGroup
	for range 16 {
		lists.Go(func() {
			for ctx.Err() == nil {
				if err := s.AskMany(ctx, "SELECT pg_sleep(600)"); err == nil {
					t.Error("a list that takes ten minutes was answered")
				}
			}
		})
	}
	d.server.Exec(t, `DO $$ BEGIN
		WHILE (SELECT count(*) FROM pg_stat_activity WHERE query = 'SELECT pg_sleep(600)' AND state = 'active') < 2 LOOP
			PERFORM pg_sleep(0.01);
			PERFORM pg_stat_clear_snapshot();
		END LOOP;
	END $$`)
	go func() {
		// Each look-up has the two seconds of a call: one that waited for a list fails.
		for range 20 {
			if _, err := s.Lookup(ctx, link.Key{Code: "nobody"}); !errors.Is(err, link.ErrNotFound) {
				asked <- err
				return
			}
		}
		asked <- nil
	}()
	select {
	case err := <-asked:
		if err != nil {
			t.Errorf("look up: %v, want %v", err, link.ErrNotFound)
		}
	case <-time.After(3 * time.Minute):
		t.Error("no answer in three minutes")
	}
	end()
	lists.Wait()
}
