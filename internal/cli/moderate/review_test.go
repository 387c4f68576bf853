package moderate

import (
	"strings"
	"testing"
)

func TestDecisionsAreReadBeforeAnyIsMade(t *testing.T) {
	c := &Decide{Reason: "why"}
	if d, err := c.read(strings.NewReader("abc\tblocked\n\nx\tclean\tnot harmful\r\n")); err != nil || len(d) != 2 || d[1].Reason != "not harmful" {
		t.Errorf("%v, %v", d, err)
	}
	if d, err := c.read(strings.NewReader("abc\tblocked\nx\tbloked\n")); err == nil || d != nil || !strings.Contains(err.Error(), `line 2: unknown safety "bloked"`) {
		t.Errorf("a safety that is none: %v, %v", d, err)
	}
}
