package clicks

import "sync"

// BotList tells robots from people by the rules that Fold counts by, for decisions
// that are made before a click is counted. It is safe for many goroutines, and
// waits for a lock: it is asked for the few links whose clicks are bounded.
type BotList struct {
	mu     sync.Mutex
	agents *agents // guarded by mu
}

// NewBotList returns a list that has read nothing yet.
func NewBotList() *BotList {
	return &BotList{agents: newAgents()}
}

// IsBot reports whether the user agent is a robot's. A user agent longer than what
// is kept of a click is judged by its beginning, as there.
func (b *BotList) IsBot(userAgent string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.agents.parse(cut([]byte(userAgent), maxUserAgent)).Bot()
}
