// Package deploy proves what stands in deploy on the built binary: that the alerts and
// the dashboard ask for metrics which are there, that what is started by a supervisor
// starts, and that what stands in front of curt lets through what it should.
// TestFleetChaos injects faults for five minutes, or for CURT_TEST_CHAOS (make soak-fleet: half an hour).
package deploy
