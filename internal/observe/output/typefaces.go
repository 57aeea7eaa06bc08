package output

import (
	"image/color"

	"golang.org/x/image/font/gofont/gobold"
	"golang.org/x/image/font/gofont/goregular"

	"jacobi/internal/base/canvas"
)

var (
	ink   = canvas.Ink
	faint = color.RGBA{0x5f, 0x5f, 0x5f, 0xff}
	alarm = color.RGBA{0xc6, 0x28, 0x28, 0xff}
)

// typefaces are the fonts of a picture.
type typefaces struct{ title, caption, tick canvas.Typeface }

// textSizes are the sizes of the fonts of a picture, in pixels.
type textSizes struct{ title, caption, tick float64 }

var pictureText = textSizes{30, 20, 18}

func newTypefaces(s textSizes) (t typefaces, err error) {
	for _, f := range []struct {
		face *canvas.Typeface
		ttf  []byte
		size float64
	}{{&t.title, gobold.TTF, s.title}, {&t.caption, goregular.TTF, s.caption}, {&t.tick, goregular.TTF, s.tick}} {
		if *f.face, err = canvas.NewTypeface(f.ttf, f.size); err != nil {
			return t, err
		}
	}
	return t, nil
}

// sheet is a picture of a field being drawn.
type sheet struct{ canvas.Canvas }
