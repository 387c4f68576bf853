package qr_test

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"curt/internal/qr"
)

// need returns where a program is. Without it the test is skipped, and fails where
// everything must run.
func need(t *testing.T, name string) string {
	t.Helper()
	program, err := exec.LookPath(name)
	switch {
	case err == nil:
	case os.Getenv("CI") != "":
		t.Fatalf("needs %s: scripts/need %s", name, name)
	default:
		t.Skipf("needs %s: scripts/need %s", name, name)
	}
	return program
}

// texts are what is encoded: short, a code of 64, a host in A-labels of the greatest
// length, with a port.
func texts() []string {
	label := "xn--" + strings.Repeat("a", 59)
	host := strings.Join([]string{label, label, label, "xn--bcher-kva", "xn--fiqs8s"}, ".")
	return []string{
		qr.Text("http://localhost:8080/AbC1234"),
		qr.Text("https://go.example.com/" + strings.Repeat("aZ09-_bY", 8)),
		qr.Text("https://xn--bcher-kva.example/sommer"),
		qr.Text("https://" + host + ":65535/" + strings.Repeat("x", 64)),
	}
}

func levels() []qr.Level { return []qr.Level{qr.L, qr.M, qr.Q, qr.H} }

// colours are pairs, dark and light, up to the least contrast that is allowed.
func colours() [][2]qr.Color {
	return [][2]qr.Color{
		{0x000000, 0xffffff},
		{0x003366, 0xffee88},
		{0xaa0000, 0xffffff},
		{0x0000ff, 0xffffff},
		{0xaaaaaa, 0xffffff},
		{0x000000, 0xababab},
		{0x1a7f37, 0xf6e7ff},
	}
}

// drawn draws and returns the pixels.
func drawn(t *testing.T, text string, o qr.Options) image.Image {
	t.Helper()
	b, err := qr.NewDrawer().Draw(t.Context(), text, o)
	if err != nil {
		t.Fatalf("%+v: %v", o, err)
	}
	if o.Format == qr.SVG {
		convert := exec.CommandContext(t.Context(), need(t, "rsvg-convert"))
		convert.Stdin = bytes.NewReader(b)
		if b, err = convert.Output(); err != nil {
			t.Fatalf("%+v: rsvg-convert: %v", o, err)
		}
	}
	img, err := png.Decode(bytes.NewReader(b))
	if err != nil {
		t.Fatalf("%+v: %v", o, err)
	}
	if s := img.Bounds().Size(); s != image.Pt(o.Size, o.Size) {
		t.Errorf("%+v: %v", o, s)
	}
	return img
}

// shown is an image as a reader meets it: magnified until modules have enough pixels
// for a decoder, on paper of the background, because margins may be left to the page.
func shown(img image.Image, paper qr.Color) image.Image {
	scale := 1
	for img.Bounds().Dx()*scale < 400 {
		scale++
	}
	const border = 40
	side := img.Bounds().Dx() * scale
	page := image.NewRGBA(image.Rect(0, 0, side+2*border, side+2*border))
	light := color.RGBA{R: uint8(paper >> 16), G: uint8(paper >> 8), B: uint8(paper), A: 255}
	draw.Draw(page, page.Bounds(), image.NewUniform(light), image.Point{}, draw.Src)
	small := image.NewRGBA(img.Bounds())
	draw.Draw(small, small.Bounds(), img, image.Point{}, draw.Src)
	for y := range side {
		from, to := small.Pix[y/scale*small.Stride:], page.Pix[page.PixOffset(border, border+y):]
		for x := range side {
			copy(to[4*x:4*x+4], from[x/scale*4:])
		}
	}
	return page
}

// reader decodes images with zbar, many in one run.
type reader struct {
	folder string
	files  []string
	want   []string
	about  []string
}

func (r *reader) add(t *testing.T, img image.Image, want, about string) {
	t.Helper()
	name := filepath.Join(r.folder, fmt.Sprintf("%04d.png", len(r.files)))
	var b bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestSpeed}).Encode(&b, img); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	r.files, r.want, r.about = append(r.files, name), append(r.want, want), append(r.about, about)
}

// compare reads them all. zbarimg leaves out what it cannot read, so a wrong number
// of lines is looked for one by one.
func (r *reader) compare(t *testing.T) {
	t.Helper()
	zbar := need(t, "zbarimg")
	read := func(files ...string) []string {
		out, _ := exec.CommandContext(t.Context(), zbar, append([]string{"--raw", "-q", "-Sdisable", "-Sqrcode.enable"}, files...)...).Output()
		return strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
	}
	got := read(r.files...)
	if len(got) != len(r.want) {
		got = nil
		for _, f := range r.files {
			got = append(got, strings.Join(read(f), " and "))
		}
	}
	for i, want := range r.want {
		if got[i] != want {
			t.Errorf("%s is read as %q, want %q", r.about[i], got[i], want)
		}
	}
	t.Logf("%d images", len(r.want))
}

func TestEveryPNGIsReadByAnother(t *testing.T) {
	need(t, "zbarimg")
	r := &reader{folder: t.TempDir()}
	for i, text := range texts() {
		for j, level := range levels() {
			for k := range 2 {
				n := 8*i + 2*j + k // sizes, margins and colours take turns
				c := colours()[n%7]
				o := qr.Options{
					Format: qr.PNG, Size: []int{300, 320, 333, 400, 512}[n%5], Margin: []int{0, 1, 4, 16}[(n+i+j)%4],
					Level: level, Foreground: c[0], Background: c[1],
				}
				r.add(t, shown(drawn(t, text, o), c[1]), text, fmt.Sprintf("%+v", o))
			}
		}
	}
	r.compare(t)
}

