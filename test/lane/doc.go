// Package lane proves on the built binary what cannot be proved inside of
// internal/lane: that nothing is smuggled through real proxies, that a linter of HTTP
// finds no fault in the answers, that slow clients do not slow the others down, and
// that the cap on connections holds.
//
// The proxies are nginx, HAProxy and Varnish, the slow clients slowhttptest, as Debian
// packs them; the linter is httplint. Without them a test is skipped with a line that
// says what is missing, and under CI it fails with it. CURT_TEST_LONG=1 (make soak)
// runs the slow clients, which take a minute.
package lane
