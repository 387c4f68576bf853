// Package traffic makes requests that look like those of a shortener's users:
// long URLs, how popular each link is, and what visitors' browsers say about
// themselves.
//
// Everything follows from a seed or an index, so that a run can be repeated, and
// nothing allocates, so that making the load does not weigh on the measurement.
// The package imports only the standard library.
package traffic
