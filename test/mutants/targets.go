package main

import "slices"

// module is the path that profiles of coverage begin with.
const module = "curt"

// target is code that must never be wrong, how many mutants are drawn from it, and which
// tests of other packages its survivors meet: those that would see the damage from outside.
type target struct {
	Name     string
	Dir      string
	Files    []string
	Except   []string // functions that only people or benchmarks see
	Mutants  int
	Services bool // its tests start servers, whose memory is not bounded
	Outside  []named
}

// named are tests that are told apart by an expression. Those below test/ use bin/curt,
// which is built with the mutant.
type named struct {
	Dir, Run string
}

// targets are in the order of the harm that a defect does and nobody could undo: a code
// given out twice, a link or a click lost, a dead link that lives, a stranger let in.
func targets() []target {
	return slices.Concat(linkTargets(), clickTargets(), otherTargets(), decisionTargets(), serviceTargets())
}

func linkTargets() []target {
	creates := []named{
		{"internal/shorten/linkservice", "."},
		{"internal/backend/sqlite", "Link|Create|Contract|Plan|Import"},
		{"test/http", "TestCodesAreHandedOutOnce|TestTheSameURLGetsTheSameLink|TestParallelCreatesOfOneKeyMakeOneLink|TestBulkOfAThousand|TestExpiryIsExact|TestBoundedLinkUnderParallelVisitors"},
	}
	stored := append(creates, named{"test/faults", "TestKillLosesNoLink$|TestKillKeepsIdempotencyKeys|TestFailedFsyncIsNeverAcknowledged"},
		named{"internal/httpapi", "."}, named{"internal/exchange", "."})
	return []target{
		{
			Name: "codegen", Dir: "internal/codegen", Mutants: 55,
			Files: []string{
				"base62.go", "codegen.go", "confirmed.go", "floor.go", "hash.go", "issued.go", "permutation.go", "random.go", "range.go", "skip.go",
				"snowflake.go", "words.go",
			},
			Outside: creates,
		},
		{
			Name: "link", Dir: "internal/link", Mutants: 45,
			Files:   []string{"id.go", "key.go", "link.go", "store.go", "target.go", "update.go"},
			Outside: stored,
		},
		{
			Name: "links in SQLite", Dir: "internal/backend/sqlite", Mutants: 20,
			Files:   []string{"aliases.go", "change.go", "create.go", "links.go", "read.go"},
			Outside: append([]named{{"internal/shorten/linkservice", "."}, {"internal/httpapi", "."}, {"internal/exchange", "."}, {"internal/server", "."}}, stored[2:4]...),
		},
		{
			Name: "writer of SQLite", Dir: "internal/backend/sqlite/sqlitedb", Mutants: 8,
			Files:   []string{"writer.go"},
			Outside: append([]named{{"internal/backend/sqlite", "."}}, stored[2:4]...),
		},
		{
			Name: "leases in SQLite", Dir: "internal/backend/sqlite/leases", Mutants: 7,
			Files:   []string{"keys.go", "leases.go"},
			Outside: append([]named{{"internal/backend/sqlite", "."}}, stored[2:4]...),
		},
		{
			Name: "links in PostgreSQL", Dir: "internal/backend/postgres", Mutants: 16, Services: true,
			Files:   []string{"create.go", "change.go", "links.go", "read.go", "uncertain.go"},
			Outside: []named{{"test/postgres", "TestServersHearOfEachOther|TestServersGiveNoCodeOutTwice|TestPrimaryDies|TestDatabaseIsInTrouble"}},
		},
	}
}

func clickTargets() []target {
	clicked := []named{
		{"internal/clicks/fold", "."},
		{"internal/clicks/recount", "."},
		{"internal/worker", "."},
		{"internal/server", "Click|Stage"},
		{"internal/compose/pipeline", "."},
		{"internal/listen", "."},
		{"internal/backend/sqlite", "Rollup"},
		{"test/faults", "TestTerminateCountsEveryClick|TestKillLosesLittleAndCountsNothingTwice|TestKillDuringRecoveryCountsNothingTwice|TestDamagedClickLog|TestTornClickLog|TestPowerCutLosesFewClicks"},
	}
	counted := append(slices.Clone(clicked[1:]), named{"test/counts", "TestOneProcessorCountsEachClickOnce|TestSeveralServersCountEachClickOnce"})
	return []target{
		{
			Name: "ring and capture", Dir: "internal/clicks/capture", Mutants: 20,
			Files:   []string{"ring.go", "capture.go", "visitors.go"},
			Outside: clicked,
		},
		{
			Name: "log of clicks", Dir: "internal/clicks/clicklog", Mutants: 35,
			Files:   []string{"log.go", "trim.go", "block.go", "event.go", "reader.go", "pin.go"},
			Outside: clicked,
		},
		{
			Name: "clicks one by one", Dir: "internal/clicks/history", Mutants: 15,
			Files:   []string{"history.go", "page.go", "index.go"},
			Outside: clicked,
		},
		{
			Name: "shipper", Dir: "internal/clicks/ship", Mutants: 10,
			Files:   []string{"ship.go"},
			Outside: clicked,
		},
		{
			Name: "fold", Dir: "internal/clicks/fold", Mutants: 20,
			Files:   []string{"fold.go", "aggregate.go", "pending.go"},
			Outside: counted,
		},
		{
			Name: "roll-ups", Dir: "internal/clicks/rollup", Mutants: 20,
			Files:   []string{"rollup.go", "packed.go", "row.go", "sums.go", "visitors.go"},
			Outside: append(counted, named{"internal/clicks/fold", "."}),
		},
	}
}

