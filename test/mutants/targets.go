package main

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
	return append(linkTargets(), append(clickTargets(), otherTargets()...)...)
}

func linkTargets() []target {
	creates := []named{
		{"internal/shorten", "."},
		{"internal/backend/sqlite", "Link|Create|Contract|Plan|Import"},
		{"test/http", "TestCodesAreHandedOutOnce|TestTheSameURLGetsTheSameLink|TestParallelCreatesOfOneKeyMakeOneLink|TestBulkOfAThousand|TestExpiryIsExact|TestBoundedLinkUnderParallelVisitors"},
	}
	stored := append(creates, named{"test/faults", "TestKillLosesNoLink$|TestKillKeepsIdempotencyKeys|TestFailedFsyncIsNeverAcknowledged"},
		named{"internal/httpapi", "."}, named{"internal/exchange", "."})
	return []target{
		{
			Name: "codegen", Dir: "internal/codegen", Mutants: 55,
			Files:   []string{"base62.go", "codegen.go", "hash.go", "permutation.go", "random.go", "range.go", "skip.go"},
			Outside: creates,
		},
		{
			Name: "link", Dir: "internal/link", Mutants: 45,
			Files:   []string{"cursor.go", "id.go", "key.go", "link.go", "many.go", "target.go", "update.go"},
			Outside: stored,
		},
		{
			Name: "links in SQLite", Dir: "internal/backend/sqlite", Mutants: 35,
			Files:   []string{"linkwrite.go", "links.go", "linkread.go", "linkmany.go", "row.go", "keys.go", "writer.go"},
			Outside: append([]named{{"internal/shorten", "."}, {"internal/httpapi", "."}, {"internal/exchange", "."}, {"internal/server", "."}}, stored[2:4]...),
		},
		{
			Name: "links in PostgreSQL", Dir: "internal/backend/postgres", Mutants: 16, Services: true,
			Files:   []string{"create.go", "change.go", "links.go", "row.go", "dedupe.go", "doubt.go"},
			Outside: []named{{"test/postgres", "TestServersHearOfEachOther|TestServersGiveNoCodeOutTwice|TestPrimaryDies|TestDatabaseIsInTrouble"}},
		},
	}
}

func clickTargets() []target {
	clicked := []named{
		{"internal/worker", "."},
		{"internal/server", "Click|Fold|Drain|Stage|Settle|Judge|Origin"},
		{"internal/backend/sqlite", "Rollup"},
		{"test/faults", "TestTerminateCountsEveryClick|TestKillLosesLittleAndCountsNothingTwice|TestKillDuringRecoveryCountsNothingTwice|TestDamagedClickLog|TestTornClickLog|TestPowerCutLosesFewClicks"},
	}
	return []target{
		{
			Name: "log of clicks", Dir: "internal/clicks", Mutants: 60,
			Files: []string{
				"log.go", "segments.go", "block.go", "codec.go", "writer.go", "reader.go", "damage.go", "position.go", "pending.go",
				"capture.go", "ring.go", "ship.go", "shipped.go", "indexfile.go", "pin.go",
			},
			Outside: clicked,
		},
		{
			Name: "fold and roll-ups", Dir: "internal/clicks", Mutants: 50,
			Files: []string{
				"fold.go", "aggregate.go", "summer.go", "sums.go", "groups.go", "daykeys.go", "daydigest.go", "granules.go",
				"recount.go", "rollup.go", "rollupstore.go", "visitors.go", "packedrow.go", "history.go",
			},
			Outside: append(clicked, named{"test/counts", "TestOneProcessorCountsEachClickOnce|TestSeveralServersCountEachClickOnce"}),
		},
	}
}

func otherTargets() []target {
	return []target{
		{
			Name: "cache", Dir: "internal/cache", Mutants: 50,
			Files: []string{
				"bus.go", "changed.go", "filter.go", "flight.go", "follow.go", "held.go", "issued.go", "polls.go", "recent.go",
				"refresh.go", "shared.go", "tiered.go",
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
			Files:   []string{"caller.go", "found.go", "hosts.go", "key.go", "keyfile.go", "keys.go", "manage.go", "share.go", "store.go", "uses.go"},
			Outside: []named{{"internal/httpapi", "."}, {"internal/server", "."}, {"internal/backend/sqlite", "Key|Share"}, {"test/http", "TestScripts"}},
		},
		{
			Name: "parser of the lane", Dir: "internal/lane", Mutants: 40,
			Files:   []string{"head.go", "octets.go", "proxy.go"},
			Outside: []named{{"internal/redirect", "."}, {"test/http", "TestScripts|TestNothingSentBecomesAHeader"}, {"test/lane", "TestNothingIsSmuggledThroughProxies"}},
		},
		{
			Name: "journal of decisions", Dir: "internal/moderation", Mutants: 35,
			Files: []string{"chain.go", "entry.go", "journal.go", "replay.go", "follow.go", "progress.go", "decide.go", "erasures.go"},
			Outside: []named{
				{"internal/backend/sqlite", "Journal|Rebuild"},
				{"internal/review", "."},
				{"internal/httpapi", "."},
				{"test/faults", "TestKillsAroundDecisions|TestKillsAroundTheQueue"},
			},
		},
		{
			Name: "watermarks of Kafka", Dir: "internal/backend/kafka", Mutants: 18, Services: true,
			Files:   []string{"record.go", "commit.go", "group.go", "producer.go"},
			Outside: []named{{"internal/worker", "."}, {"test/events", "TestEveryClickCountsOnce/^1$|TestAway"}},
		},
		{
			Name: "watermarks of ClickHouse", Dir: "internal/backend/clickhouse", Mutants: 18, Services: true,
			Files:   []string{"watermarks.go", "watch.go", "settle.go"},
			Outside: []named{{"internal/worker", "."}, {"test/counts", "TestStatisticsOfClickHouse"}},
		},
	}
}
