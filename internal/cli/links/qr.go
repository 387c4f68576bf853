package links

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"curt.example/client"
	"curt/internal/cli"
	"curt/internal/qr"
)

// QR is the command "curt qr".
type QR struct {
	cli.API

	Code   string `arg:"" help:"Code of the link, or its short URL."`
	Out    string `short:"o" name:"out" placeholder:"FILE" help:"Output file, .svg or .png. Default: standard output; a terminal shows the code."`
	Format string `help:"svg or png. Default: by file name, else svg."`
	Size   *int   `help:"Width and height in pixels, 64 to 2048; default 512."`
	Margin *int   `help:"Quiet zone around the code in modules, 0 to 16; default 4."`
	Level  string `help:"Error correction: L 7 %, M 15 %, Q 25 %, H 30 %. Default: M."`
	FG     string `name:"fg" placeholder:"RRGGBB" help:"Colour of the dark modules; default 000000."`
	BG     string `name:"bg" placeholder:"RRGGBB" help:"Background colour; default ffffff."`
}

// Run writes a picture to a file or to standard output, or draws the code on a terminal. A
// file is written only after the picture was received.
func (c *QR) Run(ctx context.Context, t cli.Terminal) error {
	code, domain, err := cli.ParseLink(c.Code)
	if err != nil {
		return err
	}
	switch named := strings.TrimPrefix(strings.ToLower(filepath.Ext(c.Out)), "."); {
	case c.Format == "":
		c.Format = named
	case (named == "svg" || named == "png") && !strings.EqualFold(named, c.Format):
		return cli.UsageError(fmt.Sprintf("%s would be a %s file with the extension .%s: omit --format, or rename the file", c.Out, strings.ToUpper(c.Format), named))
	}
	size := 0 // default of the server
	if c.Size != nil {
		if size = *c.Size; size < 1 {
			return cli.UsageError("--size: expected 64 to 2048")
		}
	}
	toTerminal := c.Out == "" && cli.IsTerminal(t.Out)
	if toTerminal && c.Format == "png" {
		return cli.UsageError("a terminal cannot show a PNG: set an output file with -o")
	}
	api, err := c.Client()
	if err != nil {
		return err
	}
	if toTerminal && c.Format == "" {
		return c.Draw(ctx, t, api, code, domain)
	}
	picture, err := api.QR(ctx, code, client.QRQuery{
		Domain: domain, Format: c.Format, Size: size, Margin: c.Margin, Level: c.Level,
		Foreground: strings.TrimPrefix(c.FG, "#"), Background: strings.TrimPrefix(c.BG, "#"),
	})
	if err != nil {
		return fmt.Errorf("QR code of %s: %w", code, err)
	}
	if c.Out == "" {
		_, err = t.Out.Write(picture)
		return err
	}
	return os.WriteFile(c.Out, picture, 0o644) //nolint:gosec // the picture is public
}

// Draw writes the code as characters. The server has no such format, but reports the short
// URL.
func (c *QR) Draw(ctx context.Context, t cli.Terminal, api *client.Client, code, domain string) error {
	o, err := qr.Parse(func(name string) string {
		switch {
		case name == "level":
			return c.Level
		case name == "margin" && c.Margin != nil:
			return fmt.Sprint(*c.Margin)
		}
		return ""
	})
	if err != nil {
		return err
	}
	says, err := api.QRText(ctx, code, domain)
	if err != nil {
		return fmt.Errorf("QR code of %s: %w", code, err)
	}
	text, err := qr.Terminal(says, o.Level, o.Margin)
	if err != nil {
		return err
	}
	_, err = io.WriteString(t.Out, text)
	return err
}
