package logging

import (
	"encoding/json"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

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
