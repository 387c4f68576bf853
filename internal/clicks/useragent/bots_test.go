package useragent_test

import (
	"strings"
	"sync"
	"testing"

	"curt/internal/clicks/useragent"
)

func TestBotListKnowsRobots(t *testing.T) {
	b := useragent.NewClassifier()
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

func TestBrandsThatSoundLikeBotsArePeople(t *testing.T) {
	const webkit = " AppleWebKit/537.36 (KHTML, like Gecko) Chrome/96.0.4664.104 Mobile Safari/537.36"
	b := useragent.NewClassifier()
	for ua, bot := range map[string]bool{
		"Mozilla/5.0 (Linux; Android 9; CUBOT_X19)" + webkit:                                                                         false,
		"Mozilla/5.0 (Linux; Android 11; CUBOT NOTE 20 PRO)" + webkit:                                                                false,
		"Mozilla/5.0 (Linux; Android 10; KING KONG CS Build/QP1A; CUBOT)" + webkit:                                                   false,
		"Mozilla/5.0 (Linux; Android 9; Cubot P40)" + webkit:                                                                         false,
		"Mozilla/5.0 (Linux; Android 12; CUBOT_TAB_40)" + webkit:                                                                     false,
		"Mozilla/5.0 (Linux; Android 12; CUBOT40)" + webkit:                                                                          false,
		"Mozilla/5.0 (Linux; U; Android 4.4.2; en-us; CUBOT P9 Build/KOT49H)" + webkit:                                               false,
		"Mozilla/5.0 (Linux; Android 9; KFMUWI) AppleWebKit/537.36 (KHTML, like Gecko) Silk/108.4.6 like Chrome/108.0 Safari/537.36": false,

		"Mozilla/5.0 (Linux; Android 10; K)" + webkit + " (Ecosia android@150.0.0.0)": false,
		"Mozilla/4.0 (compatible; MSIE 8.0; Windows NT 6.1; Trident/4.0)":             false,
		"Mozilla/5.0 (compatible; MSIE 10.0; Windows NT 6.2; Trident/6.0)":            false,
		"Mozilla/5.0 (compatible; Konqueror/4.5; Linux) KHTML/4.5.4 (like Gecko)":     false,

		"Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; Some-User/1.0) Chrome/131.0 Safari/537.36": true,
		"Mozilla/5.0 (X11; Linux x86_64)" + webkit + " someSpider/2.0":                                             true,
		"Mozilla/5.0 (X11; Linux x86_64)" + webkit + " who@example.com":                                            true,
		"Mozilla/5.0 (Linux; Android 9; CUBOT_X19; Googlebot/2.1)" + webkit:                                        true,
		"Mozilla/5.0 (Linux; Android 9; CUBOT_X19; compatible; somebot; +http://some.example)" + webkit:            true,
		"Mozilla/5.0 (compatible; cubotcrawler/1.0)":                                                               true,
		"Mozilla/5.0 (compatible; acubot/1.0)":                                                                     true,
		"Mozilla/5.0 (compatible; silkworm spider)":                                                                true,
		"cubot/1.0":                     true, // no browser
		"Mozilla/5.0 (compatible; bot)": true,
		"Mozilla/5.0 (Linux; Android 6.0.1; Nexus 5X) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/W.X.Y.Z Mobile Safari/537.36 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)": true,
	} {
		if got := b.IsBot(ua); got != bot {
			t.Errorf("%q: bot %v, want %v", ua, got, bot)
		}
	}
}
