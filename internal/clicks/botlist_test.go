package clicks_test

import (
	"strings"
	"sync"
	"testing"

	"curt/internal/clicks"
)

func TestBotListKnowsRobots(t *testing.T) {
	b := clicks.NewBotList()
	var all sync.WaitGroup
	for ua, want := range map[string]bool{
		"": true,
		"Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)": true,
		"curl/8.5.0": true,
		"Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0":                                          false,
		"Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0" + strings.Repeat(" ", 600) + "Googlebot": false,
	} {
		for range 4 {
			all.Go(func() {
				if got := b.IsBot(ua); got != want {
					t.Errorf("%q: %v, want %v", ua, got, want)
				}
			})
		}
	}
	all.Wait()
}
