package clickhouse

// Statements exports statements.
var Statements = statements

// ProgressOf exports progressOf.
var ProgressOf = progressOf
