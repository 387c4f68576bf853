// Package clickhouse keeps clicks in ClickHouse 26 or newer, one by one and added up.
//
// Clicks come in blocks, each under a token of its own: a block that is inserted again
// changes nothing, neither in the clicks nor in anything that is added up from them. That
// rests on a window of tokens at every table. Statistics are read from what is added up.
//
// Read migrations/00001_clicks.sql for the shape of the data, aggregates.go for how
// clicks are counted, settle.go for how their values are, insert.go for what a block
// promises, totals.go, series.go and top.go for how questions are answered, history.go for
// clicks one by one, verify.go for what is done where sums and clicks differ.
package clickhouse
