package sqlite_test

import (
	"testing"

	"curt/internal/backend/coldsql/coldreviews"
	"curt/internal/backend/sqlite"
	"curt/internal/moderation"
	"curt/internal/moderation/moderationtest"
)

func TestCases(t *testing.T) {
	f, stores := new(files), map[moderation.Cases]*sqlite.Links{}
	queue := func(s *sqlite.Links) moderationtest.Queue {
		stores[coldreviews.NewCases(s.Accounts().DB())] = s
		return moderationtest.Queue{Cases: coldreviews.NewCases(s.Accounts().DB()), Appeals: coldreviews.NewAppeals(s.Accounts().DB()), Destinations: coldreviews.NewDestinations(s.Accounts().DB())}
	}
	moderationtest.RunCases(t,
		func(t *testing.T) moderationtest.Queue { return queue(f.fresh(t)) },
		func(t *testing.T, q moderationtest.Queue) moderationtest.Queue {
			return queue(f.again(t, stores[q.Cases]))
		})
}
