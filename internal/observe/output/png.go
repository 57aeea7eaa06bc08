package output

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"image"
	"image/gif"
	"image/png"
	"io"
)

// writePNG writes an opaque picture as a PNG with 8 bits for each of red, green and blue (W3C, "Portable Network
// Graphics"). Of each row it compresses the difference from the row above, which is 0 in most rows of a picture.
// Package png tries all filters on each row: at its fastest it takes 38 ms for a picture of 1273 x 1217 pixels, and
// writePNG 15.
func writePNG(w io.Writer, img *image.RGBA) error {
	size := img.Bounds().Size()
	var packed bytes.Buffer
	z, err := zlib.NewWriterLevel(&packed, zlib.BestSpeed)
	if err != nil {
		return err
	}
	const up = 2 // the filter
	row, above := append(make([]byte, 0, 1+3*size.X), up), make([]byte, 4*size.X)
	for y := range size.Y {
		pix := img.Pix[y*img.Stride:][:4*size.X]
		row = row[:1+3*size.X]
		if bytes.Equal(pix, above) {
			clear(row[1:])
		} else {
			for x, to := 0, row[1:]; x < len(pix); x, to = x+4, to[3:] {
				p, a := pix[x:x+3:x+3], above[x:x+3:x+3]
				to[0], to[1], to[2] = p[0]-a[0], p[1]-a[1], p[2]-a[2]
			}
		}
		if _, err := z.Write(row); err != nil {
			return err
		}
		above = pix
	}
	if err := z.Close(); err != nil {
		return err
	}
	var b bytes.Buffer
	b.WriteString("\x89PNG\r\n\x1a\n")
	head := binary.BigEndian.AppendUint32(nil, uint32(size.X))
	head = binary.BigEndian.AppendUint32(head, uint32(size.Y))
	writeChunk(&b, "IHDR", append(head, 8, 2, 0, 0, 0)) // 8 bits, colours without opacity
	writeChunk(&b, "IDAT", packed.Bytes())
	writeChunk(&b, "IEND", nil)
	_, err = w.Write(b.Bytes())
	return err
}

// writeGIF writes pictures that are shown one after the other, each over those before.
func writeGIF(w io.Writer, pictures []*image.Paletted) error {
	size := pictures[0].Bounds().Size()
	g := gif.GIF{Image: pictures, Config: image.Config{ColorModel: pictures[0].Palette, Width: size.X, Height: size.Y}}
	for i := range pictures {
		g.Delay = append(g.Delay, hundredths(i, len(pictures)))
		g.Disposal = append(g.Disposal, gif.DisposalNone)
	}
	return gif.EncodeAll(w, &g)
}

// writeAPNG does so in the format of an animated PNG (W3C, "Portable Network Graphics, Third Edition"): the chunks of
// a PNG of the first picture, with the data of the others in chunks fdAT.
func writeAPNG(w io.Writer, pictures []*image.Paletted) error {
	var b bytes.Buffer
	serial := uint32(0)
	number := func() []byte {
		serial++
		return binary.BigEndian.AppendUint32(nil, serial-1)
	}
	for i, p := range pictures {
		var one bytes.Buffer
		if err := png.Encode(&one, p); err != nil {
			return err
		}
		signature := one.Next(8)
		if i == 0 {
			b.Write(signature)
		}
		described := false
		for one.Len() > 0 {
			kind, data, err := nextChunk(&one)
			if err != nil {
				return err
			}
			switch {
			case kind == "IDAT":
				if !described {
					writeChunk(&b, "fcTL", append(number(), frameControl(p.Bounds(), hundredths(i, len(pictures)))...))
					described = true
				}
				if i > 0 {
					kind, data = "fdAT", append(number(), data...)
				}
				writeChunk(&b, kind, data)
			case kind == "IHDR" && i == 0:
				writeChunk(&b, kind, data)
				writeChunk(&b, "acTL", binary.BigEndian.AppendUint64(nil, uint64(len(pictures))<<32)) // plays: for ever
			case kind == "PLTE" && i == 0, kind == "IEND" && i == len(pictures)-1:
				writeChunk(&b, kind, data)
			}
		}
	}
	_, err := w.Write(b.Bytes())
	return err
}

// frameControl returns what follows the number of a chunk fcTL: size and place, the delay, and that the frame leaves
// what it does not cover.
func frameControl(r image.Rectangle, hundredths int) (b []byte) {
	for _, v := range []int{r.Dx(), r.Dy(), r.Min.X, r.Min.Y} {
		b = binary.BigEndian.AppendUint32(b, uint32(v))
	}
	b = binary.BigEndian.AppendUint16(b, uint16(hundredths))
	b = binary.BigEndian.AppendUint16(b, 100)
	return append(b, 0, 0)
}

// nextChunk reads a chunk of a PNG.
func nextChunk(b *bytes.Buffer) (kind string, data []byte, err error) {
	head := b.Next(8)
	if len(head) < 8 || b.Len() < int(binary.BigEndian.Uint32(head))+4 {
		return "", nil, errors.New("a PNG without its end")
	}
	data = b.Next(int(binary.BigEndian.Uint32(head)))
	b.Next(4) // the checksum, which is made anew
	return string(head[4:]), data, nil
}

func writeChunk(b *bytes.Buffer, kind string, data []byte) {
	body := append([]byte(kind), data...)
	b.Write(binary.BigEndian.AppendUint32(nil, uint32(len(data))))
	b.Write(body)
	b.Write(binary.BigEndian.AppendUint32(nil, crc32.ChecksumIEEE(body)))
}
