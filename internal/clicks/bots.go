package clicks

import (
	"fmt"
	"regexp"
	"sync"

	"github.com/ua-parser/uap-go/uaparser"
	"gopkg.in/yaml.v3"
)

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
