// Package web is what people see: the page on which a link is made, the look at where
// one leads, and the answers that lead nowhere. Read handler.go, then pages.go.
//
// # What it promises
//
// Every page but the dashboard works without scripts, and its policy allows none: one
// stylesheet and one icon come from this server under names that hold their digest,
// nothing from elsewhere, and no page may be framed. The dashboard (dashboard.go) is a
// program that asks the API; its policy allows scripts from this server alone. Whatever a stranger chose (a URL, a title, a
// referrer) is shown as text: escaped, isolated from the direction of the text around
// it, and with every character that cannot be seen spelled out (text.go).
//
// A form that is sent from another site, or under a name that is not this server's,
// makes nothing. Links are made by the same rules and limits as the API's.
//
//	/              the form, where callers without a key may make links; else what this is
//	/{code}+       where a link leads, without a visit
//	/{code}/stats  the statistics, for who shows a key (entry.go) or was given a share
//	/report        anybody says what is wrong with a link
//	/appeal        the owner of a link that is stopped says why that is wrong
//	/app/…         the dashboard, where the API is
//	/static/…      the stylesheet and the icon
//
// The package reaches no SQL. It imports redirect, review, shorten and what is below them.
package web
