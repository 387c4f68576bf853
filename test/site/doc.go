// Package site builds the documentation site as `make site` does and follows its links: none is
// dead, every page is in the navigation, and nothing is loaded from another host.
package site
