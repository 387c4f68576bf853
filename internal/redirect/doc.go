// Package redirect answers visitors: the reason curt exists. Read handler.go,
// then resolver.go; behind them cache/tiered.go finds the target and
// clicks/ring.go takes the click.
//
// The package reaches no SQL, no accounts, no analytics and no moderation.
package redirect
