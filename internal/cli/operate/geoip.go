package operate

import (
	"context"
	"encoding/hex"
	"fmt"
	"time"

	"curt/internal/backend/mmdb"
	"curt/internal/cli"
	"curt/internal/config"
)

// GeoIPUpdate is the command "curt geoip update".
type GeoIPUpdate struct {
	config.Flags

	SHA256 string `name:"sha256" placeholder:"HEX" help:"SHA-256 that the download must have."`
}

// Run replaces the file of the settings, and prints which one is in place.
func (c *GeoIPUpdate) Run(ctx context.Context, t cli.Terminal) error {
	if err := c.Wrong(); err != nil {
		return err
	}
	if c.GeoIPURL == "" {
		return &config.Error{Setting: "CURT_GEOIP_URL", Want: "set it to the URL of an .mmdb file"}
	}
	if sum, err := hex.DecodeString(c.SHA256); err != nil || len(sum) != 0 && len(sum) != 32 {
		return cli.UsageError("--sha256: expected 64 hexadecimal digits")
	}
	u := mmdb.Update{URL: c.GeoIPURL, Path: c.GeoIP, SHA256: c.SHA256, Now: time.Now()}
	found, err := u.Run(ctx)
	if err != nil {
		return fmt.Errorf("geoip update: %w", err)
	}
	outcome := "replaced"
	if !found.Replaced {
		outcome = "unchanged, the download is not newer"
	}
	_, err = fmt.Fprintf(t.Out, "%s: %s; %s of %s, %d networks\n", cli.Plain(u.Path), outcome, cli.Plain(found.Kind), found.Built.Format(time.DateOnly), found.Networks)
	return err
}
