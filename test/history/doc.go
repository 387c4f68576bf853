// Package history lets clients of several servers over one PostgreSQL, or over DynamoDB, create, change,
// kill, get and follow links while servers and databases die, sleep, throttle and have their clocks set,
// and holds the history of all answers against a model.
//
// What the API answers has to be linearizable: model_test.go says what a link is to the
// API, and github.com/anishathalye/porcupine finds out whether one order of all requests
// about it explains what everybody was told. What visitors are answered may be late by a
// bound, and no more: stale_test.go. A request without an answer, or with one that leaves
// its outcome open, may have happened at any time from then on.
//
// Links that wait in Kafka before they are written have a model and controls of their own, queued_test.go, and a run in which their
// servers and writers are killed, queued_linux_test.go.
//
// controls_test.go has histories that each check must refuse, and history_linux_test.go lets
// live servers make some. clients_linux_test.go has the clients, fleet_linux_test.go the
// servers, faults_linux_test.go what happens to them, and tables_linux_test.go both over DynamoDB. The tests
// need PostgreSQL's programs, and DynamoDB Local; without them they are skipped with a line that says what is missing, and under CI
// they fail with it. CURT_TEST_LONG=1 (make soak) goes through the faults again and again.
package history
