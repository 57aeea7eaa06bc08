package problem

import "fmt"

// Values stores the values of row iy at the columns cols in dst, rounded to the field's type.
func (p *Problem) Values(iy int, cols []int, dst []float64) error {
	var s span
	q, from := p.inner(iy)
	var file []byte
	if q.key == p.initial.key && p.file != nil {
		file = make([]byte, p.mesh.RowBytes())
		size := p.mesh.DType.Size()
		if err := p.fileRow(from, file[size:len(file)-size]); err != nil {
			return fmt.Errorf("row %d: %w", iy, err)
		}
	}
	for i, ix := range cols {
		part, row := q, from
		switch ix {
		case 0:
			part, row = p.left, iy
		case p.mesh.NX - 1:
			part, row = p.right, iy
		default:
			if file != nil {
				dst[i] = p.get(file[ix*p.mesh.DType.Size():])
				continue
			}
		}
		v, err := p.value(part, &s, row, ix)
		if err != nil {
			return err
		}
		dst[i] = v
	}
	return nil
}
