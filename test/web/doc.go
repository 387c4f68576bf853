// Package web proves the pages of the built binary in a browser: headless Chromium, as
// Debian packs it, driven by playwright-core and judged by axe-core (check.mjs). Every
// kind of page is looked at in light and in dark, as wide as a phone and as a desk (in
// all four ways with CURT_TEST_LONG=1), and may have no fault of accessibility, no line in
// the console and no need to scroll sideways; and a person without a pointer and without
// scripts makes a link, corrects a mistake and reads statistics. scripts/npm installs what
// Debian does not have.
package web
