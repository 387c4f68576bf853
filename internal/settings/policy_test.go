package settings

import (
	"errors"
	"testing"

	"curt/internal/config"
)

func TestAPolicyThatMakesListsUselessIsRefused(t *testing.T) {
	lists := []string{"list.txt"}
	for _, tt := range []struct {
		cfg  config.Config
		want string // the setting that is wrong
	}{
		{config.Config{Blocklists: lists}, ""},
		{config.Config{Blocklists: lists, Thresholds: "block=100"}, ""}, // quarantined
		{config.Config{Blocklists: lists, Thresholds: "warn=100,quarantine=100,block=100"}, "CURT_THRESHOLDS"},
		{config.Config{Blocklists: lists, Weights: "blocklist=0"}, "CURT_WEIGHTS"},
		{config.Config{Blocklists: lists, Weights: "blocklist=60"}, "CURT_WEIGHTS"},
		{config.Config{Weights: "blocklist=0"}, ""},
	} {
		_, err := policy(tt.cfg)
		wrong, ok := errors.AsType[*config.Error](err)
		if ok != (tt.want != "") || ok && wrong.Setting != tt.want {
			t.Errorf("%s%s: %v, want %q", tt.cfg.Weights, tt.cfg.Thresholds, err, tt.want)
		}
	}
}
