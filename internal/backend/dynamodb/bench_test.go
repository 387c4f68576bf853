package dynamodb_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"curt/internal/backend/dynamodb/linkitem"
	"curt/internal/link"
	"curt/internal/link/linktest"
	"curt/internal/testkit"
)

// TestCreatesBesideBareRequests reports how many creates a second the store does, and how many bare
// PutItems of the same items the SDK does against the same table, in turns of one run. It only runs
// with the long proofs, and judges nothing: both depend on the machine.
func TestCreatesBesideBareRequests(t *testing.T) {
	testkit.Faults(t)
	s := startServer(t)
	store := s.open(t, s.fresh(t))
	var n atomic.Uint64
	next := func() link.Link {
		i := n.Add(1)
		return linktest.Counted(link.Code(fmt.Sprintf("C%06d", i)), i, time.Now())
	}
	client := store.Client()
	ways := map[string]func(link.Link) error{
		"store": func(l link.Link) error { _, err := store.Create(t.Context(), l); return err },
		"bare": func(l link.Link) error {
			l.Version = 1
			item, err := linkitem.Marshal(&l)
			if err == nil {
				_, err = client.API().PutItem(t.Context(), &dynamodb.PutItemInput{
					TableName: &client.Links, Item: item, ConditionExpression: aws.String("attribute_not_exists(k)"),
				})
			}
			return err
		},
	}
	const callers, each, turns = 16, 60, 4
	took := map[string]time.Duration{}
	for turn := range turns + 1 {
		for name, create := range ways {
			var running sync.WaitGroup
			began := time.Now()
			for range callers {
				running.Go(func() {
					for range each {
						if err := create(next()); err != nil {
							t.Error(err)
						}
					}
				})
			}
			if running.Wait(); turn > 0 { // the first warms up
				took[name] += time.Since(began)
			}
		}
	}
	rate := func(name string) float64 { return callers * each * turns / took[name].Seconds() }
	t.Logf("store %.0f creates/s, bare %.0f PutItems/s: %.2f", rate("store"), rate("bare"), rate("store")/rate("bare"))
}
