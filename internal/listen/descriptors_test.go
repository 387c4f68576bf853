package listen

import (
	"errors"
	"strings"
	"testing"

	"curt/internal/config"
)

func TestTooFewDescriptorsRefuseTheStart(t *testing.T) {
	for _, limit := range []int{0, 64, 96, 127} {
		err, ok := errors.AsType[*config.Error](enoughDescriptors(limit))
		if !ok || !strings.Contains(err.Error(), "128") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%d: %v", limit, err)
		}
	}
	for _, limit := range []int{128, 170, 1 << 30} {
		if err := enoughDescriptors(limit); err != nil {
			t.Error(err)
		}
	}
}
