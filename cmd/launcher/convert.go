package main

import (
	"fmt"
	"math"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"jacobi/internal/observe/convert"
	"jacobi/internal/observe/output"
)

const aboutConvert = `convert writes the field of a finished run in another format, which the ending of the new name
chooses: .npy (NumPy), .vti (ParaView, VTK) or .zarr (a Zarr group with u, x and y, for zarr-python and xarray). It
holds a few rows in memory, whatever the size of the field. It replaces no file.

FIELD is a file, or the directory of a run, whose report.json names its field. A .npy file has no spacings. They
come from the report.json of its run beside it, or from --spacing.`

func newConvertCommand() *cobra.Command {
	var o convert.Options
	var spacing []float64
	cmd := &cobra.Command{
		Use:   "convert FIELD NEW",
		Short: "Write the field of a run as .npy, .vti or .zarr",
		Long:  aboutConvert,
		Example: "  launcher convert out field.vti\n" +
			"  launcher convert out/field.npy field.zarr --float32 --spacing 0.01,0.02",
		Args: arguments("the field of a run", "the new name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("spacing") {
				if len(spacing) != 2 || !positive(spacing[0]) || !positive(spacing[1]) {
					return fmt.Errorf("--spacing %v: must be two numbers above 0, as in 0.01,0.02",
						strings.Trim(strings.ReplaceAll(fmt.Sprint(spacing), " ", ","), "[]"))
				}
				o.HX, o.HY = spacing[0], spacing[1]
			}
			if o.ZarrFormat != 2 && o.ZarrFormat != 3 {
				return fmt.Errorf("--zarr-format %d: allowed are 2 and 3", o.ZarrFormat)
			}
			if cmd.Flags().Changed("zarr-format") && !strings.EqualFold(filepath.Ext(args[1]), output.Zarr) {
				return fmt.Errorf("--zarr-format %d: the name %q does not end in .zarr", o.ZarrFormat, args[1])
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			return convert.Field(ctx, args[0], args[1], o)
		},
	}
	cmd.Flags().BoolVar(&o.Float32, "float32", false, "round values of float64 to float32")
	cmd.Flags().IntVar(&o.ZarrFormat, "zarr-format", 3, "of a .zarr group: 3, or 2 for zarr-python before 3.0")
	cmd.Flags().Float64SliceVar(&spacing, "spacing", nil, "`HX,HY`: the distances of neighbouring points (default: "+
		"those of FIELD or of the report.json beside it, else 1)")
	return cmd
}

func positive(h float64) bool { return h > 0 && !math.IsInf(h, 0) }
