package cuda

import (
	"fmt"
	"maps"
	"os"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"jacobi/solver"
)

// The arguments of the kernels have the same fields at the same offsets in Go and in CUDA, and the shapes and the
// constants of the sums are the same numbers. kernels/layout.cu turns CUDA's numbers into variables.
func TestLayout(t *testing.T) {
	got := map[string]int{}
	fields(got, "Pass", reflect.TypeFor[pass](), 0)
	fields(got, "Terms", reflect.TypeFor[terms](), 0)
	fields(got, "Push", reflect.TypeFor[push](), 0)
	fields(got, "Await", reflect.TypeFor[await](), 0)
	for name, t := range map[string]reflect.Type{
		"Pass": reflect.TypeFor[pass](), "Push": reflect.TypeFor[push](), "Await": reflect.TypeFor[await](),
		"Terms": reflect.TypeFor[terms](),
	} {
		got[name+"_size"] = int(t.Size())
	}
	for name, s := range map[string]deepShape{
		"sweep_f32": sweepF32, "sweep_f64": sweepF64, "deep_f64": deepF64, "bare_f32": bareF32, "bare_f64": bareF64,
		"sweep_fixed_f32": fixedF32, "sweep_fixed_f64": fixedF64, "sweep_source_f32": sourceF32,
		"sweep_source_f64": sourceF64, "sweep_weighted_f32": weightedF32, "sweep_weighted_f64": weightedF64,
	} {
		maps.Copy(got, map[string]int{
			name + "_columns": s.columns, name + "_levels": s.levels, name + "_step": s.step, name + "_warps": s.warps,
		})
	}
	for name, w := range map[string]heldWarps{
		"held24_f32": heldFloat32[0], "held16_f32": heldFloat32[1], "held8_f64": heldFloat64[0],
	} {
		got[name+"_rows"], got[name+"_warps"] = w.rows, w.maxWarps
	}
	maps.Copy(got, map[string]int{
		"const_GroupRows": solver.GroupRows, "const_GroupColumns": solver.GroupCols, "const_UnitBits": solver.UnitBits,
		"const_Limbs": limbs, "const_LimbBits": limbBits, "const_LowBits": lowBits, "const_BadWord": badWord,
		"const_SumWords": sumWords, "const_WeightedValues": solver.Operator{Weighted: true}.ValuesPerPoint(),
		"once_threads": onceThreads, "once_columns": onceColumns,
	})
	want := cudaNumbers(t)
	for name, n := range want {
		if g, ok := got[name]; !ok || g != n {
			t.Errorf("%s is %d in CUDA and %d (there: %v) in Go", name, n, g, ok)
		}
	}
	for name := range got {
		if _, ok := want[name]; !ok {
			t.Errorf("%s is in Go alone", name)
		}
	}
	if len(want) < 70 {
		t.Errorf("%d numbers in kernels/layout.ptx; want 70 or more", len(want))
	}
}

// fields adds the offsets of the fields of a struct or array type. It joins the names of nested fields with "_" and
// leaves out padding, which is named _.
func fields(to map[string]int, name string, t reflect.Type, offset int) {
	switch t.Kind() {
	case reflect.Struct:
		for i := range t.NumField() {
			if f := t.Field(i); f.Name != "_" {
				fields(to, name+"_"+f.Name, f.Type, offset+int(f.Offset))
			}
		}
	case reflect.Array:
		for i := range t.Len() {
			fields(to, fmt.Sprintf("%s_%d", name, i), t.Elem(), offset+i*int(t.Elem().Size()))
		}
	default:
		to[name] = offset
	}
}

// cudaNumbers reads the variables of kernels/layout.ptx. One without a value is 0.
func cudaNumbers(t *testing.T) map[string]int {
	ptx, err := os.ReadFile("kernels/layout.ptx")
	if err != nil {
		t.Fatal(err)
	}
	numbers := map[string]int{}
	variable := regexp.MustCompile(`(?m)^\.global \.align 4 \.u32 (\w+)( = (\d+))?;$`)
	for _, m := range variable.FindAllStringSubmatch(string(ptx), -1) {
		n, err := strconv.Atoi("0" + m[3])
		if err != nil {
			t.Fatal(err)
		}
		numbers[m[1]] = n
	}
	if n := strings.Count(string(ptx), "\n.global"); n != len(numbers) {
		t.Fatalf("%d of %d variables of kernels/layout.ptx were understood", len(numbers), n)
	}
	return numbers
}
