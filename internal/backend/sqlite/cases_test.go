package sqlite_test

import (
	"testing"

	"curt/internal/backend/sqlite"
	"curt/internal/moderation"
	"curt/internal/moderation/moderationtest"
)

func TestCases(t *testing.T) {
	f, stores := new(files), map[moderation.Cases]*sqlite.Links{}
	queue := func(s *sqlite.Links) moderationtest.Queue {
		stores[s.Accounts().Cases()] = s
		return moderationtest.Queue{Cases: s.Accounts().Cases(), Appeals: s.Accounts().Appeals()}
	}
	moderationtest.RunCases(t,
		func(t *testing.T) moderationtest.Queue { return queue(f.fresh(t)) },
		func(t *testing.T, q moderationtest.Queue) moderationtest.Queue {
			return queue(f.again(t, stores[q.Cases]))
		})
}