func otherTargets() []target {
	return []target{
		{
			Name: "issued codes", Dir: "internal/cache/issued", Mutants: 10,
			Files:   []string{"filter.go", "issued.go"},
			Outside: []named{{"internal/cache", "."}},
		},
		{
			Name: "cache", Dir: "internal/cache", Mutants: 40,
			Files: []string{
				"changes.go", "follower.go", "held.go", "l1.go", "l2.go", "loader.go", "notes.go",
				"polls.go", "recent.go", "tiered.go",
			},
			Outside: []named{
				{"internal/redirect", "."},
				{"internal/server", "."},
				{"test/http", "TestDisabledAtOnce|TestDecisionsOnEveryPath|TestExpiryIsExact"},
				{"test/postgres", "TestServersHearOfEachOther|TestReplicaLags"},
				{"test/redis", "TestTogether"},
			},
		},
		{
			Name: "ratelimit", Dir: "internal/ratelimit", Mutants: 35,
			Files: []string{"client.go", "fallback.go", "gcra.go", "memory.go", "parse.go", "ratelimit.go"},
			Outside: []named{
				{"internal/httpapi", "Limit|Rate"},
				{"internal/backend/redis", "Limit"},
				{"test/http", "TestScripts|TestCreatesAreLimitedByNetwork"},
			},
		},
		{
			Name: "auth", Dir: "internal/auth", Mutants: 40,
			Files:   []string{"found.go", "key.go", "keyfile.go", "keys.go", "manage.go", "principal.go", "share.go", "store.go", "uses.go"},
			Outside: []named{{"internal/httpapi", "."}, {"internal/server", "."}, {"internal/backend/sqlite", "Key|Share"}, {"test/http", "TestScripts"}},
		},
		{
			Name: "parser of the lane", Dir: "internal/lane/head", Mutants: 30,
			Files:   []string{"head.go", "chars.go"},
			Outside: []named{{"internal/lane", "."}, {"internal/redirect", "."}, {"test/http", "TestScripts|TestNothingSentBecomesAHeader"}, {"test/lane", "TestNothingIsSmuggledThroughProxies"}},
		},
		{
			Name: "PROXY protocol", Dir: "internal/lane/proxyproto", Mutants: 10,
			Files:   []string{"proxyproto.go"},
			Outside: []named{{"internal/lane", "."}, {"test/lane", "TestNothingIsSmuggledThroughProxies"}},
		},
	}
}

func decisionTargets() []target {
	decided := []named{
		{"internal/backend/sqlite", "Journal|Rebuild"},
		{"internal/review", "."},
		{"internal/httpapi", "."},
		{"test/faults", "TestKillsAroundDecisions|TestKillsAroundTheQueue"},
	}
	return []target{
		{
			Name: "journal of decisions", Dir: "internal/moderation", Mutants: 20,
			Files:   []string{"chain.go", "entry.go", "journal.go", "progress.go"},
			Outside: append([]named{{"internal/moderation/moderator", "."}}, decided...),
		},
		{
			Name: "effect of decisions", Dir: "internal/moderation/moderator", Mutants: 15,
			Files:   []string{"replay.go", "follow.go", "active.go", "decide.go"},
			Outside: decided,
		},
	}
}

func serviceTargets() []target {
	return []target{
		{
			Name: "watermarks of Kafka", Dir: "internal/backend/kafka", Mutants: 18, Services: true,
			Files:   []string{"record.go", "commit.go", "group.go", "producer.go"},
			Outside: []named{{"internal/worker", "."}, {"test/events", "TestEveryClickCountsOnce/^1$|TestAway"}},
		},
		{
			Name: "watermarks of ClickHouse", Dir: "internal/backend/clickhouse/watermarks", Mutants: 6, Services: true,
			Files:   []string{"watermarks.go", "progress.go"},
			Outside: []named{{"internal/backend/clickhouse", "."}, {"internal/worker", "."}},
		},
		{
			Name: "comparison in ClickHouse", Dir: "internal/backend/clickhouse/reconcile", Mutants: 6, Services: true,
			Files:   []string{"verify.go"},
			Outside: []named{{"internal/backend/clickhouse", "."}, {"internal/worker", "."}},
		},
		{
			Name: "finalized days of ClickHouse", Dir: "internal/backend/clickhouse/finalize", Mutants: 6, Services: true,
			Files:   []string{"finalize.go"},
			Outside: []named{{"internal/backend/clickhouse", "."}, {"test/counts", "TestStatisticsOfClickHouse"}},
		},
	}
}
