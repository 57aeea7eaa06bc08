// Package logging sets up zap for the programs.
package logging

import (
	"fmt"
	"os"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"jacobi/configs"
	"jacobi/internal/base/show"
)

// New returns a logger that writes to stderr. Its JSON entries carry the rank unless that is negative.
func New(c configs.Log, rank int) (*zap.Logger, error) {
	return NewTo(zapcore.Lock(os.Stderr), c, rank)
}

// NewTo is like New, but the logger writes to w.
func NewTo(w zapcore.WriteSyncer, c configs.Log, rank int) (*zap.Logger, error) {
	level, err := zapcore.ParseLevel(c.Level)
	if err != nil {
		return nil, fmt.Errorf("log.level %q: %w", c.Level, err)
	}
	var encoder zapcore.Encoder
	switch c.Format {
	case "json":
		encoder = zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig())
	case "console":
		e := zap.NewDevelopmentEncoderConfig()
		e.EncodeTime = zapcore.TimeEncoderOfLayout("15:04:05.000")
		e.CallerKey = ""
		encoder = zapcore.NewConsoleEncoder(e)
	default:
		return nil, fmt.Errorf("log.format %q: allowed are console and json", c.Format)
	}
	log := zap.New(zapcore.NewCore(encoder, visible{w}, level))
	if rank >= 0 && c.Format == "json" { // on a console the launcher tags every line with the rank
		log = log.With(zap.Int("rank", rank))
	}
	return log, nil
}

// visible escapes control characters, since entries may quote text of other programs, such as a server's error.
type visible struct{ zapcore.WriteSyncer }

func (v visible) Write(entry []byte) (int, error) {
	if err := show.Fprint(v.WriteSyncer, string(entry)); err != nil {
		return 0, err
	}
	return len(entry), nil
}
