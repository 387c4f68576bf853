package movedata

import (
	"context"
	"testing"
	"testing/synctest"

	"curt/internal/exchange"
)

// endless is a file whose end is never reached.
type endless struct{}

func (endless) Next(int) ([]exchange.Row, error) { return make([]exchange.Row, 1), nil }
func (endless) Take(int)                         {}

// What Ctrl-C stops is not at its end: an import that takes it for done forgets the rest.
func TestAnInterruptIsNotTheEndOfTheFile(t *testing.T) {
	for range 20 { // which of two that are ready comes first is drawn
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			batches := ahead(ctx, endless{})
			synctest.Wait()
			cancel()
			for range 1000 {
				synctest.Wait()
				select {
				case _, more := <-batches:
					if !more {
						t.Fatal("the file seems to end where it was interrupted")
					}
					continue
				default:
				}
				return
			}
			t.Error("it is read on after an interrupt")
		})
	}
}
