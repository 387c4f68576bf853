// Package keypooltest proves drivers and both sides of package keypool.
//
//	func TestKeyPools(t *testing.T) { keypooltest.Run(t, open, again) }
//	func TestPool(t *testing.T) { keypooltest.RunPool(t, open, again) }
//
// Run is what a driver passes; RunPool proves Pool and Filler over a driver: over kills of both, with two servers, and
// to the end of a space. [NewMemory] is the model, which passes both, and [WithFaults] makes any store fail on
// demand.
package keypooltest
