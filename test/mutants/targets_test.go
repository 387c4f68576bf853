package main

import (
	"os"
	"path/filepath"
	"testing"
)

func TestTargetsNameWhatIsThere(t *testing.T) {
	root := filepath.Join("..", "..")
	for _, one := range targets() {
		for _, name := range one.Files {
			if _, err := os.Stat(filepath.Join(root, one.Dir, name)); err != nil {
				t.Errorf("%s: %v", one.Name, err)
			}
		}
		for _, outside := range one.Outside {
			if _, err := os.Stat(filepath.Join(root, outside.Dir)); err != nil {
				t.Errorf("%s: %v", one.Name, err)
			}
		}
	}
}
