// Package postgres runs several servers of the built binary over one PostgreSQL, with
// PgBouncer, Toxiproxy and a synchronous standby where a test needs them, and compares
// what clients were told with what every server answers.
//
// many_linux_test.go proves what one server is told of another, roles_linux_test.go what
// each opens, faults_linux_test.go what happens when the database or a server is in
// trouble; docs/failures.md has what was seen. The tests need PostgreSQL's
// programs; without them they are skipped with a line that says what is missing, and under
// CI they fail with it. CURT_TEST_LONG=1 (make soak) runs them for longer.
package postgres
