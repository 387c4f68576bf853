// Package codegentest proves drivers and strategies of package codegen.
//
//	func TestLeaser(t *testing.T) { codegentest.RunLeaser(t, open, again) }
//	func TestRange(t *testing.T)  { codegentest.RunGenerator(t, newRange) }
//	func TestRandom(t *testing.T) { codegentest.RunLikely(t, newRandom) }
//
// RunSnowflake is what codegen.Snowflake passes over a driver. RunLeaser is what a driver that leases ids passes; RunGenerator is what a
// strategy with the promise Unique over a Leaser passes, RunLikely what one with the
// promise Likely passes. [NewLeaser] is the model,
// which passes RunLeaser itself, and [WithFaults] makes any Leaser fail on demand.
package codegentest
