// Package logging sets up zap for the programs.
package logging

import (
	"encoding/json"
	"fmt"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"jacobi/internal/base/show"
)

// New returns a logger that writes to w entries of a level, such as "info", and above, in a format: console or json.
// JSON entries carry the rank unless that is negative.
func New(w zapcore.WriteSyncer, level, format string, rank int) (*zap.Logger, error) {
	least, err := zapcore.ParseLevel(level)
	if err != nil {
		return nil, fmt.Errorf("log.level %q: %w", level, err)
	}
	var encoder zapcore.Encoder
	switch format {
	case "json":
		encoder = zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig())
	case "console":
		e := zap.NewDevelopmentEncoderConfig()
		e.EncodeTime = zapcore.TimeEncoderOfLayout("15:04:05.000")
		e.CallerKey = ""
		encoder = zapcore.NewConsoleEncoder(e)
	default:
		return nil, fmt.Errorf("log.format %q: allowed are console and json", format)
	}
	log := zap.New(zapcore.NewCore(encoder, visible{w}, least))
	if rank >= 0 && format == "json" { // on a console the launcher tags every line with the rank
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

// Line returns a log entry in JSON with a line end, in the form that the loggers of this package write. A negative rank
// is left out.
func Line(level zapcore.Level, rank int, text string) []byte {
	var fields []zapcore.Field
	if rank >= 0 {
		fields = append(fields, zap.Int("rank", rank))
	}
	entry := zapcore.Entry{Level: level, Time: time.Now(), Message: text}
	line, err := zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig()).EncodeEntry(entry, fields)
	if err != nil { // a text and a number can always be encoded
		panic(err)
	}
	defer line.Free()
	return append([]byte(nil), line.Bytes()...)
}

// IsLine reports whether line, without its line end, is a JSON log entry of the rank.
func IsLine(line []byte, rank int) bool {
	var entry struct {
		Level *zapcore.Level `json:"level"`
		Rank  *int           `json:"rank"`
		Text  *string        `json:"msg"`
	}
	return json.Unmarshal(line, &entry) == nil && entry.Level != nil && entry.Text != nil && entry.Rank != nil &&
		*entry.Rank == rank
}