func TestDefaultsAreReadAsTheyAre(t *testing.T) {
	need(t, "zbarimg")
	r := &reader{folder: t.TempDir()}
	for _, text := range texts() {
		for _, size := range []int{300, qr.DefaultSize} {
			o := qr.Defaults()
			o.Format, o.Size = qr.PNG, size
			r.add(t, drawn(t, text, o), text, fmt.Sprintf("%d pixels", size))
		}
	}
	r.compare(t)
}

// TestTheSmallestPNGsAreReadAsTheyAre: whatever size is taken, from the first on, is
// read without being magnified.
func TestTheSmallestPNGsAreReadAsTheyAre(t *testing.T) {
	need(t, "zbarimg")
	r := &reader{folder: t.TempDir()}
	for i, text := range texts()[:3] {
		for j, level := range levels() {
			for k, margin := range []int{2, 4, 10} {
				o := qr.Defaults()
				o.Format, o.Level, o.Margin, o.Size = qr.PNG, level, margin, qr.MinSize
				for draws(t, text, o) != nil {
					o.Size++
				}
				o.Size += 7 * ((i + j + k) % 4)
				r.add(t, drawn(t, text, o), text, fmt.Sprintf("%+v", o))
			}
		}
	}
	r.compare(t)
}

// draws returns what is wrong with the size, nil when there is a drawing.
func draws(t *testing.T, text string, o qr.Options) error {
	t.Helper()
	_, err := qr.NewDrawer().Draw(t.Context(), text, o)
	if wrong, ok := qr.AsError(err); err != nil && (!ok || wrong.Field != "size") {
		t.Fatal(err)
	}
	return err
}

func TestSizesThatNobodyReadsAreRefused(t *testing.T) {
	short, long := "https://go.example/abcdefg", "https://go.example/"+strings.Repeat("a", 64)
	for _, c := range []struct {
		text         string
		level        qr.Level
		margin, size int
	}{{short, qr.H, 4, 77}, {short, qr.H, 16, 110}, {long, qr.H, 4, 110}, {long, qr.H, 16, 150}, {long, qr.L, 16, 110}} {
		o := qr.Defaults()
		o.Format, o.Level, o.Margin, o.Size = qr.PNG, c.level, c.margin, c.size
		if draws(t, qr.Text(c.text), o) == nil {
			t.Errorf("%s is drawn with %+v", c.text, o)
		}
		if o.Format = qr.SVG; draws(t, qr.Text(c.text), o) != nil {
			t.Errorf("no SVG of %s with %+v", c.text, o)
		}
	}
}

func TestEverySVGIsReadByAnother(t *testing.T) {
	need(t, "zbarimg")
	r := &reader{folder: t.TempDir()}
	for i, text := range texts() {
		for j, level := range levels() {
			c := colours()[(4*i+j)%len(colours())]
			o := qr.Options{
				Format: qr.SVG, Size: []int{400, 512, 450}[(i+j)%3], Margin: []int{4, 0, 16}[(i+2*j)%3],
				Level: level, Foreground: c[0], Background: c[1],
			}
			r.add(t, shown(drawn(t, text, o), c[1]), text, fmt.Sprintf("%+v", o))
		}
	}
	r.compare(t)
}

// TestAnotherReaderSeesDamage is the control: too much of a code is painted over.
func TestAnotherReaderSeesDamage(t *testing.T) {
	zbar := need(t, "zbarimg")
	text := texts()[0]
	o := qr.Defaults()
	o.Format = qr.PNG
	page, ok := shown(drawn(t, text, o), o.Background).(draw.Image)
	if !ok {
		t.Fatal("cannot be painted on")
	}
	draw.Draw(page, image.Rect(200, 200, 450, 450), image.White, image.Point{}, draw.Src)
	r := &reader{folder: t.TempDir()}
	r.add(t, page, text, "damaged")
	if out, _ := exec.CommandContext(t.Context(), zbar, "--raw", "-q", r.files[0]).Output(); len(out) > 0 {
		t.Errorf("read as %q", out)
	}
}

// rasterised turns what a terminal is sent back into modules of 8 pixels.
func rasterised(t *testing.T, text string) image.Image {
	t.Helper()
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	var page *image.Gray
	for y, line := range lines {
		line, begun := strings.CutPrefix(line, "\x1b[38;5;16;48;5;231m")
		line, ended := strings.CutSuffix(line, "\x1b[0m")
		if !begun || !ended {
			t.Fatalf("line %d does not keep its colours to itself: %q", y, line)
		}
		cells := []rune(line)
		if page == nil {
			page = image.NewGray(image.Rect(0, 0, 8*len(cells), 16*len(lines)))
			draw.Draw(page, page.Bounds(), image.White, image.Point{}, draw.Src)
		}
		for x, cell := range cells {
			area := map[rune]image.Rectangle{'█': image.Rect(0, 0, 8, 16), '▀': image.Rect(0, 0, 8, 8), '▄': image.Rect(0, 8, 8, 16)}[cell]
			draw.Draw(page, area.Add(image.Pt(8*x, 16*y)), image.Black, image.Point{}, draw.Src)
		}
	}
	return page
}

func TestTerminalIsReadByAnother(t *testing.T) {
	need(t, "zbarimg")
	r := &reader{folder: t.TempDir()}
	for _, text := range texts() {
		for _, margin := range []int{0, 1, 4} {
			got, err := qr.Terminal(text, qr.M, margin)
			if err != nil {
				t.Fatal(err)
			}
			r.add(t, shown(rasterised(t, got), 0xffffff), text, fmt.Sprintf("margin %d", margin))
		}
	}
	r.compare(t)
}
