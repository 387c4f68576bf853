package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"curt.example/client"
	"curt/internal/qr"
)

type qrCmd struct {
	api

	Code   string `arg:"" help:"Code of the link, or its short URL."`
	Out    string `short:"o" name:"out" placeholder:"FILE" help:"File to write, .svg or .png; default: standard output, where a terminal shows the code itself."`
	Format string `help:"svg or png; default: as the file is called, else svg."`
	Size   *int   `help:"Width and height in pixels, 64 to 2048; default 512."`
	Margin *int   `help:"Quiet zone around the code in modules, 0 to 16; default 4."`
	Level  string `help:"How much of the code may be lost: L 7 %, M 15 %, Q 25 %, H 30 %; default M."`
	FG     string `name:"fg" placeholder:"RRGGBB" help:"Colour of the dark modules; default 000000."`
	BG     string `name:"bg" placeholder:"RRGGBB" help:"Colour around them; default ffffff."`
}

// Run writes a picture to a file or to standard output, or shows the code on a
// terminal. A file is touched only when the picture is there.
func (c *qrCmd) Run(ctx context.Context, t terminal) error {
	code, domain, err := target(c.Code)
	if err != nil {
		return err
	}
	switch named := strings.TrimPrefix(strings.ToLower(filepath.Ext(c.Out)), "."); {
	case c.Format == "":
		c.Format = named
	case (named == "svg" || named == "png") && !strings.EqualFold(named, c.Format):
		return usageError(fmt.Sprintf("%s would be a file of %s that is called .%s: leave out --format, or call the file otherwise", c.Out, strings.ToUpper(c.Format), named))
	}
	size := 0 // as the server chooses
	if c.Size != nil {
		if size = *c.Size; size < 1 {
			return usageError("--size: want 64 to 2048")
		}
	}
	toTerminal := c.Out == "" && isTerminal(t.out)
	if toTerminal && c.Format == "png" {
		return usageError("a terminal cannot show a PNG: name a file with -o")
	}
	api, err := c.client()
	if err != nil {
		return err
	}
	if toTerminal && c.Format == "" {
		return c.show(ctx, t, api, code, domain)
	}
	picture, err := api.QR(ctx, code, client.QRQuery{
		Domain: domain, Format: c.Format, Size: size, Margin: c.Margin, Level: c.Level,
		Foreground: strings.TrimPrefix(c.FG, "#"), Background: strings.TrimPrefix(c.BG, "#"),
	})
	if err != nil {
		return fmt.Errorf("QR code of %s: %w", code, err)
	}
	if c.Out == "" {
		_, err = t.out.Write(picture)
		return err
	}
	return os.WriteFile(c.Out, picture, 0o644) //nolint:gosec // a picture that is public anyway
}

// show draws with characters. The server draws no such thing, but says what the short
// URL is.
func (c *qrCmd) show(ctx context.Context, t terminal, api *client.Client, code, domain string) error {
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
	_, err = io.WriteString(t.out, text)
	return err
}
