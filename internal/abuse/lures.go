package abuse

import (
	_ "embed"
	"fmt"
	"strings"
)

//go:embed lures.txt
var knownLures string

// lure is how much a word beside a brand's name says of an imitation.
type lure uint8

const (
	noLure lure = iota
	weakLure
	strongLure
	endLure // strong apart, weak within a word
)

// lures are such words by their likeness.
type lures struct {
	words map[string]lure
	sizes lengths
}

// readLures reads the words of this package.
func readLures() (*lures, error) {
	l := &lures{words: map[string]lure{}, sizes: lengths{}}
	err := eachLine(strings.NewReader(knownLures), func(line string) error {
		group, words, _ := strings.Cut(line, ":")
		kind, known := map[string]lure{"weak": weakLure, "strong": strongLure, "ends": endLure}[group]
		if !known {
			return fmt.Errorf("%q is no group of words", group)
		}
		for word := range strings.FieldsSeq(words) {
			for _, key := range [][]byte{likeness(appendTight(nil, word)), likeness(appendShapes(nil, word))} {
				l.words[string(key)] = max(kind, l.words[string(key)])
				l.sizes.add(string(key))
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the words beside brands: %w", err)
	}
	return l, nil
}
