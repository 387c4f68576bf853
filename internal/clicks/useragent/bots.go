package useragent

import (
	"bytes"
	"fmt"
	"regexp"
	"sync"

	"github.com/ua-parser/uap-go/uaparser"
	"gopkg.in/yaml.v3"
)

// saysRobot reports whether a user agent says by itself that it is a robot's, whichever: lists
// name the known ones. Brands that sound like bots are masked in text.
func saysRobot(text []byte) bool {
	lower := bytes.ToLower(text)
	for _, ending := range []string{"bot", "bots", "crawler", "spider"} {
		if endsWord(lower, ending) {
			return true
		}
	}
	// People's browsers have no address. One has a version there: Ecosia android@150.0.
	if _, host, found := bytes.Cut(lower, []byte("@")); found && letterAt(host, 0) {
		return true
	}
	for _, part := range []string{"lighthouse", "playwright", "selenium", "synthetics"} { // what drives browsers
		if bytes.Contains(lower, []byte(part)) {
			return true
		}
	}
	return compatible(lower)
}

// endsWord reports whether a word of the text ends so.
func endsWord(lower []byte, ending string) bool {
	for at := 0; ; {
		i := bytes.Index(lower[at:], []byte(ending))
		if i < 0 {
			return false
		}
		if at += i + len(ending); !letterAt(lower, at) {
			return true
		}
	}
}

// compatible reports whether a user agent calls itself compatible to something, as robots do.
// Of browsers only Internet Explorer and Konqueror did.
func compatible(lower []byte) bool {
	for _, before := range []string{"(compatible", "; compatible"} {
		_, rest, found := bytes.Cut(lower, []byte(before))
		if !found || letterAt(rest, 0) {
			continue
		}
		rest = bytes.TrimLeft(rest, "; ")
		if !bytes.HasPrefix(rest, []byte("msie")) && !bytes.HasPrefix(rest, []byte("konqueror")) && !bytes.Contains(rest, []byte("trident/")) {
			return true
		}
	}
	return false
}

// brands are words of people's devices and browsers that the bot list takes for a
// bot's, because it looks for "bot" and "silk" anywhere: the phones of CUBOT, and
// the browser of Amazon's tablets.
func brands() []string { return []string{"cubot", "silk"} }

// maskBrands overwrites brands where they stand as words of their own, in any
// case, so that the rest of the user agent decides. It changes text.
func maskBrands(text []byte) []byte {
	lower := bytes.ToLower(text)
	if len(lower) != len(text) {
		return text // letters beyond ASCII; no browser sends them
	}
	for _, brand := range brands() {
		for at := 0; ; {
			i := bytes.Index(lower[at:], []byte(brand))
			if i < 0 {
				break
			}
			begin, end := at+i, at+i+len(brand)
			if !letterAt(lower, begin-1) && !letterAt(lower, end) {
				for j := begin; j < end; j++ {
					text[j] = '-'
				}
			}
			at = end
		}
	}
	return text
}

func letterAt(lower []byte, i int) bool {
	return i >= 0 && i < len(lower) && 'a' <= lower[i] && lower[i] <= 'z'
}

// bots matches user agents against the crawlers of ua-parser/uap-core, a list that
// browsers' and crawlers' authors send changes to. Of its thousand patterns only
// the few that name the device Spider are compiled: 12 ms and 0.2 MiB, at the
// first user agent that is new, so that an idle process pays for neither.
type bots struct {
	once     sync.Once
	patterns []*regexp.Regexp
}

func (b *bots) match(ua string) bool {
	b.once.Do(func() { b.patterns = spiderPatterns() })
	for _, p := range b.patterns {
		if p.MatchString(ua) {
			return true
		}
	}
	return false
}

// spiderPatterns reads the list that the library carries. It panics when that list
// is broken: it is part of the binary, and a test reads it.
func spiderPatterns() []*regexp.Regexp {
	var list struct {
		Device []struct {
			Regex  string `yaml:"regex"`
			Flag   string `yaml:"regex_flag"`
			Device string `yaml:"device_replacement"`
		} `yaml:"device_parsers"`
	}
	if err := yaml.Unmarshal(uaparser.DefinitionYaml, &list); err != nil {
		panic(fmt.Errorf("bot list of uap-go: %w", err))
	}
	var patterns []*regexp.Regexp
	for _, d := range list.Device {
		if d.Device != "Spider" {
			continue
		}
		if d.Flag != "" {
			d.Regex = "(?" + d.Flag + ")" + d.Regex
		}
		patterns = append(patterns, regexp.MustCompile(d.Regex))
	}
	return patterns
}
